//go:build !linux || !(amd64 || arm64)

package fastpath

// socket is empty where the system's socket is not read and written directly.
type socket struct {
	raw  *struct{} // nil
	at   int       // -1
	shut bool
}

func (s *socket) open(*Conn) { s.at = -1 }

func (*socket) send(b []byte) []byte { return b }

func (*Conn) receiveDirectly() (found, error) { panic("fastpath: there is no socket") }
