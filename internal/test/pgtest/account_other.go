//go:build unix && !linux

package pgtest

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// run lets a command run as the account. Only Linux can tie it to this process.
func (a *account) run(cmd *exec.Cmd) {
	if a.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
	}
}

// children are the processes that a process has started and that live.
func children(parent int) (pids []int) {
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(parent)).Output() // an error: none
	for _, word := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
