// Package redistest runs Redis for tests, programs and benches: real
// redis-server processes on free ports ([Start]), the embedded server
// ([Embedded]), and a TCP proxy that misbehaves on request ([NewProxy]).
//
// Nothing in it waits for time to pass: servers are ready when they answer,
// and a fault is in force when the call that asks for it returns. A machine
// without redis-server fails the test and says how to install it; a test that
// skips proves nothing.
package redistest

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// T is what redistest needs of a test. *testing.T and *testing.B have it, and
// so has [Program], for what runs outside "go test".
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
	Cleanup(func())
	TempDir() string
}

// Backend is a Redis that a test can talk to: a redis-server process or the
// embedded server.
type Backend interface {
	// Addr is host:port, on loopback.
	Addr() string
	// Client returns a new client, closed when the test ends. It repeats
	// neither commands nor dials on its own, so a fault is seen exactly once.
	Client() *redis.Client
}

var (
	_ Backend = (*Server)(nil)
	_ Backend = (*EmbeddedServer)(nil)
)

// callWithin bounds a call that no context bounds.
const callWithin = 2 * time.Minute

// newClient makes the client that every Backend hands out.
func newClient(t T, addr, password string) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr:                  addr,
		Password:              password,
		MaxRetries:            -1,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
		// a call ends with its context: a busy machine needs longer than go-redis waits by default
		DialTimeout: callWithin, ReadTimeout: callWithin, WriteTimeout: callWithin, PoolTimeout: callWithin,
	})
	t.Cleanup(func() { c.Close() })
	return c
}
