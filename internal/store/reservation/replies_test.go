package reservation_test

import (
	"errors"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// The reply to an operation is lost after Redis has run it. The edge or its caller repeats
// the operation, and it takes effect once.
func TestLostReplies(t *testing.T) {
	tests := map[string]struct {
		state record.State // of "r1" before; empty: it is unknown
		do    func(*stocktest.Faulty) error
		// lost: the caller is told that Redis does not answer
		lost bool
		// again is what the caller does then; nil: the edge goes on by itself
		again func(*stocktest.Faulty) error
		want  record.State // of "r1" at the end
		kind  string       // of the one journal entry that it leaves
	}{
		"reserve": {do: func(f *stocktest.Faulty) error { return reserveOnce(f, "r1") }, want: record.Held, kind: "held"},
		"confirm": {
			state: record.Held, lost: true, want: record.Confirmed, kind: "confirmed",
			do: func(f *stocktest.Faulty) error {
				_, err := f.Edge.ConfirmEventually(stocktest.Soon(f.T), "s", "r1", "status_200")
				return err
			},
		},
		"release": {
			state: record.Held, lost: true, want: record.Released, kind: "released",
			do: func(f *stocktest.Faulty) error {
				_, err := f.Edge.ReleaseEventually(stocktest.Soon(f.T), "s", "r1", reservation.SourceShop, "status_422")
				return err
			},
		},
		"doubt": {
			state: record.Held, lost: true, want: record.InDoubt, kind: "in_doubt",
			do: func(f *stocktest.Faulty) error {
				_, err := f.Edge.DoubtEventually(stocktest.Soon(f.T), "s", "r1", "timeout")
				return err
			},
		},
		"expire": {
			state: record.Held, lost: true, want: record.InDoubt, kind: "in_doubt",
			do: func(f *stocktest.Faulty) error { _, err := f.Edge.Store.Expire(stocktest.Soon(f.T), "s"); return err },
			again: func(f *stocktest.Faulty) error {
				if n, err := f.Edge.Store.Expire(stocktest.Soon(f.T), "s"); err != nil || n != 0 {
					f.T.Errorf("the second time %d ended, %v; want none", n, err)
				}
				return nil
			},
		},
		"adjust": {
			lost: true, kind: "adjusted",
			do: func(f *stocktest.Faulty) error {
				_, err := f.Edge.Store.Adjust(stocktest.Soon(f.T), "s", "j1", "a", 4, "me")
				return err
			},
			again: func(f *stocktest.Faulty) error {
				stock, err := f.Edge.Store.Adjust(stocktest.Soon(f.T), "s", "j1", "a", 4, "me")
				if stock != 7 {
					f.T.Errorf("the stock is %d, want 7", stock)
				}
				return err
			},
		},
		"apply": {
			lost: true, kind: "loaded",
			do: func(f *stocktest.Faulty) error {
				_, err := f.Edge.ApplyUnlessLost(stocktest.Soon(f.T), lower(f), reservation.ApplyOptions{})
				return err
			},
			again: func(f *stocktest.Faulty) error {
				a, err := f.Edge.ApplyUnlessLost(stocktest.Soon(f.T), lower(f), reservation.ApplyOptions{})
				if err == nil && !a.Same {
					f.T.Errorf("the same file again changes %v", a.Changes)
				}
				return err
			},
		},
		"status": {
			lost: true, kind: "paused",
			do: func(f *stocktest.Faulty) error {
				return f.Edge.Store.SetStatus(stocktest.Soon(f.T), "s", sale.Paused, "me")
			},
			again: func(f *stocktest.Faulty) error {
				return f.Edge.Store.SetStatus(stocktest.Soon(f.T), "s", sale.Paused, "me")
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := stocktest.NewFaulty(t, stocktest.Long)
			if test.state != "" {
				short := stocktest.HoldOptions
				if name == "expire" {
					short.HoldFor = 0
				}
				stocktest.HoldFor(f, "r1", short)
			}
			before := len(f.Audit().Journal)
			f.Proxy.CutReplies(1, "EVALSHA")
			if err := test.do(f); errors.Is(err, shard.ErrUnavailable) != test.lost || err != nil && !test.lost {
				t.Fatalf("it fails with %v; lost: %v", err, test.lost)
			}
			if left := f.Proxy.CutsLeft(); left != 0 {
				t.Fatal("no reply was cut: the test proves nothing")
			}
			if ran := f.Audit().Journal[before:]; len(ran) == 0 || ran[0].Kind != test.kind {
				t.Fatalf("the journal has %+v: it did not run", ran)
			}
			if test.again != nil {
				if err := test.again(f); err != nil {
					t.Errorf("again: %v", err)
				}
			} else {
				if got := f.Edge.Backlog() == 1; got != test.lost {
					t.Errorf("%d outcomes wait", f.Edge.Backlog())
				}
				f.Told()
			}
			if got := stocktest.State(t, f.Direct, "r1"); got != test.want {
				t.Errorf("the reservation is %q, want %q", got, test.want)
			}
			entries := 0
			for _, e := range f.Audit().Journal[before:] {
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
	f := stocktest.NewFaulty(t, stocktest.Long)
	f.Proxy.CutReplies(3, "EVALSHA")
	if err := reserveOnce(f, "r1"); !errors.Is(err, shard.ErrUnavailable) {
		t.Fatalf("the hold fails with %v, want %v", err, shard.ErrUnavailable)
	}
	if got := stocktest.State(t, f.Direct, "r1"); got != record.Held {
		t.Fatalf("the reservation is %q, want held: the test proves nothing", got)
	}
	f.Told()
	f.NothingHeld()
}

func reserveOnce(f *stocktest.Faulty, id string) error {
	_, refusal, err := stocktest.Hold(stocktest.Soon(f.T), f.Edge, id, "Ann", 1)
	if refusal != nil {
		f.T.Errorf("refused: %+v", refusal)
	}
	return err
}

// lower is the sale with one unit less of "a".
func lower(f *stocktest.Faulty) *sale.Sale {
	l, ok := f.Edge.Catalogue().Sale("s")
	if !ok {
		f.T.Fatal("the edge does not know the sale")
	}
	file := *l.Sale
	file.Items = append([]sale.Item(nil), file.Items...)
	file.Items[0].Stock = 2
	return &file
}
