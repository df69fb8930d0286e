package spawn

import (
	"fmt"
	"slices"
	"testing"
)

// Shared is the testing.TB of servers that all tests of a package use: they end by End, which TestMain calls after
// the last test. It is for tests that are not parallel.
type Shared struct {
	testing.TB // nil: a server calls no other methods
	ends       []func()
}

// Helper does nothing.
func (*Shared) Helper() {}

// Failed is false: the tests that share a server say themselves what has failed.
func (*Shared) Failed() bool { return false }

// Fatalf ends the tests: none of those that share a server can go on without it.
func (*Shared) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Cleanup keeps what End calls.
func (s *Shared) Cleanup(end func()) { s.ends = append(s.ends, end) }

// End calls what Cleanup has kept, the last one first.
func (s *Shared) End() {
	for _, end := range slices.Backward(s.ends) {
		end()
	}
}
