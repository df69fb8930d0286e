package caddymodule_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/inspect"
	"github.com/stockgate/stockgate/caddymodule/jwt"
	"github.com/stockgate/stockgate/fastpath"
	"github.com/stockgate/stockgate/refuse"
	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/shard"
)

// flights returns how many requests need the edge runtime of the running app.
func flights() int { return inspect.InFlight(app.Active().Runtime()) }

// closeFlights closes the edge runtime to new attempts, as the end of its last configuration
// does.
func closeFlights() { inspect.Shut(app.Active().Runtime()) }

// silence lets so much time pass since the last answer of Redis, which is down, that the edge sells no more.
func silence() {
	inspect.AgeEdge(app.Active().Runtime(), 2*shard.Silence)
	inspect.AgeLists(2 * shard.Silence)
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

// fastJudge is the one of the running configuration's only server with the wrapper.
func fastJudge() fastpath.Judge {
	for _, l := range app.Active().Listeners() {
		if judge := inspect.FastJudge(l); judge != nil {
			return judge
		}
	}
	return nil
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

// itemKeepers returns how many edges keep the items of all sales.
func itemKeepers() int { return inspect.ItemKeepers() }
