//go:build !unix

package child

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
)

var errSystem = errors.New("a store needs Linux, macOS or BSD: use `redis`")

func tryLock(*os.File) error { return errSystem }

func end(p *os.Process) error { return p.Kill() }

func killGroup(int) {}

func isOwner(fs.FileInfo) bool { return true }

func userName() string { return "its user" }

func diskFree(string) (int64, error) { return 0, errSystem }

func ownGroup(*exec.Cmd) {}

func dieWithThread() {}

func networkFS(string) string { return "" }
