//go:build unix

package child

import (
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryLock locks a file for this process and those that inherit it, or fails at once.
func tryLock(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// end asks a process to end.
func end(p *os.Process) error { return p.Signal(unix.SIGTERM) }

// killGroup ends what a process that has ended may have left.
func killGroup(pid int) { _ = unix.Kill(-pid, unix.SIGKILL) }

func isOwner(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// userName is the user that runs this process, as `install -o` takes it.
func userName() string {
	id := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

func diskFree(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(uint64(s.Bavail) * uint64(s.Bsize)), nil
}

// ownGroup starts a process in a group of its own: Ctrl-C in a terminal is for Caddy, which ends the
// server after its last request.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = attributes()
	cmd.SysProcAttr.Setpgid = true
}
