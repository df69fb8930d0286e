package edge_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// repeating is an attempt that repeats what holdBound has made.
func repeating(id, key, ref string) *sale.Attempt {
	return &sale.Attempt{Sale: "s", Buyer: "buyer of " + id, Lines: stocktest.UnitsOfA(1), Key: key, Print: "p", Ref: ref}
}

// isNew reports whether an edge would refuse an attempt from memory.
func isNew(t testing.TB, e *edge.Edge, a *sale.Attempt) bool {
	t.Helper()
	l, _ := e.Catalogue().Sale("s")
	isNew, err := e.SurelyNew(l, a)
	if err != nil {
		t.Error(err)
	}
	return isNew
}

// later is isNew in the background.
func later(t testing.TB, e *edge.Edge, a *sale.Attempt) <-chan bool {
	answer := make(chan bool, 1)
	go func() { answer <- isNew(t, e, a) }()
	return answer
}

// What one edge has bound is known to all others, whenever they are asked.
func TestWhatOthersHaveBoundIsKnown(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		const rounds = 300
		seller, other := following(t, stocktest.Options(b), rounds), following(t, stocktest.Options(b), rounds)
		for i := range rounds {
			id := fmt.Sprint("r", i)
			key, ref := "key of "+id, ""
			if i%2 == 1 {
				key, ref = "", "order-"+id
			}
			holdBound(t, seller, id, key, ref)
			for name, e := range map[string]*edge.Edge{"another edge": other, "the edge that has sold": seller} {
				if isNew(t, e, repeating(id, key, ref)) {
					t.Fatalf("attempt %d: %s takes it for a new one", i, name)
				}
			}
		}
		if !isNew(t, other, repeating("r0", "another key", "")) || !isNew(t, other, repeating("r1", "", "another order")) {
			t.Error("what was never bound is not known to be new")
		}
	})
}

// unreadBinding lets another edge bind a key, of which the viewed one does not read.
func (v *viewed) unreadBinding(t *testing.T) (*edge.Edge, *sale.Attempt) {
	t.Helper()
	other := stocktest.Ready(t, stocktest.Options(v.server))
	v.proxy.HoldReplies("XREAD")
	holdBound(t, other, "r1", "key 1", "")
	return other, repeating("r1", "key 1", "")
}

// An attempt is refused from memory only when the journal has been read up to where it was
// when the attempt came.
func TestACheckWaitsForTheJournal(t *testing.T) {
	v := newViewed(t, 9)
	_, again := v.unreadBinding(t)
	l, _ := v.Catalogue().Sale("s")
	if v.MayRepeat(l, again) {
		t.Fatal("it was read")
	}
	answer := later(t, v.Edge, again)
	stocktest.Eventually(t, "a check", func() bool { return v.Checking("s") })
	v.proxy.Heal()
	if <-answer {
		t.Error("an attempt whose key another edge has bound is taken for a new one")
	}
}

// A check says nothing about what was bound after it was sent.
func TestACheckCountsForWhatCameBefore(t *testing.T) {
	v := newViewed(t, 9)
	other := stocktest.Ready(t, stocktest.Options(v.server))
	v.proxy.HoldReplies("HMGET seq")
	first := later(t, v.Edge, repeating("r2", "key 2", ""))
	stocktest.Eventually(t, "a check", func() bool { return v.Checking("s") })
	if err := v.proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	holdBound(t, other, "r1", "key 1", "")
	var answers []<-chan bool
	for range 100 {
		answers = append(answers, later(t, v.Edge, repeating("r1", "key 1", "")))
	}
	stocktest.Eventually(t, "that they share the next check", func() bool { return v.WaitingForCheck("s") == len(answers) })
	v.proxy.Heal()
	if !<-first {
		t.Error("a key that no attempt has bound is not known to be new")
	}
	for _, answer := range answers {
		if <-answer {
			t.Fatal("an attempt whose key another edge has bound is taken for a new one")
		}
	}
}

// While the journal cannot be read it is unknown whether a key is bound, and the attempt
// is unavailable when its time is up.
func TestACheckEndsInTime(t *testing.T) {
	for _, held := range []string{"XREAD", "HMGET"} {
		t.Run(held, func(t *testing.T) {
			s := redistest.Start(t)
			p := redistest.NewProxy(t, s.Addr())
			o := stocktest.At(p.Addr(), 200*time.Millisecond)
			e := stocktest.NewEdge(t, o, edge.Options{})
			direct := stocktest.Selling(t, stocktest.Options(s), 9)
			stocktest.Eventually(t, "a look", func() bool { return e.Refresh(stocktest.Soon(t)) == nil })
			e.SetViewClock(func() time.Duration { return 0 })
			e.Start()
			follows(t, e)
			p.HoldReplies(held)
			holdBound(t, direct, "r1", "key 1", "")
			var all sync.WaitGroup
			var unavailable atomic.Int32
			for range 20 {
				all.Go(func() {
					l, _ := e.Catalogue().Sale("s")
					isNew, err := e.SurelyNew(l, repeating("r1", "key 1", ""))
					if errors.Is(err, shard.ErrUnavailable) {
						unavailable.Add(1)
					}
					if isNew || err != nil && !errors.Is(err, shard.ErrUnavailable) {
						t.Errorf("new %t, %v; want unavailable", isNew, err)
					}
				})
			}
			all.Wait()
			if held == "XREAD" && unavailable.Load() == 0 {
				t.Error("no attempt is unavailable")
			}
			p.Heal()
			stocktest.Eventually(t, "that it is known again", func() bool {
				l, _ := e.Catalogue().Sale("s")
				isNew, err := e.SurelyNew(l, repeating("r2", "key 2", ""))
				return isNew && err == nil
			})
		})
	}
}

// Of a sale that Redis has lost, in part or as a whole, the view says nothing.
func TestACheckOfWhatIsLost(t *testing.T) {
	v := newViewed(t, 9)
	stocktest.MustHold(t, v.Edge, "r1", "Ann", 1)
	follows(t, v.Edge)
	l, _ := v.Catalogue().Sale("s")
	v.proxy.HoldReplies("XREAD")
	meta := v.direct.Shard().ShardKeys("s")[0]
	if err := v.server.Client().HIncrBy(stocktest.Soon(t), meta, "seq", -1).Err(); err != nil {
		t.Fatal(err)
	}
	if isNew(t, v.Edge, repeating("r2", "key 2", "")) {
		t.Error("entries were lost, and the view still counts")
	}
	if err := v.server.Client().HSet(stocktest.Soon(t), meta, "epoch", "1", "seq", "99").Err(); err != nil {
		t.Fatal(err)
	}
	if isNew(t, v.Edge, repeating("r2", "key 2", "")) {
		t.Error("the sale has another life, and the view of the one before counts")
	}
	if err := v.server.Client().Del(stocktest.Soon(t), meta).Err(); err != nil {
		t.Fatal(err)
	}
	if isNew, err := v.SurelyNew(l, repeating("r2", "key 2", "")); isNew || !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("the sale is gone: new %t, %v; want unavailable", isNew, err)
	}
}

// An edge that sells while the sale's file changes knows at once what it has bound.
func TestBindingsOfAChangedSale(t *testing.T) {
	v := newViewed(t, 9)
	v.proxy.HoldReplies("XREAD")
	stocktest.Load(t, v.direct, stocktest.OpenSale("s", 8))
	holdBound(t, v.Edge, "r1", "key 1", "order-1")
	l, _ := v.Catalogue().Sale("s")
	for _, a := range []*sale.Attempt{repeating("r1", "key 1", ""), repeating("r2", "", "order-1")} {
		if !v.MayRepeat(l, a) {
			t.Errorf("key %q, ref %q: the edge that has bound it does not know", a.Key, a.Ref)
		}
	}
}

// A limit of one order is judged without Redis. An order that was made before the limit
// was comes first.
func TestALimitComesAfterWhatIsBound(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		seller, other := following(t, stocktest.Options(b), 9), following(t, stocktest.Options(b), 9)
		stocktest.MustHold(t, seller, "r1", "Ann", 2)
		stocktest.Load(t, seller.Store, stocktest.OpenSale("s", 9, sale.Limit{Per: "buyer", Every: "order", Max: 1, Count: "units"}))
		if err := other.Refresh(stocktest.Soon(t)); err != nil {
			t.Fatal(err)
		}
		l, _ := other.Catalogue().Sale("s")
		ask := func(key string) (*sale.Refusal, error) {
			a := &sale.Attempt{Sale: "s", Buyer: "Ann", Lines: stocktest.UnitsOfA(2), Key: key, Print: "print"}
			_, no, err := other.Hold(stocktest.Soon(t), "of "+key, l, a, stocktest.UnitsOfA(2), stocktest.HoldOptions)
			return no, err
		}
		no, err := ask("r1")
		if bound, ok := errors.AsType[*reservation.AlreadyBound](err); !ok || bound.ID != "r1" {
			t.Errorf("refused %+v, error %v; want the reservation r1", no, err)
		}
		if no, err := ask("new"); err != nil || no == nil || no.Reason != sale.LimitReached {
			t.Errorf("refused %+v, error %v; want limit_reached", no, err)
		}
	})
}
