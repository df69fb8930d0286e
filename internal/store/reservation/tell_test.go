package reservation_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// memory has the promises that Redis has made.
type memory struct {
	mu  sync.Mutex
	all []reservation.Promise
}

func (m *memory) Promised(_ string, _ int64, p reservation.Promise) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, p)
}

// promised is an edge that sells units of "a", whose promises a test tells again.
type promised struct {
	t      *testing.T
	e      *edge.Edge
	server *redistest.Server
	memory memory
}

func newPromised(t *testing.T, units int64) *promised {
	server := redistest.Start(t)
	p := &promised{t: t, server: server, e: stocktest.Selling(t, stocktest.Options(server), units)}
	p.e.Store.Keep(&p.memory)
	return p
}

// lose deletes a reservation, as a server does that has never heard of it.
func (p *promised) lose(id string) {
	p.t.Helper()
	keys := p.e.Store.Shard().ShardKeys("s")
	ctx, client := stocktest.Soon(p.t), p.server.Client()
	if err := client.HDel(ctx, keys[shard.RecordsKey], id).Err(); err != nil {
		p.t.Fatal(err)
	}
	if err := client.ZRem(ctx, keys[shard.DeadlinesKey], id).Err(); err != nil {
		p.t.Fatal(err)
	}
}

// tell tells promises again, and returns those that were not kept.
func (p *promised) tell(promises []reservation.Promise) []reservation.Promise {
	p.t.Helper()
	told, err := p.e.Store.Tell(stocktest.Soon(p.t), "s", promises)
	if err != nil || len(told.Untold) > 0 || len(told.Kept)+len(told.Failed) != len(promises) {
		p.t.Fatalf("%+v, %v", told, err)
	}
	return told.Failed
}

// What was done with a hold that has gone on since is kept: to tell it again changes nothing.
func TestToldAgainAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(*promised) error{
		"confirmed": func(p *promised) error {
			_, err := p.e.Store.Confirm(stocktest.Soon(t), "s", "r1", reservation.SourceShop, "")
			return err
		},
		"released": func(p *promised) error {
			_, err := p.e.Store.Release(stocktest.Soon(t), "s", "r1", reservation.SourceShop, "")
			return err
		},
		"in doubt": func(p *promised) error {
			_, err := p.e.Store.Doubt(stocktest.Soon(t), "s", "r1", "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPromised(t, 5)
			stocktest.MustHold(t, p.e, "r1", "Ann", 1)
			if _, err := p.e.Store.Extend(stocktest.Soon(t), "s", "r1", 2*stocktest.HoldOptions.HoldFor, 3*stocktest.HoldOptions.HoldFor); err != nil {
				t.Fatal(err)
			}
			if err := end(p); err != nil {
				t.Fatal(err)
			}
			was := stocktest.State(t, p.e.Store, "r1")
			for range 2 {
				if failed := p.tell(p.memory.all); len(failed) > 0 {
					t.Errorf("%d of %d are taken for lost", len(failed), len(p.memory.all))
				}
			}
			if got := stocktest.State(t, p.e.Store, "r1"); got != was {
				t.Errorf("it was %s, and is %s", was, got)
			}
			stocktest.Balanced(t, p.server.Client(), p.e.Store, "s")
		})
	}
}

// On a server that has not heard of what was done with a hold, something else may have become of it:
// a hold that has expired has lost its extension, and an order that the shop has taken overtakes a release.
func TestToldAgainAfterAnotherEnd(t *testing.T) {
	for name, c := range map[string]struct {
		state record.State
		does  func(*reservation.Store) error
		lost  int
	}{
		"extended, expired":   {record.Expired, extendR1, 1},
		"extended, confirmed": {record.Confirmed, extendR1, 0},
		"released, confirmed": {record.Confirmed, releaseR1, 0},
		"released, unbacked":  {record.Unbacked, releaseR1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPromised(t, 5)
			stocktest.MustHold(t, p.e, "r1", "Ann", 1)
			ctx, client, records := stocktest.Soon(t), p.server.Client(), p.e.Store.Shard().ShardKeys("s")[shard.RecordsKey]
			text, err := client.HGet(ctx, records, "r1").Result()
			if err != nil {
				t.Fatal(err)
			}
			held := len(p.memory.all)
			if err := c.does(p.e.Store); err != nil {
				t.Fatal(err)
			}
			p.lose("r1")
			if err := client.HSet(ctx, records, "r1", strings.Replace(text, "held", string(c.state), 1)).Err(); err != nil {
				t.Fatal(err)
			}
			if promises := p.memory.all[held:]; len(promises) != 1 {
				t.Errorf("%d promises", len(promises))
			} else if failed := p.tell(promises); len(failed) != c.lost {
				t.Errorf("%d are taken for lost, want %d", len(failed), c.lost)
			}
		})
	}
}

func extendR1(s *reservation.Store) error {
	_, err := s.Extend(context.Background(), "s", "r1", 2*stocktest.HoldOptions.HoldFor, 3*stocktest.HoldOptions.HoldFor)
	return err
}

func releaseR1(s *reservation.Store) error {
	_, err := s.Release(context.Background(), "s", "r1", reservation.SourceShop, "")
	return err
}

// A hold that was lost, was released and whose units another buyer has is not lost.
func TestToldAgainAfterARelease(t *testing.T) {
	p := newPromised(t, 1)
	stocktest.MustHold(t, p.e, "r1", "Ann", 1)
	if _, err := p.e.Store.Release(stocktest.Soon(t), "s", "r1", reservation.SourceShop, ""); err != nil {
		t.Fatal(err)
	}
	promises := p.memory.all
	stocktest.MustHold(t, p.e, "r2", "Bob", 1)
	p.lose("r1")
	failed := p.tell(promises)
	if len(failed) != 1 {
		t.Fatalf("%d of %d failed at first", len(failed), len(promises))
	}
	if failed = p.tell(failed); len(failed) > 0 {
		t.Error("a hold that was released is taken for lost")
	}
	if got := stocktest.State(t, p.e.Store, "r2"); got != record.Held {
		t.Errorf("the other hold is %q", got)
	}
}

// In mode backend a buyer may ask for the same again once the shop has answered: both holds are
// made again, and the next attempt is none of them.
func TestToldAgainTheSameTwice(t *testing.T) {
	p := newPromised(t, 5)
	file := stocktest.OpenSale("s", 5)
	file.Unpaid = &sale.Unpaid{Per: "buyer", AtOnce: 9, Ended: 9, Within: sale.Span(time.Hour)}
	stocktest.Apply(t, p.e, file)
	hold := func(id string) *sale.Refusal {
		t.Helper()
		l, _ := p.e.Catalogue().Sale("s")
		a := &sale.Attempt{Sale: "s", Buyer: "Ann", Lines: stocktest.UnitsOfA(1)}
		o := stocktest.HoldOptions
		o.Mode = record.ModeBackend
		_, refusal, err := p.e.Hold(stocktest.Soon(t), id, l, a, a.Lines, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.e.Store.Call(stocktest.Soon(t), "s", reservation.Operation{Name: "free", Args: []any{id}}); err != nil {
			t.Fatal(err)
		}
		return refusal
	}
	for _, id := range []string{"r1", "r2"} {
		if refusal := hold(id); refusal != nil {
			t.Fatalf("%s: %+v", id, refusal)
		}
	}
	promises := p.memory.all
	p.lose("r1")
	p.lose("r2")
	if failed := p.tell(promises); len(failed) > 0 {
		t.Errorf("%s are taken for lost", strings.Join(reservation.IDs(failed, 9), ", "))
	}
	if refusal := hold("r3"); refusal != nil {
		t.Errorf("the next attempt is refused: %+v", refusal)
	}
}
