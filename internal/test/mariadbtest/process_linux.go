package mariadbtest

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets a command end with this process.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
