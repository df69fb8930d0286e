package redistest

import (
	"os/exec"

	"github.com/stockgate/stockgate/internal/test/spawn"
)

// process is a child that is always waited for, so it never stays a zombie.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone
	err  error         // how it ended; readable once done is closed
}

// start starts cmd so that it dies with this process, whatever kills it.
func start(cmd *exec.Cmd) (*process, error) {
	ended, err := spawn.Start(cmd)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = <-ended
		close(p.done)
	}()
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
