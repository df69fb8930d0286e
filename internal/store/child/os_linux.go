package child

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithThread makes the kernel's promise in attributes one about this process: the kernel ends the server when the
// thread ends that has started it. The caller's goroutine keeps that thread, which ends with it.
func dieWithThread() { runtime.LockOSThread() }

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: unix.SIGTERM} }

// networkFS names the network file system that a directory is on; empty: none.
func networkFS(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return ""
	}
	return map[uint32]string{
		unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS",
		unix.AFS_SUPER_MAGIC: "AFS", unix.AFS_FS_MAGIC: "AFS", unix.CEPH_SUPER_MAGIC: "Ceph", unix.CODA_SUPER_MAGIC: "Coda", unix.V9FS_MAGIC: "9P",
	}[uint32(s.Type)]
}
