//go:build shops

package shoptest_test

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait of these tests. A busy machine without a cache of npm needs some
// minutes for the slowest of them.
const patience = 30 * time.Minute

const logTail = 16 << 10

// process is a program that a test runs. All that it starts ends with it.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string        // its file
	gone chan struct{} // closed when it has ended
}

// start runs a program until the test ends, and shows the end of its log if the test failed.
func start(t testing.TB, name string, env []string, program string, args ...string) *process {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p := &process{name: name, cmd: exec.Command(program, args...), log: log.Name(), gone: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// a group of its own: shells and npm start other programs
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Linux ties the child's life to the thread that started it
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.cmd.Wait()
			close(p.gone)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s:\n%s", name, p.tail())
		}
	})
	return p
}

// kill ends the process and all that it has started, and waits.
func (p *process) kill() {
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.gone
}

func (p *process) tail() []byte {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.ToValidUTF8(b[max(0, len(b)-logTail):], nil)
}

// until waits for a condition, and fails if the process ends before it.
func (p *process) until(t testing.TB, want string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for !so() {
		select {
		case <-p.gone:
			t.Fatalf("%s ended before this was so: %s\n%s", p.name, want, p.tail())
		case <-late.C:
			t.Fatalf("%s: not within %v: %s", p.name, patience, want)
		case <-tick.C:
		}
	}
}
