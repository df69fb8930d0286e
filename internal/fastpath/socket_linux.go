//go:build linux && (amd64 || arm64)

package fastpath

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// socket is the system's socket of a connection. net.Conn's Read and Write inform the
// scheduler of each system call, lock, and check the deadline: half the cost of a
// refusal besides the system calls. A non-blocking socket needs that only for waiting.
type socket struct {
	raw   syscall.RawConn // nil: only net.Conn reads and writes this connection
	ready func(fd uintptr) bool
	at    int // the file descriptor during a turn, otherwise -1

	// of a turn that has ended
	what takeStep
	err  error
	shut bool // the connection is to be closed
}

// open takes the socket of a connection that nothing wraps.
func (s *socket) open(c *Conn) {
	s.at = -1
	switch conn := c.Conn.(type) { // not by an interface: what wraps one of them may change what is read
	case *net.TCPConn:
		s.raw, _ = conn.SyscallConn() // nil with an error
	case *net.UnixConn:
		s.raw, _ = conn.SyscallConn()
	}
	s.ready = c.answerReady
}

// receiveDirectly waits for more and answers it, until there is something for net/http.
func (c *Conn) receiveDirectly() (takeStep, error) {
	s := &c.socket
	s.what, s.err = stepMore, nil
	err := s.raw.Read(s.ready)
	s.at = -1
	if s.shut {
		_ = c.Conn.Close()
		return stepBroken, net.ErrClosed
	}
	if err != nil { // of waiting
		return stepMore, c.readError(errors.Unwrap(err))
	}
	return s.what, s.err
}

// answerReady reads and answers until nothing is left to read (false) or it is net/http's turn.
func (c *Conn) answerReady(fd uintptr) bool {
	s := &c.socket
	s.at = int(fd)
	for {
		c.room()
		n, errno := receiveFrom(s.at, c.buf[c.end:])
		switch {
		case errno == syscall.EINTR:
			continue
		case errno == syscall.EAGAIN:
			if s.at = -1; c.start == c.end {
				c.release() // an idle connection needs no buffer
			}
			return false
		case errno != 0:
			s.err = c.readError(os.NewSyscallError("recvfrom", errno))
			return true
		case n == 0:
			s.err = io.EOF
			return true
		}
		c.end += n
		c.request.Now = time.Now()
		if s.what, s.err = c.answerBuffered(); s.what != stepMore {
			return true
		}
		c.await()
	}
}

// readError is a read error in net.Conn's form: net/http checks its operation.
func (c *Conn) readError(err error) error {
	local := c.Conn.LocalAddr()
	return &net.OpError{Op: "read", Net: local.Network(), Source: local, Addr: c.Conn.RemoteAddr(), Err: err}
}

// send writes what the socket accepts at once, and returns the rest: net.Conn waits
// until that can be written, or returns the error.
func (s *socket) send(b []byte) []byte {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(s.at), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), syscall.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return b
	}
	return b[n:]
}

func receiveFrom(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
