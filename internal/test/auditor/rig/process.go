// Package rig starts the attacked processes: edges (the built caddy), redis-server and
// PostgreSQL; and it kills, stops, delays and damages them.
package rig

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Patience is how long an event that must happen may take. It is not a promise of the
// product: a loaded machine may need all of it.
const Patience = 3 * time.Minute

// Until asks every few milliseconds until the answer is yes. The error says what did not happen.
func Until(what string, done func() bool) error {
	end := time.Now().Add(Patience)
	for wait := 5 * time.Millisecond; !done(); wait = min(2*wait, 200*time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("after %v it has not happened that %s", Patience, what)
		}
		time.Sleep(wait)
	}
	return nil
}

// Process is a running program.
type Process struct {
	Name string
	cmd  *exec.Cmd
	gone chan struct{}
	log  *Log
}

// start runs a program that dies with this one.
func start(name string, cmd *exec.Cmd, log *Log) (*Process, error) {
	p := &Process{Name: name, cmd: cmd, gone: make(chan struct{}), log: log}
	cmd.Stdout, cmd.Stderr = log, log
	dieWithParent(cmd)
	started := make(chan error)
	go func() {
		// Linux ties the child's life to the thread that started it
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
			close(p.gone)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// Alive reports whether the process has not ended.
func (p *Process) Alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

// Kill ends the process as a crash does, and waits until it is gone.
func (p *Process) Kill() {
	if p.Alive() {
		p.cmd.Process.Kill()
		<-p.gone
	}
}

// Stop and Continue freeze and thaw the process.
func (p *Process) Stop()     { p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *Process) Continue() { p.cmd.Process.Signal(syscall.SIGCONT) }

// Terminate asks the process to end, and kills it when it does not.
func (p *Process) Terminate() {
	if !p.Alive() {
		return
	}
	p.cmd.Process.Signal(syscall.SIGCONT)
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.gone:
	case <-time.After(30 * time.Second):
		p.Kill()
	}
}

// Log keeps the end of what a process writes.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const logMost = 4 << 20

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf.Len() > logMost {
		l.buf.Next(logMost / 2)
	}
	return l.buf.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Tail is the last lines.
func (l *Log) Tail(lines int) string {
	all := strings.Split(strings.TrimRight(l.String(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Ports are above what internal/test/ports gives and below the range that kernels give to outgoing connections:
// the port of a server that is down is not taken by another.
var ports struct {
	sync.Mutex
	last int
}

const firstPort, lastPort = 30000, 32700

// FreePort is a port that was free a moment ago.
func FreePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	if ports.last == 0 {
		ports.last = firstPort + rand.IntN(lastPort-firstPort)
	}
	for range lastPort - firstPort {
		if ports.last++; ports.last > lastPort {
			ports.last = firstPort
		}
		if free(ports.last) {
			return ports.last, nil
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free", firstPort, lastPort)
}

func free(port int) bool {
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	ln.Close()
	return true
}
