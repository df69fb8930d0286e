package reservation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/rates"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// bomb is an argument that cannot be sent.
type bomb struct{ before func() }

func (b bomb) MarshalBinary() ([]byte, error) {
	b.before()
	panic("nil map")
}

// TestHalfABatchThatPanics lets the settling operations of a batch fail while its reserve
// requests are under way: only the requests get an answer of Redis.
func TestHalfABatchThatPanics(t *testing.T) {
	f := stocktest.NewFaulty(t, stocktest.Long)
	l, ok := f.Edge.Catalogue().Sale("s")
	if !ok {
		t.Fatal("the sale is not known")
	}
	claim := &reservation.ReserveRequest{
		ID: "second", Sale: "s", Version: l.Version, Buyer: "b", Mode: record.ModeResponse, HoldFor: time.Hour,
		Lines: []sale.Line{{SKU: l.Sale.Items[0].SKU, Quantity: 1}},
	}
	f.Proxy.HoldReplies("EVALSHA " + lua.Redis().Of(lua.Reserve).SHA)
	ctx := stocktest.Soon(t)
	claimed, done := f.Edge.Store.Together(ctx, claim, reservation.Operation{Name: "confirm", Args: []any{bomb{func() {
		if err := f.Proxy.WaitHeld(ctx); err != nil {
			t.Error(err)
		}
	}}}})
	if _, err := done(); !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("what fails hears %v", err)
	}
	f.Proxy.ReleaseReplies()
	if got, err := claimed(); got != "ok" || err != nil {
		t.Errorf("the claim hears %q, %v", got, err)
	}
}

// crowded is a faulty edge with stock for many, on which attempts are queued behind a
// call that is under way.
type crowded struct {
	*stocktest.Faulty
	wg sync.WaitGroup

	mu   sync.Mutex
	errs map[string]error
}

func newCrowded(t *testing.T) *crowded {
	c := &crowded{Faulty: stocktest.NewFaulty(t, stocktest.Long), errs: map[string]error{}}
	if _, err := c.Direct.Adjust(stocktest.Soon(t), "s", "more", "a", 100, ""); err != nil {
		t.Fatal(err)
	}
	return c
}

// together runs operations in the call that follows one which is under way, queued in
// the order of their names. Meanwhile says what happens before that call is made.
func (c *crowded) together(ops map[string]func() error, meanwhile func()) {
	c.T.Helper()
	c.Proxy.HoldRequests("EVALSHA")
	c.ask("first", func() error { _, err := c.Edge.Store.Doubt(context.Background(), "s", "unknown", ""); return err })
	if err := c.Proxy.WaitHeld(stocktest.Soon(c.T)); err != nil {
		c.T.Fatal(err)
	}
	names := make([]string, 0, len(ops))
	for name := range ops {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		c.ask(name, ops[name])
		stocktest.Eventually(c.T, name+" in the queue", func() bool { return c.Edge.Store.Waiting() == i+1 })
	}
	if meanwhile != nil {
		meanwhile()
	}
	c.Proxy.ReleaseRequests()
	c.wg.Wait()
}

func (c *crowded) ask(name string, op func() error) {
	c.wg.Go(func() {
		err := op()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.errs[name] = err
	})
}

// reserves are n reserves, in order.
func (c *crowded) reserves(n int) map[string]func() error {
	ops := map[string]func() error{}
	for i := range n {
		name := fmt.Sprintf("r%03d", i)
		ops[name] = func() error {
			_, refusal, err := stocktest.Hold(context.Background(), c.Edge, name, name, 1)
			if refusal != nil {
				err = errors.New(string(refusal.Reason))
			}
			return err
		}
	}
	return ops
}

// all checks that every operation but the first ended so.
func (c *crowded) all(want func(error) bool) {
	c.T.Helper()
	for name, err := range c.errs {
		if name != "first" && !want(err) {
			c.T.Errorf("%s ends with %v", name, err)
		}
	}
}

func fine(err error) bool { return err == nil }

// heldIn returns the reservations that the journal has, in its order.
func heldIn(r *stocktest.Raw) (ids []string) {
	for _, e := range r.Journal {
		if e.Kind == "held" && e.ID != "first" {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// Attempts that come together go in one call, in the order in which they came.
func TestOneCallForAll(t *testing.T) {
	c := newCrowded(t)
	before := c.Proxy.Requests("EVALSHA")
	c.together(c.reserves(60), nil)
	c.all(fine)
	if n := c.Proxy.Requests("EVALSHA") - before; n != 2 {
		t.Errorf("%d calls were made, want 2", n)
	}
	if got := heldIn(c.Audit()); len(got) != 60 || !slices.IsSorted(got) {
		t.Errorf("the journal has %v", got)
	}
}

// Whatever becomes of the call, each attempt is made once or given up by itself.
func TestTroubleInTheMiddle(t *testing.T) {
	tests := map[string]struct {
		meanwhile func(*crowded)
		want      func(error) bool
		held      int
	}{
		"the reply is lost": {func(c *crowded) { c.Proxy.CutReplies(2, "EVALSHA") }, fine, 30},
		"all replies are lost": {
			func(c *crowded) { c.Proxy.CutReplies(1000, "EVALSHA") },
			func(err error) bool { return errors.Is(err, shard.ErrUnavailable) }, 0,
		},
		"the scripts are forgotten": {func(c *crowded) {
			if err := c.Server.Client().ScriptFlush(stocktest.Soon(c.T)).Err(); err != nil {
				c.T.Error(err)
			}
		}, fine, 30},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCrowded(t)
			c.together(c.reserves(30), func() { test.meanwhile(c) })
			c.all(test.want)
			c.Proxy.Heal()
			c.Told()
			r := c.Audit()
			if a := stocktest.CellA(t, c.Direct); a.Held != int64(test.held) {
				t.Errorf("%d units are held, want %d", a.Held, test.held)
			}
			got := heldIn(r)
			slices.Sort(got)
			if len(slices.Compact(got)) != len(heldIn(r)) {
				t.Errorf("something was reserved twice: %v", heldIn(r))
			}
		})
	}
}

// One that Redis cannot do does not keep the others of its call from being done.
func TestOneThatCannotBeDone(t *testing.T) {
	c := newCrowded(t)
	stocktest.MustHold(t, c.Edge, "sold", "Ann", 1)
	if _, err := c.Edge.Store.Confirm(stocktest.Soon(t), "s", "sold", reservation.SourceShop, ""); err != nil {
		t.Fatal(err)
	}
	c.allButAReturn(c.reserves(9), "r004x")
	if got := heldIn(c.Audit()); len(got) != 10 {
		t.Errorf("the journal has %v", got)
	}
}

// allButAReturn runs operations together with a return, which Redis cannot do because its key is
// damaged: all but that must be done. The key is right again afterwards.
func (c *crowded) allButAReturn(ops map[string]func() error, name string) {
	c.T.Helper()
	returns := c.Direct.Shard().ShardKeys("s")[11]
	if err := c.Server.Client().Set(stocktest.Soon(c.T), returns, "not a hash", 0).Err(); err != nil {
		c.T.Fatal(err)
	}
	ops[name] = func() error {
		_, err := c.Edge.Store.Return(context.Background(), "s", "sold", reservation.Return{ID: "1", Restock: true})
		return err
	}
	c.together(ops, nil)
	for at, err := range c.errs {
		if at != "first" && (err != nil) != (at == name) {
			c.T.Errorf("%s ends with %v", at, err)
		}
	}
	if err := c.Server.Client().Del(stocktest.Soon(c.T), returns).Err(); err != nil {
		c.T.Fatal(err)
	}
}

// The same where all of them end holds.
func TestOneEndThatCannotBeDone(t *testing.T) {
	c := newCrowded(t)
	confirm := func(id string) func() error {
		return func() error {
			_, err := c.Edge.Store.Confirm(context.Background(), "s", id, reservation.SourceShop, "")
			return err
		}
	}
	ops := map[string]func() error{}
	for i := range 9 {
		id := fmt.Sprint("r", i)
		stocktest.MustHold(t, c.Edge, id, id, 1)
		ops[id] = confirm(id)
	}
	stocktest.MustHold(t, c.Edge, "sold", "Ann", 1)
	if err := confirm("sold")(); err != nil {
		t.Fatal(err)
	}
	c.allButAReturn(ops, "r4x")
	for i := range 9 {
		if got := stocktest.State(t, c.Direct, fmt.Sprint("r", i)); got != record.Confirmed {
			t.Errorf("r%d is %q", i, got)
		}
	}
}

// On a full Redis a call that has both begins nothing and ends everything.
func TestFullRedisInAMixedCall(t *testing.T) {
	c := newCrowded(t)
	for _, id := range []string{"x1", "x2", "x3", "x4"} {
		stocktest.MustHold(t, c.Edge, id, id, 1)
	}
	ops := c.reserves(2)
	ops["r000a"] = func() error { _, err := c.Edge.ConfirmEventually(context.Background(), "s", "x1", ""); return err }
	ops["r000b"] = func() error {
		_, err := c.Edge.ReleaseEventually(context.Background(), "s", "x2", reservation.SourceShop, "")
		return err
	}
	ops["r002a"] = func() error { _, err := c.Edge.DoubtEventually(context.Background(), "s", "x3", ""); return err }
	ops["r002b"] = func() error {
		l, _ := c.Edge.Catalogue().Sale("s")
		a := &sale.Attempt{Buyer: "x4", Key: "x4", Print: "print", Lines: []sale.Line{{SKU: "a", Quantity: 1}}}
		b, err := c.Edge.Lookup(context.Background(), l, a, a.Lines)
		if err == nil && (b == nil || b.ID != "x4") {
			err = fmt.Errorf("found %v", b)
		}
		return err
	}
	c.together(ops, func() {
		redis := c.Server.Client()
		if err := errors.Join(redis.Set(stocktest.Soon(t), "junk", strings.Repeat("x", 4<<20), 0).Err(), redis.ConfigSet(stocktest.Soon(t), "maxmemory", "2mb").Err()); err != nil {
			t.Error(err)
		}
	})
	for name, err := range c.errs {
		if name == "r000" || name == "r001" {
			if !errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), "memory is full") {
				t.Errorf("%s ends with %v, want that the memory is full", name, err)
			}
		} else if name != "first" && err != nil {
			t.Errorf("%s ends with %v", name, err)
		}
	}
	if n := c.Edge.Backlog(); n != 0 {
		t.Errorf("%d outcomes wait", n)
	}
	for id, want := range map[string]record.State{"x1": "confirmed", "x2": "released", "x3": "in_doubt", "x4": "held", "r000": "", "r001": ""} {
		if got := stocktest.State(t, c.Direct, id); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	if err := c.Server.Client().ConfigSet(stocktest.Soon(t), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	c.Audit()
}

// An attempt that leaves the queue is not in the call, and has nothing to take back;
// one that leaves while the call is under way is taken back.
func TestEachHasItsOwnDeadline(t *testing.T) {
	c := newCrowded(t)
	c.Proxy.HoldRequests("EVALSHA")
	ctx, leave := context.WithCancel(context.Background())
	attempt := func(ctx context.Context, id string) {
		c.ask(id, func() error { _, _, err := stocktest.Hold(ctx, c.Edge, id, id, 1); return err })
	}
	attempt(ctx, "sent")
	if err := c.Proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	attempt(ctx, "queued")
	attempt(context.Background(), "stays")
	stocktest.Eventually(t, "two in the queue", func() bool { return c.Edge.Store.Waiting() == 2 })
	leave()
	stocktest.Eventually(t, "both have left", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.errs) == 2
	})
	if n := c.Edge.Backlog(); n != 1 {
		t.Errorf("%d are taken back, want the one that was sent", n)
	}
	c.Proxy.ReleaseRequests()
	c.wg.Wait()
	if err := c.errs["stays"]; err != nil {
		t.Error(err)
	}
	c.Told()
	for id, want := range map[string]record.State{"sent": "released", "queued": "", "stays": "held"} {
		if got := stocktest.State(t, c.Direct, id); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	c.Audit()
}

// Shared rates are asked for together, each attempt by itself.
func TestRatesTogether(t *testing.T) {
	c := newCrowded(t)
	rate := rates.NewRate("r", 1, time.Hour, 5)
	var over int
	take := func(key string) func() error {
		return func() error {
			i, _, err := c.Edge.Rates().Take(context.Background(), []rates.Try{{Rate: rate, Key: key}})
			if i >= 0 {
				c.mu.Lock()
				over++
				c.mu.Unlock()
			}
			return err
		}
	}
	if err := take("another")(); err != nil { // redis gets the script
		t.Fatal(err)
	}
	before := c.Proxy.Requests("EVALSHA")
	c.Proxy.HoldRequests("EVALSHA")
	c.ask("first", take("another"))
	if err := c.Proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		c.ask(fmt.Sprint(i), take("one"))
	}
	stocktest.Eventually(t, "all in the queue", func() bool { return c.Edge.Rates().Waiting() == 20 })
	c.Proxy.ReleaseRequests()
	c.wg.Wait()
	c.all(fine)
	if over != 15 {
		t.Errorf("%d of 20 are over a rate of 5, want 15", over)
	}
	if n := c.Proxy.Requests("EVALSHA") - before; n != 2 {
		t.Errorf("%d calls were made, want 2", n)
	}
}
