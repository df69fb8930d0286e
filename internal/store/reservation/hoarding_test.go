package reservation_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// These tests are the table "Hoarding" of docs/security.md: fake buyers hold whatever is
// free and never pay, against honest buyers who do.

const hoardedUnits = 20

// hoard is a sale under attack. Fake buyers are always faster: whatever is free at a moment
// they have before any honest buyer asks. They obey Retry-After, because asking earlier
// brings them nothing.
type hoard struct {
	t    *testing.T
	edge *edge.Edge
	now  time.Time // of Redis and of the edge
	step func(time.Duration)

	holdFor time.Duration
	work    *work // where the gate has a challenge
	fakes   []fake
	honest  []honest
	made    int
	paying  map[string]time.Time // holds of honest buyers, and when they pay
	bought  int
}

// fake is a buyer who never pays.
type fake struct {
	name, address string
	again         time.Time // when asking may bring something
}

// honest is a buyer who pays a quarter of the hold's time after getting one.
type honest struct{ done bool }

// attack is one row of the table.
type attack struct {
	fakes, addresses int
	holdFor          time.Duration
	unpaid           *sale.Unpaid
}

// newHoard opens the sale on a server whose clock the test steps. Forty honest buyers ask,
// each from an own address.
func newHoard(t *testing.T, s *server, a attack) *hoard {
	h := &hoard{t: t, now: time.Now().Truncate(time.Second), holdFor: a.holdFor, honest: make([]honest, 40), paying: map[string]time.Time{}}
	if err := s.client.FlushAll(stocktest.Soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	passed := time.Now()
	h.step = func(d time.Duration) {
		h.now, passed = h.now.Add(d), passed.Add(d)
		s.setTime(h.now.UnixMilli())
	}
	h.step(0)
	h.edge = stocktest.NewEdge(t, s.options, edge.Options{})
	h.edge.Store.Shard().Measure(func() time.Time { return passed })
	if err := h.edge.Refresh(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	file := stocktest.OpenSale("s", hoardedUnits)
	file.Unpaid = a.unpaid
	stocktest.Load(t, h.edge.Store, file)
	if err := h.edge.Refresh(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	for i := range a.fakes {
		h.fakes = append(h.fakes, fake{name: fmt.Sprint("fake", i), address: fmt.Sprintf("192.0.2.%d", i%a.addresses)})
		if a.addresses > 250 {
			h.fakes[i].address = fmt.Sprintf("10.0.%d.%d", i/250, i%250)
		}
	}
	return h
}

// request is one attempt of a buyer to get a unit.
type request struct {
	id, buyer, address string
	no                 *sale.Refusal
	err                error
}

// try asks for a unit.
func (h *hoard) try(buyer, address string) (id string, no *sale.Refusal) {
	h.t.Helper()
	r := h.request(buyer, address)
	if r.no == nil {
		h.hold(stocktest.Soon(h.t), r)
	}
	if r.err != nil {
		h.t.Fatal(r.err)
	}
	return r.id, r.no
}

// request is refused where the machine cannot do the work for it.
func (h *hoard) request(buyer, address string) *request {
	h.made++
	r := &request{id: fmt.Sprint("r", h.made), buyer: buyer, address: address}
	if h.work != nil && !h.work.passes(h.now, address) {
		r.no = &sale.Refusal{Reason: sale.Challenge}
	}
	return r
}

func (h *hoard) hold(ctx context.Context, r *request) {
	l, _ := h.edge.Catalogue().Sale("s")
	a := &sale.Attempt{Buyer: r.buyer, Identities: map[string]string{"ip": r.address}, Lines: []sale.Line{{SKU: "a", Quantity: 1}}, Key: r.id, Print: "print"}
	_, r.no, r.err = h.edge.Hold(ctx, r.id, l, a, a.Lines, edge.HoldOptions{HoldFor: h.holdFor, Margin: time.Second, Mode: record.ModeBackend})
}

// moment is one moment of the attack.
func (h *hoard) moment() {
	h.t.Helper()
	for id, at := range h.paying {
		if !at.After(h.now) {
			if state, err := h.edge.Store.Confirm(stocktest.Soon(h.t), "s", id, reservation.SourceShop, "paid"); err != nil || state != record.Confirmed {
				h.t.Fatalf("an honest buyer pays: %s, %v", state, err)
			}
			delete(h.paying, id)
			h.bought++
		}
	}
	if _, err := h.edge.Store.Expire(stocktest.Soon(h.t), "s"); err != nil {
		h.t.Fatal(err)
	}
	h.take()
	h.ask()
}

// take lets the fake buyers take turns until nothing is free or none of them may.
func (h *hoard) take() {
	h.t.Helper()
	n := 1 // a refusal may be the first answer
	for more := true; more; {
		var those []*fake
		for i := range h.fakes {
			if f := &h.fakes[i]; !f.again.After(h.now) {
				those = append(those, f)
			}
		}
		more = false
		for ; len(those) > 0; n = min(2*n, 64) {
			now := those[:min(n, len(those))]
			got, over := h.together(now)
			if over {
				return
			}
			more, those = more || got, those[len(now):]
		}
	}
}

// together lets fake buyers ask in one call, one after the other. It reports whether any got a unit, and whether nothing is free or
// the machine has done all the work that it can: those that asked after that need not have asked.
func (h *hoard) together(those []*fake) (got, over bool) {
	h.t.Helper()
	var requests []*request
	var asks []func(context.Context)
	for _, f := range those {
		r := h.request(f.name, f.address)
		requests = append(requests, r)
		if r.no != nil {
			break
		}
		asks = append(asks, func(ctx context.Context) { h.hold(ctx, r) })
	}
	h.edge.Store.InOneCall("s", asks...)
	for i, r := range requests {
		f := those[i]
		switch {
		case r.err != nil:
			h.t.Fatal(r.err)
		case r.no == nil && over:
			h.t.Fatalf("%s got a unit when none was free", f.name)
		case r.no == nil:
			got = true
		case over:
		case r.no.Reason == sale.AllHeld || r.no.Reason == sale.SoldOut || r.no.Reason == sale.Challenge:
			over = true
		case r.no.Reason != sale.TooManyUnpaid:
			h.t.Fatalf("refused %+v", r.no)
		case r.no.RetryAfter > 0:
			f.again = h.now.Add(time.Duration(r.no.RetryAfter) * time.Second)
		default: // a hold of its own, or of its address, must end first
			f.again = h.now.Add(time.Second)
		}
	}
	return got, over
}

// ask lets each honest buyer who has nothing yet ask.
func (h *hoard) ask() {
	h.t.Helper()
	for i := range h.honest {
		if h.honest[i].done {
			continue
		}
		id, no := h.try(fmt.Sprint("honest", i), fmt.Sprint("198.51.100.", i))
		if no == nil {
			h.honest[i].done, h.paying[id] = true, h.now.Add(h.holdFor/4)
		} else if no.Reason == sale.SoldOut || no.Reason == sale.AllHeld {
			return
		} else {
			h.t.Fatalf("an honest buyer is refused: %+v", no)
		}
	}
}

// run lets the attack go on for a time, and returns what honest buyers have bought, and after
// which time they had half of the units; 0: they had less.
func (h *hoard) run(lasts, every time.Duration) (bought int, half time.Duration) {
	h.t.Helper()
	for passed := time.Duration(0); passed <= lasts && h.bought < hoardedUnits; passed += every {
		h.moment()
		if half == 0 && h.bought >= hoardedUnits/2 {
			half = passed
		}
		h.step(every)
	}
	return h.bought, half
}

// Ten fake buyers do not keep honest ones from half of the units with what counts where the
// sale says nothing. It does keep them where that is switched off.
func TestTenHoardersGetLittle(t *testing.T) {
	for _, s := range servers(t) {
		t.Run(s.name, func(t *testing.T) {
			for _, holdFor := range []time.Duration{4 * time.Second, 15 * time.Minute} {
				a := attack{fakes: 10, addresses: 10, holdFor: holdFor}
				if bought, _ := newHoard(t, s, a).run(8*holdFor, holdFor/4); bought < hoardedUnits/2 {
					t.Errorf("holds of %v: honest buyers have %d of %d units", holdFor, bought, hoardedUnits)
				}
				a.unpaid = &sale.Unpaid{Off: true}
				if bought, _ := newHoard(t, s, a).run(8*holdFor, holdFor/4); bought != 0 {
					t.Errorf("holds of %v, unpaid off: honest buyers have %d units; this is no attack", holdFor, bought)
				}
			}
		})
	}
}

// The table of docs/security.md. Every hold is tried for, so the figures are exact. Rows that have a challenge are what they
// are without it: 20 units take some twenty attempts at a time, which is below the rate at which it begins, and no attempt
// is asked for work.
func TestHoardingTable(t *testing.T) {
	t.Parallel()
	s := servers(t)[0]
	off, perAddress := &sale.Unpaid{Off: true}, &sale.Unpaid{Per: "buyer+ip"}
	short, long := 4*time.Second, 15*time.Minute
	for _, row := range []struct {
		name   string
		attack attack
		lasts  time.Duration
		bought int
		half   time.Duration
		work   *work
	}{
		{"ten, off", attack{10, 10, short, off}, 10 * time.Minute, 0, 0, newWork()},
		{"ten, off, long", attack{10, 10, long, off}, 2 * time.Hour, 0, 0, newWork()},
		{"ten, default", attack{10, 10, short, nil}, 10 * time.Minute, 20, time.Second, nil},
		{"ten, default, long", attack{10, 10, long, nil}, 2 * time.Hour, 20, long / 4, nil},
		{"a thousand, off", attack{1000, 10, short, off}, 10 * time.Minute, 0, 0, nil},
		{"a thousand, off, long", attack{1000, 10, long, off}, 2 * time.Hour, 0, 0, nil},
		{"a thousand, default", attack{1000, 10, short, nil}, 10 * time.Minute, 20, 401 * time.Second, newWork()},
		{"a thousand, default, long", attack{1000, 10, long, nil}, 2 * time.Hour, 0, 0, newWork()},
		{"a thousand, ten addresses", attack{1000, 10, short, perAddress}, 10 * time.Minute, 20, time.Second, nil},
		{"a thousand, ten addresses, long", attack{1000, 10, long, perAddress}, 2 * time.Hour, 20, long / 4, nil},
		{"a thousand, as many addresses", attack{1000, 1000, short, perAddress}, 10 * time.Minute, 20, 401 * time.Second, nil},
		{"a thousand, as many addresses, long", attack{1000, 1000, long, perAddress}, 2 * time.Hour, 0, 0, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHoard(t, s, row.attack)
			h.work = row.work
			bought, half := h.run(row.lasts, row.attack.holdFor/4)
			if bought != row.bought || half != row.half {
				t.Errorf("honest buyers have %d of %d units, half of them after %v; want %d, %v", bought, hoardedUnits, half, row.bought, row.half)
			}
			if h.work != nil && h.work.asked != 0 {
				t.Errorf("%d attempts were asked for work", h.work.asked)
			}
		})
	}
}

// With a shop that answers 500 a buyer put 55 of 60 units in doubt. With unpaid it is two.
func TestDoubtsOfOneBuyer(t *testing.T) {
	for _, s := range servers(t) {
		t.Run(s.name, func(t *testing.T) {
			for _, row := range []struct {
				unpaid *sale.Unpaid
				want   int64
			}{{&sale.Unpaid{}, 2}, {&sale.Unpaid{Ended: 5}, 5}, {nil, 60}} {
				h := newHoard(t, s, attack{holdFor: time.Minute, unpaid: row.unpaid, addresses: 1})
				if _, err := h.edge.Store.Adjust(stocktest.Soon(t), "s", "more", "a", 40, "test"); err != nil {
					t.Fatal(err)
				}
				l, _ := h.edge.Catalogue().Sale("s")
				for i := range 60 {
					id := fmt.Sprint("d", i)
					a := &sale.Attempt{Buyer: "mallory", Lines: []sale.Line{{SKU: "a", Quantity: 1}}, Key: id, Print: "print"}
					_, no, err := h.edge.Hold(stocktest.Soon(t), id, l, a, a.Lines, edge.HoldOptions{HoldFor: time.Minute, Margin: time.Second, Mode: record.ModeResponse})
					if err != nil {
						t.Fatal(err)
					}
					if no != nil {
						continue
					}
					if _, err := h.edge.Store.Doubt(stocktest.Soon(t), "s", id, "status_500"); err != nil {
						t.Fatal(err)
					}
					h.step(time.Second)
				}
				if got := stocktest.CellA(t, h.edge.Store).InDoubt; got != row.want {
					t.Errorf("unpaid %v: %d of 60 units are in doubt, want %d", row.unpaid, got, row.want)
				}
			}
		})
	}
}
