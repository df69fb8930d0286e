package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/test/ports"
)

const (
	readyWithin = 2 * time.Minute      // a busy machine loading an append-only file
	stopWithin  = time.Minute          // SIGTERM until the process is gone
	pollEvery   = 2 * time.Millisecond // between two questions "are you ready?"
	logTail     = 16 << 10             // bytes of the log shown when a test fails
)

// Server is one redis-server process with a directory and a port of its own.
// Its methods are for the goroutine of the test: they end the test when the
// process does not do what they ask.
type Server struct {
	t        T
	dir      string // redis.conf and what Redis persists
	port     int
	tlsPort  int // 0: none
	password string
	sentinel bool
	proc     *process // the running process, or the last one
	output   *os.File // what all of them say
	shared   bool     // other tests may use it before and after this one
}

// Option changes how a redis-server is started.
type Option func(*options)

type options struct {
	lines            []string
	password         string
	certificate, key string
	sentinel         bool
}

// Config adds lines to redis.conf, as "appendonly yes" or "maxmemory 10mb".
// Without any, nothing is persisted and nothing is ever evicted. A replica gets what there is at once.
func Config(lines ...string) Option {
	return func(o *options) { o.lines = append(o.lines, lines...) }
}

// Password makes the server require a password.
func Password(password string) Option {
	return func(o *options) { o.password = password }
}

// TLS makes the server listen at TLSAddr with a certificate and its key, which are files. At
// Addr it listens without TLS.
func TLS(certificate, key string) Option {
	return func(o *options) { o.certificate, o.key = certificate, key }
}

// tries is how often a server starts whose port another program has taken.
const tries = 100

// Start runs a redis-server (7 or newer) and returns when it answers. It is
// gone when the test ends, and its log is shown if the test failed. The
// binary is $REDIS_SERVER, by default redis-server in PATH. A test without options may
// get the process of an earlier test, empty and under another address and id, if that test has
// neither ended, stalled nor configured it.
func Start(t T, opts ...Option) *Server {
	t.Helper()
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	s := &Server{t: t, dir: t.TempDir(), password: o.password, sentinel: o.sentinel, shared: shareable(t, opts)}
	t.Cleanup(s.end)
	if s.shared && s.reuse() {
		return s
	}
	var err error
	if s.output, err = newOutput(); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	for range tries {
		port, err := ports.Free()
		if err != nil {
			t.Fatalf("redistest: %v", err)
		}
		s.port = port
		if o.certificate != "" {
			if s.tlsPort, err = ports.Free(); err != nil {
				t.Fatalf("redistest: %v", err)
			}
		}
		if err := s.configure(o); err != nil {
			t.Fatalf("redistest: write redis.conf: %v", err)
		}
		err = s.launch()
		if err == nil && s.shared {
			err = s.begin()
		}
		switch {
		case err == nil:
			return s
		case !s.portTaken(): // by a faster process: try the next
			t.Fatalf("redistest: start redis-server: %v", err)
		}
	}
	t.Fatalf("redistest: no free port found in %d tries", tries)
	return nil
}

// Addr is host:port of the server; it stays the same over restarts.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// TLSAddr is host:port where the server speaks TLS.
func (s *Server) TLSAddr() string { return "127.0.0.1:" + strconv.Itoa(s.tlsPort) }

// Dir is the server's working directory.
func (s *Server) Dir() string { return s.dir }

// Client returns a new client, closed when the test ends.
func (s *Server) Client() *redis.Client {
	return newClient(s.t, s.Addr(), s.password)
}

func (s *Server) configure(o options) error {
	lines := []string{
		"bind 127.0.0.1",
		"port " + strconv.Itoa(s.port),
		"dir " + strconv.Quote(s.dir),
		"daemonize no",
		`save ""`,
		"appendonly no",
		"maxmemory-policy noeviction",
		"enable-debug-command yes",
		"repl-diskless-sync-delay 0",
		"enable-protected-configs local", // its directory, see begin
	}
	if o.password != "" {
		lines = append(lines, "requirepass "+strconv.Quote(o.password))
	}
	if o.certificate != "" {
		lines = append(lines, "tls-port "+strconv.Itoa(s.tlsPort), "tls-cert-file "+strconv.Quote(o.certificate), "tls-key-file "+strconv.Quote(o.key), "tls-auth-clients no")
	}
	lines = append(lines, o.lines...)
	text := strings.Join(lines, "\n") + "\n"
	return os.WriteFile(s.path("redis.conf"), []byte(text), 0o600)
}

// launch starts the process and waits until this process answers.
func (s *Server) launch() error {
	bin, err := binary()
	if err != nil {
		return err
	}
	args := []string{s.path("redis.conf")}
	if s.sentinel {
		args = append(args, "--sentinel")
	}
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, s.output, s.output
	if s.proc, err = start(cmd); err != nil {
		return err
	}
	if err := s.ready(); err != nil {
		s.proc.kill()
		return err
	}
	return nil
}

// binary finds redis-server, or says how to get it.
func binary() (string, error) {
	name := os.Getenv("REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	bin, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w; install it with: apt-get install -y redis-server (Debian, Ubuntu) "+
			"or brew install redis (macOS)", err)
	}
	return bin, nil
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

// log returns the end of the server's log.
func (s *Server) log() string {
	info, err := s.output.Stat()
	if err != nil {
		return err.Error()
	}
	from := max(0, info.Size()-logTail)
	b := make([]byte, info.Size()-from)
	if _, err := s.output.ReadAt(b, from); err != nil {
		return err.Error()
	}
	return string(b)
}

func (s *Server) portTaken() bool {
	return strings.Contains(s.log(), "Address already in use")
}

// end stops a server when its test is over, or leaves it to the next one.
func (s *Server) end() {
	if s.proc != nil {
		if s.leave() {
			return
		}
		s.proc.kill()
	}
	if s.output == nil {
		return
	}
	if s.t.Failed() {
		s.t.Logf("redis-server %s:\n%s", s.Addr(), s.log())
	}
	s.output.Close()
}
