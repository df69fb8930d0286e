package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stockgate/stockgate/internal/test/spawn"
)

const (
	readyWithin = 3 * time.Minute // a busy machine that recovers after a crash
	stopWithin  = time.Minute
	pollEvery   = 5 * time.Millisecond
	logTail     = 8 << 10
)

// Server is one PostgreSQL with a directory of its own. Its methods are for the
// goroutine of the test.
type Server struct {
	t    testing.TB
	dir  string
	port string // on which it listens; empty: on its unix socket only
	user *account
	cmd  *exec.Cmd
	gone <-chan error // closed when the process has ended
}

// Start makes a cluster and runs it. Settings are added to those of the server, as
// "fsync=on"; without any, data may be lost in a power cut. It is killed when the test
// ends, and its log is shown if the test failed.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	return start(t, "", settings)
}

// StartTCP is Start for clients that know no unix sockets: the server listens on this port of
// 127.0.0.1 as well, see [Server.DatabaseURL].
func StartTCP(t testing.TB, port string, settings ...string) *Server {
	t.Helper()
	return start(t, port, append([]string{"listen_addresses='127.0.0.1'", "port=" + port}, settings...))
}

func start(t testing.TB, port string, settings []string) *Server {
	t.Helper()
	u, err := findAccount()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	// not t.TempDir: the user who runs PostgreSQL must be able to get there, and a unix
	// socket has room for about a hundred bytes
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	s := &Server{t: t, dir: dir, port: port, user: u}
	t.Cleanup(s.end)
	if err := u.own(dir); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	initdb, err := program("initdb")
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	make := exec.Command(initdb, "--pgdata="+s.data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	make.Dir = dir
	u.run(make)
	if err := spawn.Make(make, s.data()); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if err := u.ownAll(s.data()); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	lines := append([]string{
		"listen_addresses=''", "unix_socket_directories='" + dir + "'", "fsync=off", "full_page_writes=off",
		"shared_buffers=32MB", "max_connections=50", "logging_collector=off", "autovacuum=off",
	}, settings...)
	conf, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	_, err = conf.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	if e := conf.Close(); err != nil || e != nil {
		t.Fatalf("pgtest: write postgresql.conf: %v %v", err, e)
	}
	if err := s.launch(); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return s
}

// DSN is the address of the database postgres.
func (s *Server) DSN() string { return s.dsn("postgres") }

func (s *Server) dsn(database string) string {
	dsn := "host=" + s.dir + " user=postgres sslmode=disable dbname=" + database
	if s.port != "" {
		dsn += " port=" + s.port
	}
	return dsn
}

var databases atomic.Int64

// Database makes a new database and returns its address.
func (s *Server) Database() string {
	s.t.Helper()
	name := fmt.Sprintf("test%d", databases.Add(1))
	s.Exec("CREATE DATABASE " + name)
	return s.dsn(name)
}

// DatabaseURL makes a new database of a server that listens on TCP, and returns its URL.
func (s *Server) DatabaseURL() string {
	s.t.Helper()
	if s.port == "" {
		s.t.Fatal("pgtest: DatabaseURL needs a server of StartTCP")
	}
	_, name, _ := strings.Cut(s.Database(), "dbname=")
	name, _, _ = strings.Cut(name, " ")
	return "postgres://postgres@127.0.0.1:" + s.port + "/" + name
}

// Exec runs a statement in the database postgres.
func (s *Server) Exec(statement string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	c, err := pgx.Connect(ctx, s.DSN())
	if err == nil {
		_, err = c.Exec(ctx, statement)
		c.Close(ctx)
	}
	if err != nil {
		s.t.Fatalf("pgtest: %s: %v", statement, err)
	}
}

// Ask runs a query in the database postgres that gives one text; empty: there is no
// row, or the server does not answer.
func (s *Server) Ask(query string) (text string) {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	c, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return ""
	}
	defer c.Close(ctx)
	_ = c.QueryRow(ctx, query).Scan(&text)
	return text
}

// Kill ends the server and its children as a crash of the machine does, all at once,
// and waits until it is gone.
func (s *Server) Kill() {
	select {
	case <-s.gone:
		return
	default:
	}
	// stopped, it starts no others in place of those that are killed
	_ = s.cmd.Process.Signal(syscall.SIGSTOP)
	for _, pid := range children(s.cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // an error means that it has gone already
	}
	_ = s.cmd.Process.Kill()
	<-s.gone
}

// Stop ends the server as an operator does, without waiting for its clients.
func (s *Server) Stop() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	late := time.NewTimer(stopWithin)
	defer late.Stop()
	select {
	case <-s.gone:
	case <-late.C:
		s.Kill()
		s.t.Fatalf("pgtest: PostgreSQL did not end within %v of SIGINT", stopWithin)
	}
}

// Restart starts a server that was stopped or killed, and returns when it answers.
func (s *Server) Restart() {
	s.t.Helper()
	if err := s.launch(); err != nil {
		s.t.Fatalf("pgtest: restart: %v", err)
	}
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// launch starts the process and waits until it answers. One whose clients have not
// all noticed yet that it was killed does not start: it is tried again.
func (s *Server) launch() error {
	deadline := time.Now().Add(readyWithin)
	for {
		err := s.launchOnce(deadline)
		if err == nil || time.Now().After(deadline) || !strings.Contains(s.log(), "shared memory block") {
			return err
		}
		_ = os.Truncate(s.logFile(), 0)
		<-time.After(pollEvery)
	}
}

func (s *Server) launchOnce(deadline time.Time) error {
	bin, err := program("postgres")
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(bin, "-D", s.data())
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	s.user.run(cmd)
	gone, err := spawn.Start(cmd)
	if err != nil {
		return err
	}
	s.cmd, s.gone = cmd, gone
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if err = s.ask(deadline); err == nil {
			return nil
		}
		select {
		case <-gone:
			return fmt.Errorf("it ended before it answered: %v\n%s", err, s.log())
		case <-tick.C:
		}
		if time.Now().After(deadline) {
			s.Kill()
			return fmt.Errorf("no answer within %v: %w\n%s", readyWithin, err, s.log())
		}
	}
}

func (s *Server) ask(deadline time.Time) error {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	c, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	return c.Ping(ctx)
}

func (s *Server) log() string {
	b, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-logTail):])
}

// For is a server of [spawn.Shared] for one test: what goes wrong fails that test, which shows the log. The test
// makes a database of its own, and lets the server run.
func (s *Server) For(t testing.TB) *Server {
	t.Helper()
	one := *s
	one.t = t
	t.Cleanup(one.tell)
	return &one
}

// tell shows the log of a test that has failed.
func (s *Server) tell() {
	if s.t.Failed() {
		s.t.Logf("PostgreSQL in %s:\n%s", s.dir, s.log())
	}
}

// end stops a server when its test is over.
func (s *Server) end() {
	if s.cmd != nil {
		s.Kill()
	}
	s.tell()
	// the children of the killed one may be about to write their last
	deadline := time.Now().Add(stopWithin)
	for os.RemoveAll(s.dir) != nil && time.Now().Before(deadline) {
		<-time.After(pollEvery)
	}
}
