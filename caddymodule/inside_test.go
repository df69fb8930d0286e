package caddymodule_test

import (
	"context"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate"
	"github.com/stockgate/stockgate/caddymodule/gate/option/jwt"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// flights returns how many requests need the edge runtime of the running app.
func flights() int { return app.Active().Runtime().InFlight() }

// silence makes any time without an answer of Redis, which is down, too long for the edge to sell. It returns
// how it ends, at the latest with the test.
func silence(t *testing.T) (end func()) {
	before := timing.Silence.Set(0)
	end = func() { timing.Silence.Set(before) }
	t.Cleanup(end)
	return end
}

// loops are the goroutines of the process in which one of these functions runs, such as
// "lists.(*View).watch": each with the number that it has as long as it runs.
func loops(functions ...string) (ids []string) {
	stacks := make([]byte, 1<<16)
	for {
		n := runtime.Stack(stacks, true)
		if n < len(stacks) {
			stacks = stacks[:n]
			break
		}
		stacks = make([]byte, 2*n)
	}
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if slices.ContainsFunc(functions, func(f string) bool { return strings.Contains(stack, "/"+f) }) {
			id, _, _ := strings.Cut(stack, " [")
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// follows reports whether the edge knows the bindings of a sale.
func follows(id string) bool {
	edge := app.Active().Runtime()
	l, ok := edge.Catalogue().Sale(id)
	return ok && !edge.MayRepeat(l, &sale.Attempt{Buyer: "nothing", Key: "nothing"})
}

// gateNamed is a gate of the running configuration.
func gateNamed(t *testing.T, name string) *gate.Gate {
	t.Helper()
	g, err := gate.Of(app.Active()).Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return g.Gate()
}

// exitOf is the second look on a gate's server, around a transport.
func exitOf(g *gate.Gate, inner http.RoundTripper) http.RoundTripper {
	return guard.NewExit(inner, g.Server(), zap.NewNop())
}

// guardOf is a guard on a gate's server.
func guardOf(t *testing.T, g *gate.Gate) *guard.Guard {
	t.Helper()
	made := new(guard.Guard)
	if err := made.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	made.Routes().Of(g.Server())
	return made
}

// fastListener wraps ln as the running configuration's only wrapper does; ln itself: it answers nothing.
func fastListener(ln net.Listener) net.Listener {
	for _, l := range app.Active().Listeners() {
		ln = l.(caddy.ListenerWrapper).WrapListener(ln)
	}
	return ln
}

// answersFast reports whether the running configuration's only wrapper answers anything.
func answersFast() bool {
	ln := new(net.TCPListener)
	return fastListener(ln) != net.Listener(ln)
}

// noJitter makes Retry-After predictable for a test.
func noJitter(t *testing.T) {
	before := refuse.Spread
	refuse.Spread = func(int64) int64 { return 0 }
	t.Cleanup(func() { refuse.Spread = before })
}

// openJWT returns what a gate asks about a token from an address at a time; the text is the
// reason of a refusal, and wait its Retry-After.
func openJWT(t *testing.T, j *jwt.Config) func(token, clientIP string, at time.Time) (reason sale.Reason, wait int64) {
	t.Helper()
	key, v, err := j.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = jwt.Close(key) })
	return func(token, clientIP string, at time.Time) (sale.Reason, int64) {
		_, no := v.ClaimsOf(context.Background(), token, v.LimitFor(clientIP, at))
		if no == nil {
			return "", 0
		}
		return no.Reason, no.RetryAfter
	}
}

// keeping is where a goroutine keeps the items of all sales.
const keeping = "app.(*itemKeeper).start."

// itemKeepers returns how many edges keep the items of all sales.
func itemKeepers() int { return len(loops(keeping)) }
