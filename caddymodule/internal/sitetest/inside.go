package sitetest

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/internal/sale"
)

// Silence makes any time without an answer of Redis, which is down, too long for the edge to sell. It returns
// how it ends, at the latest with the test.
func Silence(t *testing.T) (end func()) {
	before := timing.Silence.Set(0)
	end = func() { timing.Silence.Set(before) }
	t.Cleanup(end)
	return end
}

// Follows reports whether the edge knows the bindings of a sale.
func Follows(id string) bool {
	edge := app.Active().Runtime()
	l, ok := edge.Catalogue().Sale(id)
	return ok && !edge.MayRepeat(l, &sale.Attempt{Buyer: "nothing", Key: "nothing"})
}

// Watching is how many clients wait for news of their places on a waiting list.
func Watching() int { return app.Active().Runtime().Watching() }

// Watch takes the room of one client that waits for news of a place; false: there is none.
func Watch(sale, buyer string) bool { return app.Active().Runtime().Watch(sale, buyer) != nil }

// GateNamed is a gate of the running configuration.
func GateNamed(t *testing.T, name string) *gate.Gate {
	t.Helper()
	j, err := judge.Of(app.Active()).Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return j.Seller().(*gate.Gate)
}

// Until polls a condition until it is true.
func Until(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
