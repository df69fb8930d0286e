package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// run lets a command run as the account.
func (a *account) run(cmd *exec.Cmd) {
	if a.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
	}
}

// children are the processes that a process has started and that live.
func children(parent int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// "pid (name) state parent …", and the name may be anything
		words := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && len(words) > 1 && words[1] == fmt.Sprint(parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}
