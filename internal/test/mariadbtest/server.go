package mariadbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/stockgate/stockgate/internal/test/spawn"
)

const (
	readyWithin = 3 * time.Minute // a busy machine that recovers after a crash
	pollEvery   = 5 * time.Millisecond
	logTail     = 8 << 10
)

// Server is one MariaDB with a directory of its own. Its methods are for the goroutine of the test.
type Server struct {
	t        testing.TB
	dir      string
	settings []string
	cmd      *exec.Cmd
	gone     <-chan error // closed when the process has ended
}

// Start makes a server and runs it. Settings are options of mariadbd, as "--sql-mode=". It is killed when the test
// ends, and its log is shown if the test failed.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "maria") // a unix socket has room for about a hundred bytes
	if err != nil {
		t.Fatalf("mariadbtest: %v", err)
	}
	s := &Server{t: t, dir: dir, settings: settings}
	t.Cleanup(s.end)
	if err := s.install(); err != nil {
		t.Fatalf("mariadbtest: %v", err)
	}
	s.Restart()
	return s
}

// install makes the system's tables.
func (s *Server) install() error {
	bin, err := program("mariadb-install-db")
	if err != nil {
		return err
	}
	args, err := s.common()
	if err != nil {
		return err
	}
	return spawn.Make(exec.Command(bin, append(args, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")...), s.path("data"))
}

// program finds one of MariaDB's programs, also where the PATH of an ordinary user does not lead.
func program(name string) (string, error) {
	if found, err := exec.LookPath(name); err == nil {
		return found, nil
	}
	if found, err := exec.LookPath(filepath.Join("/usr/sbin", name)); err == nil {
		return found, nil
	}
	return "", errNotInstalled
}

var errNotInstalled = errors.New("no mariadbd found; install MariaDB 10.5 or newer with: apt-get install -y mariadb-server (Debian, Ubuntu) or brew install mariadb (macOS)")

// common are the options of both programs. The server runs as the user of the test, even where that is root.
func (s *Server) common() ([]string, error) {
	u, err := user.Current()
	if err != nil {
		return nil, err
	}
	return []string{"--no-defaults", "--datadir=" + s.path("data"), "--user=" + u.Username, "--innodb-log-file-size=16M"}, nil
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

// Address is the address of the database mysql, or of another one.
func (s *Server) Address(database string) string {
	return "mysql://root@/" + database + "?socket=" + s.path("sock")
}

var databases atomic.Int64

// Database makes a new database and returns its address.
func (s *Server) Database() string {
	s.t.Helper()
	name := fmt.Sprintf("test%d", databases.Add(1))
	s.Exec("CREATE DATABASE " + name)
	return s.Address(name)
}

// Exec runs a statement.
func (s *Server) Exec(statement string) {
	s.t.Helper()
	err := s.with(func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, statement)
		return err
	})
	if err != nil {
		s.t.Fatalf("mariadbtest: %s: %v", statement, err)
	}
}

// Ask runs a query that gives one text; empty: there is no row, or the server does not answer.
func (s *Server) Ask(query string) (text string) {
	_ = s.with(func(ctx context.Context, db *sql.DB) error { return db.QueryRowContext(ctx, query).Scan(&text) })
	return text
}

func (s *Server) with(do func(context.Context, *sql.DB) error) error {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.Logger = "root", "unix", s.path("sock"), &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	return do(ctx, db)
}

// Kill ends the server as a crash does, and waits until it is gone.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // an error means that it has gone already
	<-s.gone
}

// Restart starts a server that was killed, and returns when it answers.
func (s *Server) Restart() {
	s.t.Helper()
	if err := s.launch(); err != nil {
		s.t.Fatalf("mariadbtest: %v\n%s", err, s.log())
	}
}

func (s *Server) launch() error {
	bin, err := program("mariadbd")
	if err != nil {
		return err
	}
	args, err := s.common()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(bin, append(append(args, "--socket="+s.path("sock"), "--pid-file="+s.path("pid"), "--skip-networking", "--innodb-buffer-pool-size=32M",
		"--innodb-flush-method=nosync"), s.settings...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	gone, err := spawn.Start(cmd)
	if err != nil {
		return err
	}
	s.cmd, s.gone = cmd, gone
	deadline := time.Now().Add(readyWithin)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for s.with(func(ctx context.Context, db *sql.DB) error { return db.PingContext(ctx) }) != nil {
		select {
		case <-gone:
			return errors.New("it ended before it answered")
		case <-tick.C:
		}
		if time.Now().After(deadline) {
			s.Kill()
			return fmt.Errorf("no answer within %v", readyWithin)
		}
	}
	return nil
}

// log returns the end of the server's log.
func (s *Server) log() string {
	b, err := os.ReadFile(s.path("log"))
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
		s.t.Logf("MariaDB in %s:\n%s", s.dir, s.log())
	}
}

// end stops a server when its test is over.
func (s *Server) end() {
	if s.cmd != nil {
		s.Kill()
	}
	s.tell()
	_ = os.RemoveAll(s.dir)
}
