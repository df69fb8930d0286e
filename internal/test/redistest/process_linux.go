package redistest

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// awaitStopped returns when the kernel has stopped the process, or it ended.
func (p *process) awaitStopped() error {
	for {
		// WNOWAIT leaves the state for cmd.Wait, which alone reaps.
		err := unix.Waitid(unix.P_PID, p.pid(), nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err
		}
	}
}
