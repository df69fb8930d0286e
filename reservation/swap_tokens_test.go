package reservation_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/model"
)

// Whatever carts an order has had, and however their holds ended: as long as one of its tokens is
// good, what that names is held.
func TestTokensOfSwappedHolds(t *testing.T) {
	on := servers(t)
	for seed := range uint64(60) {
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
				for name, r := range w.model.Records {
					good := r.State == model.Held || r.State == model.InDoubt || r.State == model.Released && r.Cause == model.Swapped
					if r.Ref != "order-1" || !good || dead[name] || strings.HasSuffix(name, "+") || r.Exp <= w.model.Time {
						continue
					}
					for _, line := range r.Lines {
						if held := heldBy(w.model, "Ann", line.Cell); held < line.Units {
							t.Errorf("after step %d the token of %s names %d of %s, and %d are held", step, name, line.Units, line.Cell, held)
						}
					}
				}
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
