package rig

import (
	"os/exec"
	"strings"
)

// Commit names what is attacked: the commit of the working tree, and whether files of it that are
// compiled into the binary differ from it.
func Commit() string {
	head, err := exec.Command("git", "rev-parse", "--short=7", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(head))
	if changed, err := exec.Command("git", "status", "--porcelain", "--", "*.go", "*.lua", "go.mod").Output(); err != nil || len(changed) > 0 {
		name += " and changes"
	}
	return name
}
