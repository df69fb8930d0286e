package e2e_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/ports"
)

// patience bounds what should come soon: generous, because the machine may be
// busy and the race detector is slow.
const patience = 2 * time.Minute

// eventually polls until cond is true, or fails the test.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	eventuallyf(t, cond, func() string { return what })
}

// eventuallyf is eventually with what to say made at the end.
func eventuallyf(t *testing.T, cond func() bool, what func() string) {
	t.Helper()
	within(t, patience, cond, what)
}

// within is eventuallyf with a patience of its own. It asks seldom what takes long: most conditions ask an edge and its
// Redis, and a deadline of 20 s would cost them 2000 questions. The pause is a fifth of the time that has passed.
func within(t *testing.T, patience time.Duration, cond func() bool, what func() string) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for pause := 10 * time.Millisecond; !cond(); pause = min(pause*5/4, 500*time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-deadline.C:
			t.Fatalf("waited %v in vain: %s", patience, what())
		}
	}
}

// await waits for something that is announced.
func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	select {
	case v := <-c:
		return v
	case <-deadline.C:
		t.Fatalf("waited %v in vain: %s", patience, what)
		panic("unreachable")
	}
}

// freeAddr is a loopback address on which nothing listens.
func freeAddr(t *testing.T) string { return "127.0.0.1:" + ports.For(t) }
