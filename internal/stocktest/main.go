package stocktest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, and fails when they leave a goroutine behind.
func Main(m *testing.M) {
	// go-redis dials until it succeeds or a second after its client was closed
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}
