package reservation_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/model"
)

// Whatever carts an order has had, and however their holds ended: as long as one of its tokens is
// good, what that names is held.
func TestTokensOfSwappedHolds(t *testing.T) {
	t.Parallel()
	on := servers(t)
	for seed := range uint64(draw.Times(15, 200)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			w := newTwin(t, on, fmt.Sprint("tokens", seed))
			cells := []string{"a", "b", "c"}
			apply := model.Apply{Starts: noon, Ends: saleEnds}
			for _, cell := range cells {
				apply.Deltas = append(apply.Deltas, model.Delta{Cell: cell, Units: 6})
			}
			w.do(apply, model.SetStatus{Status: "open"})
			current := func() string {
				for id, r := range w.model.Records {
					if r.Ref == "order-1" && (r.State == model.Held || r.State == model.InDoubt) {
						return id
					}
				}
				return ""
			}
			dead := make(map[string]bool) // tokens that the shop has said it will not sell with
			for step := range 30 {
				if t.Failed() {
					return
				}
				id := current()
				cart := take(fmt.Sprint("cart", step), 1)
				cart.Mode, cart.Ref, cart.Lines, cart.Version = "backend", "order-1", nil, w.model.Version
				for _, cell := range cells {
					if n := random.Int64N(4); n > 0 {
						cart.Lines = append(cart.Lines, model.Line{Cell: cell, Units: n})
					}
				}
				switch what := random.IntN(10); {
				case what < 5 && len(cart.Lines) > 0 && id == "":
					w.run(cart)
				case what < 5 && len(cart.Lines) > 0:
					if random.IntN(3) == 0 {
						cart.Mode = "response"
					}
					w.run(model.Swap{Old: id, New: cart})
				case what < 8 && id != "":
					token := id
					for strings.HasSuffix(token, "+") { // it is held for that of another one
						token = strings.TrimPrefix(w.model.Records[strings.TrimSuffix(token, "+")].Print, "+")
					}
					dead[token] = true
					w.run(model.Release{ID: id, Word: []string{"shop", "unsent"}[random.IntN(2)], NotAfter: w.model.Time + 500, Cause: "why"})
				case what == 8 && id != "":
					w.run(model.Doubt{ID: id, Cause: "why"})
				default:
					other := take(fmt.Sprint("other", step), 1+random.Int64N(3))
					other.Lines[0].Cell, other.Buyer, other.Version = cells[random.IntN(3)], "Bob", w.model.Version
					w.run(other)
				}
				w.setTime(w.model.Time + random.Int64N(100))
				if seed%2 == 1 && random.IntN(10) == 0 {
					w.setTime(w.model.Time - 300) // more than the margin
				}
				keepTokens(t, w, fmt.Sprint("after step ", step), dead)
			}
			for w.model.Time < noon+3000 && !t.Failed() {
				w.run(model.Expire{Most: 20})
				keepTokens(t, w, fmt.Sprintf("%d ms later", w.model.Time-noon), dead)
				w.setTime(w.model.Time + 50)
			}
		})
	}
}

// keepTokens fails the test unless all is held that good tokens of order-1 name, but for dead ones.
// Those that are over become dead: a step back of the clock makes none of them good again.
func keepTokens(t *testing.T, w *twin, when string, dead map[string]bool) {
	t.Helper()
	for name, r := range w.model.Records {
		if r.Ref != "order-1" || strings.HasSuffix(name, "+") {
			continue
		}
		dead[name] = dead[name] || r.Exp <= w.model.Time
		if ended := r.State == model.Confirmed || r.State == model.Released && r.Cause != model.Swapped; ended || dead[name] {
			continue
		}
		for _, line := range r.Lines {
			if held := heldBy(w.model, "Ann", line.Cell); held < line.Units {
				t.Errorf("%s the token of %s names %d of %s, and %d are held", when, name, line.Units, line.Cell, held)
			}
		}
	}
}

// A step back of Redis's clock between a swap and the new hold's end shortens no token: the old
// hold, held again, lasts as long as any other one.
func TestHeldAgainAfterAStep(t *testing.T) {
	const margin = 100 // of take
	on := servers(t)
	for _, c := range []struct {
		name                string
		back, holdFor, want int64 // of Redis's clock; of the new hold; ms that the old one lasts beyond its token
		doubt               bool
	}{
		{name: "no step", holdFor: 1000, want: margin},
		{name: "no step, a shorter hold", holdFor: 500, want: margin},
		{name: "no step, in doubt", holdFor: 1000, doubt: true, want: margin},
		{name: "a step", back: 300, holdFor: 1000, want: margin},
		{name: "a step, in doubt", back: 300, holdFor: 1000, doubt: true}, // the margin cannot be known
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTwin(t, on, "again "+c.name)
			cart := func(id string, units, holdFor int64) model.Reserve {
				r := take(id, units)
				r.Mode, r.Ref, r.HoldFor, r.Version = "backend", "order-1", holdFor, w.model.Version
				return r
			}
			w.do(model.Apply{Starts: noon - 1000, Ends: saleEnds, Deltas: []model.Delta{{Cell: "a", Units: 6}}}, model.SetStatus{Status: "open"})
			w.do(cart("x", 2, 1000))
			exp := w.model.Records["x"].Exp
			w.setTime(w.model.Time - c.back)
			w.do(model.Swap{Old: "x", New: cart("y", 1, c.holdFor)})
			if c.doubt {
				w.do(model.Doubt{ID: "y", Cause: "why"})
			}
			w.do(model.Release{ID: "y", Word: "shop", Cause: "why"})
			ends := exp + c.want
			for _, at := range []int64{ends - c.back - 1, ends - 1} {
				w.setTime(at)
				w.run(model.Expire{Most: 20})
				if n := heldBy(w.model, "Ann", "a"); n != 2 {
					t.Fatalf("%d ms before its end %d are held", ends-at, n)
				}
			}
			w.setTime(ends)
			if w.run(model.Expire{Most: 20}); heldBy(w.model, "Ann", "a") != 0 {
				t.Errorf("it is held after its end: %+v", w.model.Records["y+"])
			}
		})
	}
}

// heldBy is how many units of a cell a buyer has that are not on sale.
func heldBy(s *model.Shard, buyer, cell string) (n int64) {
	for _, r := range s.Records {
		if r.Buyer == buyer && (r.State == model.Held || r.State == model.InDoubt) {
			for _, line := range r.Lines {
				if line.Cell == cell {
					n += line.Units
				}
			}
		}
	}
	return n
}
