//go:build unix && !linux

package pgtest

import (
	"os/exec"
	"syscall"
)

// run lets a command run as the account. Only Linux can tie it to this process.
func (a *account) run(cmd *exec.Cmd) {
	if a.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
	}
}
