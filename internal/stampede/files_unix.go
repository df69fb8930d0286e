//go:build unix

package stampede

import (
	"math"
	"syscall"
)

// OpenFiles is how many files and connections this process may have open. The
// Go runtime has raised the soft limit to the hard one already.
func OpenFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	// int64 on the BSDs, uint64 elsewhere; unlimited is the largest of either
	return int(min(uint64(limit.Cur), math.MaxInt32))
}
