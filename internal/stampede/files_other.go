//go:build !unix

package stampede

import "math"

// OpenFiles is how many files and connections this process may have open: here
// there is no limit worth naming.
func OpenFiles() int { return math.MaxInt32 }
