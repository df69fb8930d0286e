package redistest

import (
	"os"
	"syscall"
	"time"
)

// Stop ends the server as an operator does (SIGTERM) and waits until it is
// gone. What its configuration persists survives. Stopping twice is fine.
func (s *Server) Stop() {
	s.t.Helper()
	if s.proc.ended() {
		return
	}
	s.Resume() // a stopped process does not see a SIGTERM
	s.signal(syscall.SIGTERM)
	timeout := time.NewTimer(stopWithin)
	defer timeout.Stop()
	select {
	case <-s.proc.done:
	case <-timeout.C:
		s.proc.kill()
		s.t.Fatalf("redistest: redis-server did not end within %v of SIGTERM", stopWithin)
	}
}

// Kill ends the server as a crash does (SIGKILL) and waits until it is gone.
func (s *Server) Kill() {
	s.shared = false
	s.proc.kill()
}

// Restart starts the server again on the same port and directory, and returns
// when it answers. A running server is stopped first.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	if err := s.launch(); err != nil {
		s.t.Fatalf("redistest: restart redis-server: %v", err)
	}
}

// Pause stalls the server (SIGSTOP): the kernel still accepts connections and
// bytes for it, and nothing is executed. It is stalled when Pause returns.
func (s *Server) Pause() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	if err := s.proc.awaitStopped(); err != nil {
		s.t.Fatalf("redistest: pause redis-server: %v", err)
	}
}

// Resume lets a paused server go on (SIGCONT), with all that arrived meanwhile.
func (s *Server) Resume() {
	s.t.Helper()
	s.signal(syscall.SIGCONT)
}

func (s *Server) signal(sig os.Signal) {
	s.t.Helper()
	s.shared = false
	if err := s.proc.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("redistest: send %v to redis-server: %v", sig, err)
	}
}
