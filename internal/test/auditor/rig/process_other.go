//go:build unix && !linux

package rig

import (
	"os/exec"
	"syscall"
)

// Only Linux can tie a child to its parent's life.
func dieWithParent(*exec.Cmd) {}

// runAs makes a command run as another user: PostgreSQL refuses root.
func runAs(cmd *exec.Cmd, uid, gid uint32) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
}
