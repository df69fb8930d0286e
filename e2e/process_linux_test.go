package e2e_test

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes a child end with this process, whatever kills it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
