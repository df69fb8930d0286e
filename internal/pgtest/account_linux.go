package pgtest

import (
	"os/exec"
	"syscall"
)

// run lets a command run as the account, and die with this process.
func (a *account) run(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if a.uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
}
