package reservation_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// clocked is a store on a server whose clock the test steps, with the open sale "s".
type clocked struct {
	*reservation.Store
	t      *testing.T
	server *server
	now    time.Time // of the server
	passed time.Time // on the store's own clock
}

// eachClock runs a test on a redis-server and on the embedded one.
func eachClock(t *testing.T, stock int64, run func(*testing.T, *clocked), limits ...sale.Limit) {
	for _, s := range servers(t) {
		t.Run(s.name, func(t *testing.T) {
			c := &clocked{Store: s.store, t: t, server: s, now: time.Now().Truncate(time.Millisecond), passed: time.Now()}
			c.Shard().Measure(func() time.Time { return c.passed })
			c.step(0)
			stocktest.Load(t, s.store, stocktest.OpenSale("s", stock, limits...))
			run(t, c)
			stocktest.Balanced(t, s.client, s.store, "s")
		})
	}
}

// step lets time pass, on the server and for the store.
func (c *clocked) step(d time.Duration) {
	c.t.Helper()
	c.passed = c.passed.Add(d)
	c.jump(d)
}

// jump steps the clock of the server alone.
func (c *clocked) jump(d time.Duration) {
	c.t.Helper()
	c.now = c.now.Add(d)
	c.server.setTime(c.now.UnixMilli())
	if _, _, err := c.Sweep(stocktest.Soon(c.t), "s", "0"); err != nil { // the store hears of it
		c.t.Fatal(err)
	}
}

// lose is what happens when Redis loses everything and the sale is loaded again.
func (c *clocked) lose(stock int64, limits ...sale.Limit) {
	c.t.Helper()
	if err := c.server.client.FlushAll(stocktest.Soon(c.t)).Err(); err != nil {
		c.t.Fatal(err)
	}
	c.step(time.Second)
	stocktest.Load(c.t, c.Store, stocktest.OpenSale("s", stock, limits...))
}

// claimOf is a reserve request for one unit of "a" by Ann, of the present version of the sale.
func (c *clocked) claimOf(id string, edit ...func(*reservation.ReserveRequest)) *reservation.ReserveRequest {
	c.t.Helper()
	b, err := c.SaleStock(stocktest.Soon(c.t), "s")
	if err != nil {
		c.t.Fatal(err)
	}
	claim := &reservation.ReserveRequest{
		ID: id, Sale: "s", Version: b.Version, Buyer: "Ann", Lines: []sale.Line{{SKU: "a", Quantity: 1}},
		HoldFor: time.Minute, Margin: 5 * time.Second, Mode: record.ModeResponse,
	}
	for _, e := range edit {
		e(claim)
	}
	return claim
}

// reserve reserves, and fails the test when that is refused.
func (c *clocked) reserve(id string, edit ...func(*reservation.ReserveRequest)) reservation.Hold {
	c.t.Helper()
	h, refusal, err := c.Reserve(stocktest.Soon(c.t), c.claimOf(id, edit...))
	if err != nil || refusal != nil {
		c.t.Fatalf("reserve %s: %+v, %v", id, refusal, err)
	}
	return h
}

// bound reserves, and returns the reservation that is in the way; nil: it is reserved.
func (c *clocked) bound(id string, edit ...func(*reservation.ReserveRequest)) *reservation.AlreadyBound {
	c.t.Helper()
	_, refusal, err := c.Reserve(stocktest.Soon(c.t), c.claimOf(id, edit...))
	b, ok := errors.AsType[*reservation.AlreadyBound](err)
	if refusal != nil || err != nil && !ok {
		c.t.Fatalf("reserve %s: %+v, %v", id, refusal, err)
	}
	return b
}

func (c *clocked) must(want record.State) func(record.State, error) {
	c.t.Helper()
	return func(got record.State, err error) {
		c.t.Helper()
		if err != nil || got != want {
			c.t.Fatalf("the state is %q, %v; want %s", got, err, want)
		}
	}
}

// cell is where the units of "a" are: stock, available, held, in doubt, confirmed.
func (c *clocked) cell() [5]int64 {
	c.t.Helper()
	a := stocktest.CellA(c.t, c.Store)
	return [5]int64{a.Stock, a.Available, a.Held, a.InDoubt, a.Confirmed}
}

// told returns the kinds of the movements after the first few, with one field of each.
func (c *clocked) told(field string, after int) []string {
	c.t.Helper()
	movements, err := c.Journal().Movements(stocktest.Soon(c.t), "s", int64(after), math.MaxInt32)
	if err != nil {
		c.t.Fatal(err)
	}
	var out []string
	for _, m := range movements {
		text := ""
		if m.Record != nil {
			text = m.Record.Text()
		}
		values := map[string]string{
			"id": m.ID, "was": string(m.Was), "lines": record.UnitsText(m.Lines), "buyer": m.Buyer, "cause": m.Cause, "record": text,
		}
		out = append(out, m.Kind+" "+values[field])
	}
	return out
}

// seq is how many movements the journal has.
func (c *clocked) seq() int {
	c.t.Helper()
	h, err := c.Journal().Head(stocktest.Soon(c.t), "s")
	if err != nil {
		c.t.Fatal(err)
	}
	return int(h.Length)
}

func withKey(key, print string) func(*reservation.ReserveRequest) {
	return func(c *reservation.ReserveRequest) {
		c.Binding = reservation.Binding{Field: "k|" + key, Print: print, TTL: time.Hour}
	}
}

func withSingle(name string) func(*reservation.ReserveRequest) {
	return func(c *reservation.ReserveRequest) { c.Binding.Field = "d|" + name }
}

func withRef(ref string) func(*reservation.ReserveRequest) {
	return func(c *reservation.ReserveRequest) { c.Ref = ref }
}

func inMode(m record.Mode) func(*reservation.ReserveRequest) {
	return func(c *reservation.ReserveRequest) { c.Mode = m }
}

func ofLines(lines ...sale.Line) func(*reservation.ReserveRequest) {
	return func(c *reservation.ReserveRequest) { c.Lines = lines }
}
