package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// launcher starts processes on free loopback ports and ends all of them.
type launcher struct {
	dir    string // for what they write
	source string // of this package
	inside []func()
	procs  []*process
}

// process is one that was started.
type process struct {
	name string
	cmd  *exec.Cmd
	log  *tail
	gone chan struct{}
}

// startTimeout is how long a server may take until it listens: Tomcat and Django take
// seconds, on a busy machine many.
const startTimeout = 10 * time.Minute

// start starts a command in a process group of its own.
func (l *launcher) start(name string, env []string, command ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(command[0], command[1:]...), log: new(tail), gone: make(chan struct{})}
	p.cmd.Dir = l.dir
	p.cmd.Env = append(os.Environ(), append(env, "NODE_ENV=production")...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w; run scripts/need as `make differential` does", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.gone)
	}()
	l.procs = append(l.procs, p)
	return p, nil
}

// listens waits until a process accepts connections.
func (p *process) listens(ctx context.Context, port int) error {
	late := time.NewTimer(startTimeout)
	defer late.Stop()
	for {
		conn, err := net.Dial("tcp", loopback(port))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.gone:
			return fmt.Errorf("%s ended at its start: %s", p.name, p.log)
		case <-late.C:
			return fmt.Errorf("%s does not listen: %s", p.name, p.log)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// alive says which processes have ended by themselves.
func (l *launcher) alive() error {
	var err error
	for _, p := range l.procs {
		select {
		case <-p.gone:
			err = errors.Join(err, fmt.Errorf("%s ended during the run: %s", p.name, p.log))
		default:
		}
	}
	return err
}

// stop ends everything, the gate first.
func (l *launcher) stop() {
	for _, p := range slices.Backward(l.procs) {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.gone
	}
	for _, end := range l.inside {
		end()
	}
}

func (l *launcher) path(name string) string { return filepath.Join(l.dir, name) }

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// tail keeps the end of what a process writes.
type tail struct {
	sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.Lock()
	defer t.Unlock()
	t.buf = append(t.buf, b...)
	if n := len(t.buf) - 4<<10; n > 0 {
		t.buf = t.buf[n:]
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.Lock()
	defer t.Unlock()
	return string(bytes.TrimSpace(t.buf))
}
