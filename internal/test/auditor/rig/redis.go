package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Redis is a redis-server with a directory and a port of its own.
type Redis struct {
	*Process
	Port  int // 0: it is the server of `store`
	Bus   int // of a node of a cluster: the port for other nodes
	dir   string
	clock *shim // nil: the machine's
	disk  *shim // nil: the machine's
}

// Durable are the settings with which a killed Redis loses nothing.
var Durable = []string{"appendonly yes", "appendfsync always"}

// Node is the setting with which a Redis is a node of a cluster.
const Node = "cluster-enabled yes"

// StartRedis runs a redis-server. Settings are lines of redis.conf.
func StartRedis(dir string, settings ...string) (*Redis, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	r := &Redis{Port: port, dir: filepath.Join(dir, fmt.Sprintf("redis-%d", port))}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, err
	}
	lines := append([]string{
		"bind 127.0.0.1", fmt.Sprintf("port %d", port), fmt.Sprintf("dir %q", r.dir), "daemonize no", `save ""`, "appendonly no",
		"maxmemory-policy noeviction", "enable-debug-command yes",
	}, settings...)
	if slices.Contains(settings, Node) { // by default its bus has a port that the kernel gives to outgoing connections
		if r.Bus, err = FreePort(); err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("cluster-port %d", r.Bus))
	}
	if err := os.WriteFile(r.conf(), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return nil, err
	}
	return r, nil
}

// Store is the server that an edge runs in a directory.
func Store(dir string) *Redis { return &Redis{dir: dir} }

// KillStore kills the server of `store`, if one runs.
func (r *Redis) KillStore() { Kill(r.StorePID()) }

// StorePID is the process of the server of `store`; 0: none runs.
func (r *Redis) StorePID() int {
	info, err := r.Do("INFO", "server")
	text, _ := info.(string)
	_, pid, ok := strings.Cut(text, "process_id:")
	if err != nil || !ok {
		return 0
	}
	n, _ := strconv.Atoi(strings.Fields(pid)[0])
	return n
}

// Kill kills a process; 0: there is none.
func Kill(pid int) {
	if pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Run starts the process, for the first time or again, and waits until it answers.
func (r *Redis) Run() error {
	cmd := exec.Command("redis-server", r.conf())
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), shimEnv(r.clock, r.disk)...)
	return r.run("redis-server", cmd)
}

func (r *Redis) conf() string { return filepath.Join(r.dir, "redis.conf") }

func (r *Redis) run(name string, cmd *exec.Cmd) error {
	log := new(Log)
	var err error
	if r.Process, err = start(name, cmd, log); err != nil {
		return err
	}
	err = Until(name+" answers", func() bool {
		answer, err := r.Do("PING")
		return !r.Alive() || err == nil && answer == "PONG"
	})
	if err == nil && !r.Alive() {
		err = errors.New(name + " ended at its start:\n" + log.Tail(20))
	}
	return err
}

// FakeClock makes the next Run have a clock that Shift moves.
func (r *Redis) FakeClock() (err error) {
	r.clock, err = newShim(r.dir, "clock", "AUDITOR_CLOCK", clockSource)
	return err
}

// Shift sets how far the clock is off.
func (r *Redis) Shift(by time.Duration) error { return r.clock.set(by) }

// FakeDisk makes the next Run have a disk that SlowDisk slows down.
func (r *Redis) FakeDisk() (err error) {
	r.disk, err = newShim(r.dir, "disk", "AUDITOR_DISK", diskSource)
	return err
}

// SlowDisk sets how much longer each sync of a file takes.
func (r *Redis) SlowDisk(by time.Duration) error { return r.disk.set(by) }

// Addr is the directory of `store`, or host:port.
func (r *Redis) Addr() string {
	if r.Port == 0 {
		return r.dir
	}
	return fmt.Sprintf("127.0.0.1:%d", r.Port)
}

// Dir is where it keeps its files.
func (r *Redis) Dir() string { return r.dir }

// Do asks on a connection of its own.
func (r *Redis) Do(args ...string) (any, error) {
	c, err := Dial(r.Addr())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do(args...)
}

// Fields is Do whose answer is a list of names and values.
func (r *Redis) Fields(args ...string) (map[string]string, error) {
	answer, err := r.Do(args...)
	if err != nil {
		return nil, err
	}
	return fieldsOf(answer)
}

// Stall freezes the process for a while, as a slow disk or a machine that swaps does.
func (r *Redis) Stall(d time.Duration) {
	r.Stop()
	time.Sleep(d)
	r.Continue()
}
