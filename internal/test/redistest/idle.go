package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/ports"
)

// idle are servers whose tests have passed, and which are like new ones: most of what a server costs is its
// start. They listen where only [Start] knows, and are of tests without options.
var idle struct {
	sync.Mutex
	servers []*Server
}

// maxIdleMemory is how much a server may have allocated that is emptied; a larger one is killed, which is faster.
const maxIdleMemory = 16 << 20

// EndIdle kills the servers that no test uses, for a TestMain that looks for goroutines. Elsewhere they die with the process.
func EndIdle() {
	idle.Lock()
	defer idle.Unlock()
	for _, s := range idle.servers {
		s.discard()
	}
	idle.servers = nil
}

// shareable reports whether a test may get a server that another test has used, and leave it to a third:
// a bench or a program has its own. Only Linux ends a server with this process.
func shareable(t T, opts []Option) bool {
	_, test := t.(*testing.T)
	return test && len(opts) == 0 && runtime.GOOS == "linux"
}

// reuse makes s an idle server, if there is one.
func (s *Server) reuse() bool {
	bin, err := binary()
	for err == nil {
		idle.Lock()
		n := len(idle.servers)
		if n == 0 {
			idle.Unlock()
			break
		}
		last := idle.servers[n-1]
		idle.servers = idle.servers[:n-1]
		idle.Unlock()
		if last.proc.cmd.Path != bin {
			last.discard()
			continue
		}
		s.port, s.proc, s.output = last.port, last.proc, last.output
		if s.configure(options{}) == nil && s.begin() == nil {
			return true
		}
		s.discard()
		s.proc, s.output = nil, nil
	}
	return false
}

// begin has the server work in its directory, and count from now on what it is told.
func (s *Server) begin() error {
	c, err := s.dial(time.Now().Add(readyWithin))
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.do([]string{"CONFIG", "SET", "dir", s.dir}, []string{"CONFIG", "RESETSTAT"}, []string{"SLOWLOG", "RESET"})
	return err
}

// leave makes a server like new and idle. It reports false for one that its test has not left as it was: such
// a server must be killed.
func (s *Server) leave() bool {
	if !s.shared || s.t.Failed() || s.proc.ended() {
		return false
	}
	c, err := s.dial(time.Now().Add(callWithin))
	if err != nil {
		return false
	}
	defer c.Close()
	said, err := c.do([]string{"COMMAND", "LIST", "FILTERBY", "ACLCAT", "admin"}, []string{"INFO", "clients", "memory", "commandstats"})
	if err != nil || !unchanged(strings.Fields(string(said[0])), fields(said[1])) {
		return false
	}
	port, err := ports.Free()
	if err != nil {
		return false
	}
	// what is left of the test, in this process or another, finds nothing at the former port
	_, err = c.do([]string{"CONFIG", "SET", "port", strconv.Itoa(port)}, []string{"DEBUG", "CHANGE-REPL-ID"},
		[]string{"FLUSHALL", "SYNC"}, []string{"SCRIPT", "FLUSH", "SYNC"}, []string{"FUNCTION", "FLUSH", "SYNC"}, []string{"ACL", "LOG", "RESET"})
	if err != nil {
		return false
	}
	idle.Lock()
	defer idle.Unlock()
	idle.servers = append(idle.servers, &Server{port: port, proc: s.proc, output: s.output})
	return true
}

// unchanged reports whether a server has only data, and scripts, that others have not, given the names of the
// commands that change servers: it has no other client, is small, and has run none of these since begin.
func unchanged(administer []string, info map[string]string) bool {
	memory, err := strconv.Atoi(info["used_memory"])
	if err != nil || memory > maxIdleMemory || info["connected_clients"] != "1" {
		return false
	}
	for name, calls := range info {
		name, ran := strings.CutPrefix(name, "cmdstat_")
		switch {
		case !ran || !slices.Contains(administer, name): // it has changed data
		case name == "config|get", name == "client|list", name == "acl|list", name == "role": // they change nothing
		case (name == "config|resetstat" || name == "slowlog|reset") && strings.HasPrefix(calls, "calls=1,"): // of begin
		default:
			return false
		}
	}
	return info["cmdstat_slowlog|reset"] != "" // otherwise a test has reset what is counted
}

// discard ends a server for good.
func (s *Server) discard() {
	s.proc.kill()
	s.output.Close()
}

// conn speaks to a server. A client of go-redis has a pool, which slows down after refused connections, and
// says more than it is told.
type conn struct {
	net.Conn
	replies *bufio.Reader
}

// dial connects to the server.
func (s *Server) dial(deadline time.Time) (*conn, error) {
	c, err := net.DialTimeout("tcp", s.Addr(), time.Until(deadline))
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(deadline); err != nil {
		c.Close()
		return nil, err
	}
	return &conn{c, bufio.NewReader(c)}, nil
}

// do sends commands together, and returns the replies; one that is an error is returned as such.
func (c *conn) do(commands ...[]string) (replies [][]byte, err error) {
	var all []byte
	for _, command := range commands {
		all = append(all, encode(command...)...)
	}
	if _, err := c.Write(all); err != nil {
		return nil, err
	}
	for _, command := range commands {
		reply, err := readFrame(c.replies)
		if err != nil {
			return nil, err
		}
		if reply[0] == '-' {
			return nil, fmt.Errorf("%s: %s", command[0], bytes.TrimSpace(reply))
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// fields are the values of INFO by name.
func fields(info []byte) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			values[name] = value
		}
	}
	return values
}

// newOutput is a file that is gone when it is closed.
func newOutput() (*os.File, error) {
	f, err := os.CreateTemp("", "redis-log")
	if err == nil {
		err = os.Remove(f.Name())
	}
	return f, err
}
