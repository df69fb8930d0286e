//go:build unix && !linux

package child

import "syscall"

// Only Linux ends a child with its parent. Elsewhere the next start ends it.
func dieWithThread() {}

func attributes() *syscall.SysProcAttr { return new(syscall.SysProcAttr) }

func networkFS(string) string { return "" }
