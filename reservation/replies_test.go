package reservation_test

import (
	"errors"
	"testing"

	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

// The reply to an operation is lost after Redis has run it. Whoever asked repeats
// it, the edge by itself or its caller, and it takes effect once.
func TestLostReplies(t *testing.T) {
	tests := map[string]struct {
		state reservation.State // of "r1" before; empty: it is unknown
		do    func(*faulty) error
		// lost: the caller is told that Redis does not answer
		lost bool
		// again is what the caller does then; nil: the edge goes on by itself
		again func(*faulty) error
		want  reservation.State // of "r1" at the end
		kind  string            // of the one journal entry that it leaves
	}{
		"reserve": {do: func(f *faulty) error { return reserveOnce(f, "r1") }, want: reservation.Held, kind: "held"},
		"confirm": {
			state: reservation.Held, lost: true, want: reservation.Confirmed, kind: "confirmed",
			do: func(f *faulty) error {
				_, err := f.edge.ConfirmEventually(soon(f.t), "s", "r1", "status_200")
				return err
			},
		},
		"release": {
			state: reservation.Held, lost: true, want: reservation.Released, kind: "released",
			do: func(f *faulty) error {
				_, err := f.edge.ReleaseEventually(soon(f.t), "s", "r1", reservation.Shop, "status_422")
				return err
			},
		},
		"doubt": {
			state: reservation.Held, lost: true, want: reservation.InDoubt, kind: "in_doubt",
			do: func(f *faulty) error { _, err := f.edge.DoubtEventually(soon(f.t), "s", "r1", "timeout"); return err },
		},
		"expire": {
			state: reservation.Held, lost: true, want: reservation.InDoubt, kind: "in_doubt",
			do: func(f *faulty) error { _, err := f.edge.Store.Expire(soon(f.t), "s"); return err },
			again: func(f *faulty) error {
				if n, err := f.edge.Store.Expire(soon(f.t), "s"); err != nil || n != 0 {
					f.t.Errorf("the second time %d ended, %v; want none", n, err)
				}
				return nil
			},
		},
		"adjust": {
			lost: true, kind: "adjusted",
			do: func(f *faulty) error { _, err := f.edge.Store.Adjust(soon(f.t), "s", "j1", "a", 4, "me"); return err },
			again: func(f *faulty) error {
				stock, err := f.edge.Store.Adjust(soon(f.t), "s", "j1", "a", 4, "me")
				if stock != 7 {
					f.t.Errorf("the stock is %d, want 7", stock)
				}
				return err
			},
		},
		"apply": {
			lost: true, kind: "loaded",
			do: func(f *faulty) error {
				_, err := f.edge.ApplyUnlessLost(soon(f.t), lower(f), reservation.ApplyOptions{})
				return err
			},
			again: func(f *faulty) error {
				a, err := f.edge.ApplyUnlessLost(soon(f.t), lower(f), reservation.ApplyOptions{})
				if err == nil && !a.Same {
					f.t.Errorf("the same file again changes %v", a.Changes)
				}
				return err
			},
		},
		"status": {
			lost: true, kind: "paused",
			do:    func(f *faulty) error { return f.edge.Store.SetStatus(soon(f.t), "s", sale.Paused, "me") },
			again: func(f *faulty) error { return f.edge.Store.SetStatus(soon(f.t), "s", sale.Paused, "me") },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFaulty(t, long)
			if test.state != "" {
				short := terms
				if name == "expire" {
					short.HoldFor = 0
				}
				holdFor(f, "r1", short)
			}
			before := len(f.audit().journal)
			f.proxy.CutReplies(1, "EVALSHA")
			if err := test.do(f); errors.Is(err, reservation.ErrUnavailable) != test.lost || err != nil && !test.lost {
				t.Fatalf("it fails with %v; lost: %v", err, test.lost)
			}
			if left := f.proxy.CutsLeft(); left != 0 {
				t.Fatal("no reply was cut: the test proves nothing")
			}
			if ran := f.audit().journal[before:]; len(ran) == 0 || ran[0].Kind != test.kind {
				t.Fatalf("the journal has %+v: it did not run", ran)
			}
			if test.again != nil {
				if err := test.again(f); err != nil {
					t.Errorf("again: %v", err)
				}
			} else {
				if got := f.edge.Backlog() == 1; got != test.lost {
					t.Errorf("%d outcomes wait", f.edge.Backlog())
				}
				f.told()
			}
			if got := state(t, f.direct, "r1"); got != test.want {
				t.Errorf("the reservation is %q, want %q", got, test.want)
			}
			entries := 0
			for _, e := range f.audit().journal[before:] {
				if e.Kind == test.kind {
					entries++
				}
			}
			if entries != 1 {
				t.Errorf("the journal has %d entries %s, want one", entries, test.kind)
			}
		})
	}
}

// When every try of a reserve is lost, the edge gives up and takes it back.
func TestEveryReplyLost(t *testing.T) {
	f := newFaulty(t, long)
	f.proxy.CutReplies(3, "EVALSHA")
	if err := reserveOnce(f, "r1"); !errors.Is(err, reservation.ErrUnavailable) {
		t.Fatalf("the hold fails with %v, want %v", err, reservation.ErrUnavailable)
	}
	if got := state(t, f.direct, "r1"); got != reservation.Held {
		t.Fatalf("the reservation is %q, want held: the test proves nothing", got)
	}
	f.told()
	f.nothingHeld()
}

func reserveOnce(f *faulty, id string) error {
	_, refusal, err := hold(soon(f.t), f.edge, id, "Ann", 1)
	if refusal != nil {
		f.t.Errorf("refused: %+v", refusal)
	}
	return err
}

// holdFor holds one unit of "a" on other terms.
func holdFor(f *faulty, id string, terms reservation.Terms) {
	f.t.Helper()
	l, _ := f.edge.Catalogue().Sale("s")
	a := &sale.Attempt{Buyer: "Ann of " + id, Lines: []sale.Line{{SKU: "a", Quantity: 1}}, Key: id, Print: "print"}
	if _, refusal, err := f.edge.Hold(soon(f.t), id, l, a, a.Lines, terms); err != nil || refusal != nil {
		f.t.Fatalf("refused %v, %v", refusal, err)
	}
}

// lower is the sale with one unit less of "a".
func lower(f *faulty) *sale.Sale {
	l, ok := f.edge.Catalogue().Sale("s")
	if !ok {
		f.t.Fatal("the edge does not know the sale")
	}
	file := *l.Sale
	file.Items = append([]sale.Item(nil), file.Items...)
	file.Items[0].Stock = 2
	return &file
}
