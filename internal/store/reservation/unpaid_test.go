package reservation_test

import (
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// owes puts a reserve request into counters of unpaid holds: one at a time, two that ended in an hour.
func owes(fields ...string) func(*reservation.ReserveRequest) {
	return func(c *reservation.ReserveRequest) {
		c.Mode, c.Unpaid = record.ModeBackend, reservation.Owed{Fields: fields, AtOnce: 1, Ended: 2, Within: time.Hour}
	}
}

// tooMany fails the test unless a reserve request is refused for unpaid holds, with so many seconds.
func (c *clocked) tooMany(id string, retryAfter int64, edit ...func(*reservation.ReserveRequest)) {
	c.t.Helper()
	_, no, err := c.Reserve(stocktest.Soon(c.t), c.claimOf(id, edit...))
	if err != nil || no == nil || no.Reason != sale.TooManyUnpaid || no.RetryAfter != retryAfter {
		c.t.Fatalf("%s: refused %+v, %v; want too_many_unpaid after %d s", id, no, err, retryAfter)
	}
	if got := stocktest.State(c.t, c.Store, id); got != "" {
		c.t.Fatalf("%s was refused and is %s", id, got)
	}
}

// lapses lets a hold end unpaid: it is made, and its minute passes.
func (c *clocked) lapses(id string, edit ...func(*reservation.ReserveRequest)) {
	c.t.Helper()
	c.reserve(id, edit...)
	c.endsAt(time.Minute)
}

// unpaid are the counters as they are kept.
func (c *clocked) unpaid() map[string]string {
	c.t.Helper()
	return stocktest.Balanced(c.t, c.server.client, c.Store, "s").Unpaid
}

// One unpaid hold at a time; two that ended unpaid in an hour refuse the next, and the time
// that is told is exact.
func TestUnpaidHolds(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		ann := owes("buyer|Ann")
		c.reserve("one", ann)
		c.tooMany("beside it", 0, ann)
		c.reserve("of another", owes("buyer|Bob"))
		c.step(time.Minute)
		c.end(2)
		c.step(10 * time.Minute)
		c.lapses("two", ann)
		// the first ended eleven minutes ago
		c.tooMany("three", 49*60, ann)
		c.step(49*time.Minute - time.Millisecond)
		c.tooMany("three", 1, ann)
		c.step(time.Millisecond)
		c.reserve("three", ann)
	})
}

// What was sold in the end does not count, whatever it was before: held, expired or in doubt.
func TestUnpaidIsTakenBack(t *testing.T) {
	eachClock(t, 99, func(t *testing.T, c *clocked) {
		ann, inResponse := owes("buyer|Ann"), inMode(record.ModeResponse)
		for _, end := range []func(id string){
			func(id string) { c.reserve(id, ann) },
			func(id string) { c.lapses(id, ann) },
			func(id string) {
				c.reserve(id, ann, inResponse)
				c.must(record.InDoubt)(c.Doubt(stocktest.Soon(t), "s", id, "status_500"))
			},
			func(id string) {
				c.reserve(id, ann, inResponse)
				c.endsAt(time.Minute)
			},
			func(id string) {
				c.lapses(id, ann)
				c.must(record.Released)(c.Release(stocktest.Soon(t), "s", id, reservation.SourceOperator, "tidied up"))
			},
		} {
			for range 3 { // three that are not sold would be too many
				id := "r" + c.now.String()
				end(id)
				c.must(record.Confirmed)(c.Confirm(stocktest.Soon(t), "s", id, reservation.SourceOperator, "paid"))
				if left := c.unpaid(); len(left) > 0 {
					t.Fatalf("after a sale the counters are %v", left)
				}
				c.step(time.Second)
			}
		}
	})
}

// A hold that the shop releases in time costs nothing. One that ended unpaid or in doubt
// counts, from whatever source it is released afterwards.
func TestUnpaidIsReleased(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		ann := owes("buyer|Ann")
		for _, id := range []string{"a", "b", "c"} {
			c.reserve(id, ann)
			c.must(record.Released)(c.Release(stocktest.Soon(t), "s", id, reservation.SourceShop, "cancelled"))
		}
		if left := c.unpaid(); len(left) > 0 {
			t.Errorf("the counters are %v", left)
		}
		c.lapses("expired", ann)
		c.must(record.Released)(c.Release(stocktest.Soon(t), "s", "expired", reservation.SourceShop, "cron"))
		c.reserve("in doubt", ann, inMode(record.ModeResponse))
		c.must(record.InDoubt)(c.Doubt(stocktest.Soon(t), "s", "in doubt", "status_500"))
		c.must(record.Released)(c.Release(stocktest.Soon(t), "s", "in doubt", reservation.SourceShop, "cron"))
		c.tooMany("next", 3600, ann)
	})
}

// Each identity is counted by itself, and any of them refuses; attempts of one call see each
// other; who has a hold hears of it first.
func TestUnpaidOfSeveralIdentities(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.reserve("ann", owes("buyer|Ann", "ip|1"), bindTo("k|ann"))
		c.tooMany("bob at her address", 0, owes("buyer|Bob", "ip|1"))
		c.tooMany("ann elsewhere", 0, owes("buyer|Ann", "ip|2"))
		c.reserve("bob", owes("buyer|Bob", "ip|2"))
		if b := c.bound("again", owes("buyer|Ann", "ip|1"), bindTo("k|ann")); b == nil || b.ID != "ann" {
			t.Errorf("the same key is bound to %+v", b)
		}
		c.reserve("ann", owes("buyer|Ann", "ip|1"), bindTo("k|ann")) // the same reserve, repeated
		_, replies, err := c.Call(stocktest.Soon(t), "s",
			reservation.Operation{Claim: c.claimOf("x", owes("buyer|Cat", "ip|3")), NotAfter: forever},
			reservation.Operation{Claim: c.claimOf("y", owes("buyer|Dan")), NotAfter: forever},
			reservation.Operation{Claim: c.claimOf("z", owes("ip|4", "ip|3")), NotAfter: forever},
			reservation.Operation{Claim: c.claimOf("plain"), NotAfter: forever})
		if err != nil || replies[0][0] != "ok" || replies[1][0] != "ok" || replies[2][0] != "unpaid" || replies[3][0] != "ok" {
			t.Errorf("of one call: %v, %v", replies, err)
		}
		want := map[string]string{"buyer|Ann": "1", "ip|1": "1", "buyer|Bob": "1", "ip|2": "1", "buyer|Cat": "1", "ip|3": "1", "buyer|Dan": "1"}
		if got := c.unpaid(); !maps.Equal(got, want) {
			t.Errorf("the counters are %v, want %v", got, want)
		}
	})
}

func bindTo(field string) func(*reservation.ReserveRequest) {
	return func(c *reservation.ReserveRequest) {
		c.Binding = reservation.Binding{Field: field, Print: "print", TTL: time.Hour}
	}
}

// Counters in which nothing counts go, also those of identities that never come back; a hold
// that goes on keeps its own.
func TestUnpaidCountersGo(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		lapse := func(want int) {
			t.Helper()
			next, n, err := c.Lapse(stocktest.Soon(t), "s", "0", time.Hour)
			if next != "0" || n != want || err != nil {
				t.Errorf("%d counters go, next %s, %v; want %d", n, next, err, want)
			}
		}
		c.lapses("one", owes("buyer|Ann", "ip|1"))
		c.reserve("two", owes("buyer|Bob", "ip|1"), func(cl *reservation.ReserveRequest) { cl.HoldFor = 3 * time.Hour })
		c.step(time.Hour - time.Millisecond)
		lapse(0)
		c.step(time.Millisecond)
		lapse(1)
		if got := c.unpaid(); got["buyer|Bob"] != "1" || len(got) != 2 {
			t.Errorf("the counters are %v", got)
		}
		c.must(record.Released)(c.Release(stocktest.Soon(t), "s", "two", reservation.SourceShop, ""))
		lapse(1) // the time of the address
		if got := c.unpaid(); len(got) > 0 {
			t.Errorf("the counters are %v", got)
		}
	})
}

// A lead of the shard's clock that ends takes no buyer's time away: what seems to have
// ended later than now does not count.
func TestUnpaidAfterALead(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		ann := owes("buyer|Ann")
		c.lapses("one", ann)
		c.lapses("two", ann)
		c.reserve("keeps the lead", owes("buyer|Bob"))
		c.jump(-2 * time.Hour)
		c.heard()
		c.tooMany("three", 3539, ann)
		if _, _, err := c.Align(stocktest.Soon(t), "s", "test"); err != nil {
			t.Fatal(err)
		}
		c.reserve("three", ann)
	})
}

// From the first hold that is counted on, an edge that does not know the counters leaves the
// sale alone.
func TestUnpaidIsOfANewerSchema(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		meta := c.Shard().ShardKeys("s")[0]
		schema := func() string { return c.server.client.HGet(stocktest.Soon(t), meta, "schema").Val() }
		if err := c.server.client.HSet(stocktest.Soon(t), meta, "schema", "1").Err(); err != nil {
			t.Fatal(err)
		}
		c.reserve("plain")
		if got := schema(); got != "1" {
			t.Errorf("a hold that is not counted makes the schema %s", got)
		}
		c.reserve("counted", owes("buyer|Ann"))
		if got := schema(); got != "2" { // not the newest that this edge understands: see docs/runbook.md#upgrade
			t.Errorf("a hold that is counted makes the schema %s", got)
		}
	})
}

// An edge counts what the sale says of unpaid holds, from the next attempt on.
func TestUnpaidOfASale(t *testing.T) {
	eachClock(t, 99, func(t *testing.T, c *clocked) {
		e := stocktest.NewEdge(t, c.server.options, edge.Options{})
		e.Store.Shard().Measure(func() time.Time { return c.passed })
		says := func(u *sale.Unpaid) {
			t.Helper()
			file := stocktest.OpenSale("s", 99)
			file.Unpaid = u
			if u != nil && u.Per == "ip" {
				file.Missing = sale.SkipMissing
			}
			if _, err := e.ApplyUnlessLost(stocktest.Soon(t), file, reservation.ApplyOptions{By: "test", Force: true}); err != nil {
				t.Fatal(err)
			}
			if err := e.Refresh(stocktest.Soon(t)); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		try := func(mode record.Mode, buyer string, identities map[string]string) sale.Reason {
			t.Helper()
			n++
			l, _ := e.Catalogue().Sale("s")
			a := &sale.Attempt{Buyer: buyer, Identities: identities, Lines: []sale.Line{{SKU: "a", Quantity: 1}}, Key: string(rune('A' + n)), Print: "p"}
			_, no, err := e.Hold(stocktest.Soon(t), string(rune('A'+n)), l, a, a.Lines, edge.HoldOptions{HoldFor: time.Hour, Margin: time.Minute, Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			if no == nil {
				return ""
			}
			return no.Reason
		}
		expect := func(got, want sale.Reason) {
			t.Helper()
			if got != want {
				t.Errorf("refused %q, want %q", got, want)
			}
		}
		says(nil)
		expect(try(record.ModeResponse, "Ann", nil), "")
		expect(try(record.ModeResponse, "Ann", nil), "")
		expect(try(record.ModeBackend, "Ann", nil), "")
		expect(try(record.ModeBackend, "Ann", nil), sale.TooManyUnpaid)
		expect(try(record.ModeResponse, "Ann", nil), "")
		says(&sale.Unpaid{Off: true})
		expect(try(record.ModeBackend, "Ann", nil), "")
		says(&sale.Unpaid{AtOnce: 2})
		expect(try(record.ModeResponse, "Ann", nil), "") // one that is counted was made before
		expect(try(record.ModeBackend, "Ann", nil), sale.TooManyUnpaid)
		says(&sale.Unpaid{Per: "buyer+phone"})
		expect(try(record.ModeBackend, "Bob", nil), sale.Malformed)
		expect(try(record.ModeBackend, "Bob", map[string]string{"phone": "+1 23"}), "")
		expect(try(record.ModeBackend, "Cat", map[string]string{"phone": "+123"}), sale.TooManyUnpaid)
		says(&sale.Unpaid{Per: "ip"})
		expect(try(record.ModeBackend, "Ann", nil), "") // missing: skip
		expect(try(record.ModeBackend, "Ann", map[string]string{"ip": "2001:db8::1"}), "")
		expect(try(record.ModeBackend, "Dan", map[string]string{"ip": "2001:db8::2"}), sale.TooManyUnpaid)
	})
}

// An edge drops counters by itself, without a request.
func TestUnpaidCountersGoByThemselves(t *testing.T) {
	b := redistest.Start(t)
	e := stocktest.Selling(t, stocktest.Options(b), 5)
	key := e.Store.Shard().ShardKeys("s")[12]
	for field, text := range map[string]string{"buyer|long ago": "0 1", "buyer|now": "0 " + strconv.FormatInt(time.Now().UnixMilli(), 10)} {
		if err := b.Client().HSet(stocktest.Soon(t), key, field, text).Err(); err != nil {
			t.Fatal(err)
		}
	}
	e.Start()
	stocktest.Eventually(t, "the counter of long ago is dropped", func() bool {
		return !b.Client().HExists(stocktest.Soon(t), key, "buyer|long ago").Val()
	})
	if !b.Client().HExists(stocktest.Soon(t), key, "buyer|now").Val() {
		t.Error("one that counts is gone too")
	}
}
