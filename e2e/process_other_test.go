//go:build !linux

package e2e_test

import (
	"os"
	"os/exec"
)

// Only Linux can tie a child to its parent's life.
func dieWithParent(*exec.Cmd) {}

func mapFile(path string) ([]byte, error) { return os.ReadFile(path) }
