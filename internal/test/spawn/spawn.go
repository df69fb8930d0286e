// Package spawn starts the servers of tests.
package spawn

import (
	"os/exec"
	"runtime"
)

// Start starts cmd so that it dies with this process, whatever kills it, and waits for it, so that it never
// stays a zombie. done gets how it ended, and is closed then.
func Start(cmd *exec.Cmd) (done <-chan error, err error) {
	dieWithParent(cmd)
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		// Linux ties the child's life to the thread that started it, so that thread stays until the child has gone
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
			close(ended)
		}
	}()
	return ended, <-started
}
