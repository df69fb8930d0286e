// Package peer starts the compared servers, each pinned to a core: Caddy with and
// without Stockgate, nginx with Lua, Redis, and a shop behind them.
package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stockgate/stockgate/bench/measure"
)

const (
	startWithin = 60 * time.Second // nginx loads a million items before it listens
	stopWithin  = 10 * time.Second
)

// Process is a child process.
type Process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// Start runs a program on one core. What it prints goes to a file in dir.
func Start(name string, core int, dir string, env []string, program string, args ...string) (*Process, error) {
	log := filepath.Join(dir, name+".log")
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command("taskset", append([]string{"-c", strconv.Itoa(core), program}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	cmd.Env = append(os.Environ(), env...)
	// If this program dies, so do its servers.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // that it ended is enough; why is in its log
		close(p.done)
	}()
	return p, nil
}

// Listens waits until a server accepts connections at an address.
func (p *Process) Listens(addr string) error {
	deadline := time.After(startWithin)
	for tick := time.Tick(10 * time.Millisecond); ; {
		if c, err := net.Dial("tcp", addr); err == nil {
			itself := c.LocalAddr().String() == addr // as TCP may where nothing listens yet
			if err := c.Close(); err != nil || !itself {
				return err
			}
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended at once:\n%s", p.name, p.Log())
		case <-deadline:
			return fmt.Errorf("%s does not listen on %s after %v:\n%s", p.name, addr, startWithin, p.Log())
		case <-tick:
		}
	}
}

// Log is the end of what the process has printed.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4096):])
}

// Stop ends the process and waits for it.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.done:
	case <-time.After(stopWithin):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// CPU is the processor time of the process and of those that it has started, in seconds.
func (p *Process) CPU() (float64, error) { return cpuOf(p.cmd.Process.Pid) }

// Resident is how much memory of the process is resident, in bytes.
func (p *Process) Resident() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return measure.Resident(string(status))
}

func cpuOf(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	total, err := measure.ProcStat(string(stat))
	if err != nil {
		return 0, err
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0, err
	}
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		} else if err != nil {
			return 0, err
		}
		for _, word := range strings.Fields(string(children)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				return 0, err
			}
			seconds, err := cpuOf(child)
			if err != nil {
				return 0, err
			}
			total += seconds
		}
	}
	return total, nil
}

// freeAddress is an address on which nothing listens at the moment.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
