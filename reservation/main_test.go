package reservation_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stockgate/stockgate/internal/redistest"
	"github.com/stockgate/stockgate/lua"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

func TestMain(m *testing.M) {
	// what fails is told on the spot, with its seed
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "10s", "rapid.steps": "60"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	// go-redis dials until it succeeds or a second after its client was closed
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// soon ends what would otherwise wait for ever. It is long: a machine may be busy.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// options reaches a server at an address, with scripts that it understands.
func options(b redistest.Backend) reservation.Options {
	o := reservation.Options{Addresses: []string{b.Addr()}, Timeout: long}
	if _, ok := b.(*redistest.EmbeddedServer); ok {
		o.Scripts = &lua.Embedded
	}
	return o
}

// at reaches a server at another address: that of a proxy.
func at(addr string, timeout time.Duration) reservation.Options {
	return reservation.Options{Addresses: []string{addr}, Timeout: timeout}
}

func openStore(t testing.TB, o reservation.Options) *reservation.Store {
	t.Helper()
	s, err := reservation.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// key is a signing key as the token package would make it.
func key(name string) reservation.Key {
	k := reservation.Key{KID: name, JWK: fmt.Sprintf(`{"kid":%q}`, name)}
	copy(k.Seal[:], name)
	return k
}

// newEdge makes an edge with the key "main". The test starts and stops it.
func newEdge(t testing.TB, o reservation.Options, eo reservation.EdgeOptions) *reservation.Edge {
	t.Helper()
	if eo.Keys == nil {
		eo.Keys = []reservation.Key{key("main")}
	}
	s, err := reservation.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	e := reservation.NewEdge(s, eo)
	t.Cleanup(func() { stop(t, e) })
	return e
}

// stop ends an edge; what Redis was not told by then stays untold.
func stop(t testing.TB, e *reservation.Edge) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// ready returns an edge that has seen Redis and is not started: it does nothing on
// its own.
func ready(t testing.TB, o reservation.Options) *reservation.Edge {
	t.Helper()
	e := newEdge(t, o, reservation.EdgeOptions{})
	if err := e.Refresh(soon(t)); err != nil {
		t.Fatal(err)
	}
	return e
}

// openSale is on sale for a year: sku "a" with stock units, "b" with 5 in the north
// and 5 in the south.
func openSale(id string, stock int64, limits ...sale.Limit) *sale.Sale {
	now := time.Now().Truncate(time.Second)
	return &sale.Sale{
		ID: id, StartsAt: now.AddDate(0, 0, -1), EndsAt: now.AddDate(1, 0, 0), Timezone: "UTC",
		Items: []sale.Item{
			{SKU: "a", Stock: stock},
			{SKU: "b", Regions: map[string]int64{"north": 5, "south": 5}},
		},
		Limits: limits,
	}
}

// perBuyer is a limit on units of one buyer.
func perBuyer(most int64) sale.Limit {
	return sale.Limit{Per: "buyer", Every: "sale", Max: most, Count: "units"}
}

// load applies a sale and opens it.
func load(t testing.TB, s *reservation.Store, file *sale.Sale) {
	t.Helper()
	if _, err := s.Apply(soon(t), file, reservation.ApplyOptions{By: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetStatus(soon(t), file.ID, sale.Open, "test"); err != nil {
		t.Fatal(err)
	}
}

// apply loads a file anew, and lets the edge know of it.
func apply(t testing.TB, e *reservation.Edge, file *sale.Sale) {
	t.Helper()
	if _, err := e.ApplyUnlessLost(soon(t), file, reservation.ApplyOptions{By: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := e.Refresh(soon(t)); err != nil {
		t.Fatal(err)
	}
}

// selling returns an edge, not started, on a server with one open sale "s".
func selling(t testing.TB, o reservation.Options, stock int64, limits ...sale.Limit) *reservation.Edge {
	t.Helper()
	e := ready(t, o)
	load(t, e.Store, openSale("s", stock, limits...))
	if err := e.Refresh(soon(t)); err != nil {
		t.Fatal(err)
	}
	return e
}

// terms are those of most tests: nothing expires while they run.
var terms = reservation.Terms{HoldFor: time.Hour, Margin: time.Minute, Mode: reservation.Response}

// hold asks an edge for units of "a". Each has a key of its own: one buyer may ask
// for the same again.
func hold(ctx context.Context, e *reservation.Edge, id, buyer string, units int64) (reservation.Hold, *sale.Refusal, error) {
	return holdOn(ctx, e, id, buyer, units, terms)
}

// holdOn is hold on other terms.
func holdOn(ctx context.Context, e *reservation.Edge, id, buyer string, units int64, on reservation.Terms) (reservation.Hold, *sale.Refusal, error) {
	l, ok := e.Catalogue().Sale("s")
	if !ok {
		return reservation.Hold{}, nil, os.ErrNotExist
	}
	a := &sale.Attempt{Sale: "s", Buyer: buyer, Lines: []sale.Line{{SKU: "a", Quantity: units}}, Key: id, Print: "print"}
	lines, refusal := l.Sale.Resolve(a)
	if refusal != nil {
		return reservation.Hold{}, refusal, nil
	}
	return e.Hold(ctx, id, l, a, lines, on)
}

// mustHold is hold where it must succeed.
func mustHold(t testing.TB, e *reservation.Edge, id, buyer string, units int64) reservation.Hold {
	t.Helper()
	h, refusal, err := hold(soon(t), e, id, buyer, units)
	if err != nil || refusal != nil {
		t.Fatalf("hold %s: refused %+v, error %v", id, refusal, err)
	}
	return h
}

// state is what a reservation is in; empty: unknown.
func state(t testing.TB, s *reservation.Store, id string) reservation.State {
	t.Helper()
	r, err := s.Reservation(soon(t), id)
	if err == reservation.ErrNotFound {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.State
}

// cellA is where the units of "a" are.
func cellA(t testing.TB, s *reservation.Store) reservation.Cell {
	t.Helper()
	b, err := s.Books(soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range b.Items {
		if c.SKU == "a" {
			return c
		}
	}
	t.Fatal("the sale has no a")
	return reservation.Cell{}
}

// eventually asks again and again until it is so. It never waits for a time to
// pass: it fails when nothing has come of it for very long.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	ctx := soon(t)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
