package reservation_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// do makes a call and tells what was answered.
func (on *server) do(t testing.TB, s *reservation.Store, sale string, in asked) answered {
	if in.clock != 0 {
		on.setTime(in.clock)
		return answered{}
	}
	out, err := on.ask(stocktest.Soon(t), s, sale, in)
	if err != nil {
		t.Errorf("%+v: %v", in, err)
	}
	return out
}

func (on *server) ask(ctx context.Context, s *reservation.Store, sale string, in asked) (answered, error) {
	calls := make([]reservation.Operation, len(in.ops))
	for i, op := range in.ops {
		calls[i] = wire(op)
	}
	_, seq, replies, err := s.CallSeq(ctx, sale, reservation.Unbounded, calls...)
	if err != nil {
		return answered{}, err
	}
	out := answered{seq: seq, replies: []model.Reply{}}
	for _, r := range replies {
		out.replies = append(out.replies, r)
	}
	return out, nil
}

// bad is a client behind a bad connection.
type bad struct {
	proxy   *redistest.Proxy
	options shard.Options // to go through it
	store   *reservation.Store
	calls   int
}

func newBad(t testing.TB, on *server) *bad {
	p := redistest.NewProxy(t, on.options.Addresses[0])
	o := on.options
	o.Addresses = []string{p.Addr()}
	b := &bad{proxy: p, options: o, store: stocktest.OpenStore(t, o)}
	if _, _, err := b.store.Call(stocktest.Soon(t), "warm"); err != nil {
		t.Fatal(err)
	}
	return b
}

// call makes a call of which every third is not answered: Redis has done it, or
// does it later, when the client has gone. It is done again then, as edges do. Each
// gets a client of its own, because what is lost never ends.
func (b *bad) call(t testing.TB, h *history, id int, on *server, sale string, in asked) {
	b.calls++
	switch {
	case in.clock != 0 || b.calls%3 > 0:
		h.client(id, in, func() answered { return on.do(t, b.store, sale, in) })
		return
	case b.calls%2 == 0:
		b.proxy.CutReplies(1, "EVALSHA")
		h.client(id, in, func() answered {
			out, err := on.ask(stocktest.Soon(t), b.store, sale, in)
			if err == nil {
				t.Errorf("%+v was answered: %v", in, out)
			}
			return answered{}
		})
	default:
		b.proxy.HoldRequests("EVALSHA")
		h.client(id, in, func() answered {
			edge, err := reservation.Open(b.options)
			if err != nil {
				t.Error(err)
				return answered{}
			}
			gone := make(chan error, 1)
			go func() { // an edge that is killed while its call is under way
				gone <- b.proxy.WaitHeld(stocktest.Soon(t))
				edge.Close()
			}()
			if out, err := on.ask(stocktest.Soon(t), edge, sale, in); err == nil {
				t.Errorf("%+v was answered: %v", in, out)
			}
			if err := <-gone; err != nil {
				t.Error(err)
			}
			return answered{}
		})
		b.proxy.ReleaseRequests() // it arrives now, beside what comes next
	}
	h.client(id+100, in, func() answered { return on.do(t, b.store, sale, in) })
}

// drawCalls draws what one client does: all of them speak of the same few
// reservations, keys and return ids.
func drawCalls(random *rand.Rand, n int) []asked {
	calls := make([]asked, n)
	for i := range calls {
		if random.IntN(12) == 0 {
			calls[i].clock = noon + int64(random.IntN(4))*500
			continue
		}
		calls[i].ops = []model.Operation{drawOp(random)}
		if next := drawOp(random); random.IntN(4) == 0 && isReserve(next) == isReserve(calls[i].ops[0]) && batched(next) && batched(calls[i].ops[0]) {
			calls[i].ops = append(calls[i].ops, next)
		}
	}
	return calls
}

// isReserve reports whether an operation has a script for itself.
func isReserve(op model.Operation) bool {
	_, is := op.(model.Reserve)
	return is
}

// batched reports whether an operation looks only at what its call has changed so far.
func batched(op model.Operation) bool {
	switch op.(type) {
	case model.Expire, model.Probe:
		return false
	}
	return true
}

func drawOp(random *rand.Rand) model.Operation {
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	id := one("r1", "r2", "r3")
	switch random.IntN(17) {
	case 0, 1, 2, 3:
		return reserveLinear(id)
	case 4, 5, 6:
		return model.Confirm{ID: id, Word: one(confirmWords...)}
	case 7, 8:
		return model.Release{ID: id, Word: one("shop", "unsent", "unheard", "operator", "probe", "force"), NotAfter: noon + 1}
	case 9:
		return model.Doubt{ID: id}
	case 10:
		return model.Extend{ID: id, HoldFor: int64(random.IntN(3)) * 600, Longest: 2000}
	case 11:
		o := model.Return{ID: id, Return: one("x", "y"), Restock: random.IntN(2) == 0}
		if random.IntN(2) == 0 {
			o.Lines = []model.Line{{Cell: "a", Units: 1}}
		}
		return o
	case 12:
		return model.Free{ID: id}
	case 15:
		return model.Sold{ID: id, Word: "answer", More: reservation.MoreOf(id), Lines: []model.Line{{Cell: "a", Units: int64(1 + random.IntN(2))}}}
	case 13:
		r := reserveLinear(id)
		return model.Lookup{Guard: r.Guard, Print: r.Print, Ref: r.Ref, Buyer: r.Buyer, Lines: r.Lines}
	case 14:
		if random.IntN(2) == 0 {
			return model.Expire{Most: 9}
		}
		return model.Probe{Gate: "", Most: 9, Wait: 1, Tries: 3, LongestWait: 1}
	default:
		if random.IntN(2) == 0 {
			return model.Probed{ID: id, Verdict: one("absent", "absent", "present", "unknown")}
		}
		return model.Confirm{ID: id, Word: "shop", Evidence: &model.Evidence{
			Epoch: noon - 1, Created: noon - 1000, Exp: noon, Buyer: "Ann", Ref: "o1", Mode: "backend", Lines: []model.Line{{Cell: "a", Units: 1}},
		}}
	}
}

// reserveLinear is always the same for one id: r1 and r2 are one order under one key,
// r3 is another buyer's order of two units.
func reserveLinear(id string) model.Reserve {
	r := model.Reserve{
		ID: id, Version: 2, NotAfter: forever, HoldFor: 1000, Margin: 100, Mode: "response", Buyer: "Ann", Ref: "o1", Guard: "k|1", Print: "p",
		Lines:  []model.Line{{Cell: "a", Units: 1}},
		Limits: []model.Limit{{Charge: model.Charge{Field: "buyer:sale:units|-|Ann", Amount: 1}, Max: 2, To: forever}},
	}
	if id == "r3" {
		r.Mode, r.Buyer, r.Ref, r.Guard, r.Print = "backend", "Bob", "", "d|1", ""
		r.Lines[0].Units = 2
		r.Limits = nil
	}
	return r
}
