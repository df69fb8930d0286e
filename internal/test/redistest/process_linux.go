package redistest

import "golang.org/x/sys/unix"

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
