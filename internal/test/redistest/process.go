package redistest

import (
	"os/exec"
	"runtime"
)

// process is a child that is always waited for, so it never stays a zombie.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone
	err  error         // how it ended; readable once done is closed
}

// spawn starts cmd so that it dies with this process, whatever kills it.
func spawn(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	dieWithParent(cmd)
	started := make(chan error)
	go func() {
		// Linux ties the child's life to the thread that started it, so
		// that thread stays until the child has gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process, paused or not, and waits until it is gone.
func (p *process) kill() {
	// An error means that it has gone already: done tells.
	_ = p.cmd.Process.Kill()
	<-p.done
}
