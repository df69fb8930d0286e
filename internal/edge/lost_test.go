package edge_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// watched is an edge that sells "s", with what it logs.
func watched(t *testing.T, b redistest.Backend) (*edge.Edge, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.WarnLevel)
	e := stocktest.NewEdge(t, stocktest.Options(b), edge.Options{Log: zap.New(core)})
	stocktest.Load(t, e.Store, stocktest.OpenSale("s", 3))
	stocktest.Look(t, e)
	logs.TakeAll()
	return e, logs
}

// verdict is what buyers hear of the sale "s"; empty: it sells, "not listed": it is none.
func verdict(e *edge.Edge) string {
	l, ok := e.Catalogue().Sale("s")
	if !ok {
		return "not listed"
	}
	if no := l.RefusalAt(time.Now()); no != nil {
		return string(no.Reason)
	}
	return ""
}

// A sale that Redis has lost is unavailable at the edges that sold it and at those that
// start afterwards, and loading its file again is refused unless it is to start over.
func TestEmptiedRedis(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e, logs := watched(t, b)
		stocktest.MustHold(t, e, "r1", "Ann", 1)
		if err := b.Client().FlushAll(stocktest.Soon(t)).Err(); err != nil {
			t.Fatal(err)
		}
		if _, no, err := stocktest.Hold(stocktest.Soon(t), e, "r2", "Ann", 1); err != nil || no == nil || no.Reason != sale.Unavailable {
			t.Errorf("before the edge has looked, a buyer hears %v, %v", no, err)
		}
		if _, err := e.ApplyUnlessLost(stocktest.Soon(t), stocktest.OpenSale("t", 3), reservation.ApplyOptions{}); err != nil {
			t.Errorf("a sale that never was: %v", err)
		}
		for range 3 {
			stocktest.Look(t, e)
		}
		if got := verdict(e); got != "unavailable" || len(e.Catalogue().Listing("a")) != 2 || !e.Catalogue().Complete() {
			t.Errorf("the edge says %q, complete: %v", got, e.Catalogue().Complete())
		}
		if found := logs.FilterLevelExact(zapcore.ErrorLevel).All(); len(found) != 1 || found[0].ContextMap()["sale"] != "s" ||
			!strings.Contains(found[0].ContextMap()["error"].(string), "rebuild s --from ledger") {
			t.Errorf("it logs %+v", found)
		}

		other := stocktest.NewEdge(t, stocktest.Options(b), edge.Options{})
		stocktest.Look(t, other)
		if got := verdict(other); got != "unavailable" || other.Catalogue().Complete() {
			t.Errorf("a new edge says %q, complete: %v", got, other.Catalogue().Complete())
		}
		for name, err := range map[string]error{
			"a reservation": e.Missing(stocktest.Soon(t), "", reservation.ErrNotFound), "one of the sale": other.Missing(stocktest.Soon(t), "s", reservation.ErrNotFound),
		} {
			if lost := new(edge.LostError); !errors.As(err, &lost) || lost.Sale != "s" || !errors.Is(err, shard.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := e.Missing(stocktest.Soon(t), "t", reservation.ErrNotFound); err != reservation.ErrNotFound {
			t.Errorf("a reservation of a sale that is there: %v", err)
		}

		for _, at := range []*edge.Edge{e, other} {
			for _, dry := range []bool{true, false} {
				_, err := at.ApplyUnlessLost(stocktest.Soon(t), stocktest.OpenSale("s", 3), reservation.ApplyOptions{DryRun: dry})
				if !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), "rebuild s") || !strings.Contains(err.Error(), "--new") {
					t.Fatalf("the file again: %v", err)
				}
			}
		}
		if _, err := other.ApplyUnlessLost(stocktest.Soon(t), stocktest.OpenSale("s", 3), reservation.ApplyOptions{New: true}); err != nil {
			t.Fatal(err)
		}
		if err := other.Store.SetStatus(stocktest.Soon(t), "s", sale.Open, "test"); err != nil {
			t.Fatal(err)
		}
		for _, at := range []*edge.Edge{e, other} {
			stocktest.Look(t, at)
			if got := verdict(at); got != "" || !at.Catalogue().Complete() {
				t.Errorf("begun anew it is %q", got)
			}
		}
		stocktest.MustHold(t, e, "r3", "Ann", 3)
	})
}

// What is lost of a sale may be its shard only, as with the slots of one node, or its
// name in the index of sales only: that is written back.
func TestHalfEmptiedRedis(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e, logs := watched(t, b)
		if err := b.Client().Del(stocktest.Soon(t), "stockgate:sales").Err(); err != nil {
			t.Fatal(err)
		}
		stocktest.Look(t, e)
		stocktest.MustHold(t, e, "r1", "Ann", 1)
		if ids, err := e.Store.Journal().Sales(stocktest.Soon(t)); err != nil || len(ids) != 1 || verdict(e) != "" || logs.FilterMessageSnippet("written back").Len() != 1 {
			t.Errorf("the index has %v (%v), the edge says %q", ids, err, verdict(e))
		}
		if err := b.Client().Del(stocktest.Soon(t), e.Store.Shard().ShardKeys("s")...).Err(); err != nil {
			t.Fatal(err)
		}
		stocktest.Look(t, e)
		if got := verdict(e); got != "unavailable" {
			t.Errorf("without its shard it is %q", got)
		}
	})
}

// Buyers do not hear that an item is not on sale because its stock is gone from Redis.
func TestStockThatIsGone(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e, _ := watched(t, b)
		if err := b.Client().Del(stocktest.Soon(t), e.Store.Shard().ShardKeys("s")[1]).Err(); err != nil {
			t.Fatal(err)
		}
		if _, no, err := stocktest.Hold(stocktest.Soon(t), e, "r1", "Ann", 1); err != nil || no == nil || no.Reason != sale.Unavailable {
			t.Errorf("a buyer hears %+v, %v", no, err)
		}
	})
}

// What is told to an edge that starts must be in Redis; a sale that was closed may have
// been deleted, and only edges that have seen it miss it.
func TestRememberedSale(t *testing.T) {
	b := redistest.Start(t)
	e := stocktest.NewEdge(t, stocktest.Options(b), edge.Options{})
	if !e.Remember("s") || e.Remember("s") {
		t.Error("what is new is not said")
	}
	stocktest.Look(t, e)
	if got := verdict(e); got != "unavailable" {
		t.Errorf("it is %q", got)
	}
	emptied := redistest.Start(t)
	other, _ := watched(t, emptied)
	if err := other.Store.SetStatus(stocktest.Soon(t), "s", sale.Closed, "test"); err != nil {
		t.Fatal(err)
	}
	stocktest.Look(t, other)
	if err := emptied.Client().FlushAll(stocktest.Soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	stocktest.Look(t, other)
	if ids, err := other.Store.Journal().Sales(stocktest.Soon(t)); err != nil || len(ids) != 0 || verdict(other) != "unavailable" {
		t.Errorf("closed and lost it is %q, the index has %v (%v)", verdict(other), ids, err)
	}
}

// What became of reservations of a sale that Redis has lost is told when the sale is there
// again.
func TestOutcomesOfALostSaleWait(t *testing.T) {
	f := stocktest.NewFaulty(t, stocktest.Long)
	for _, id := range []string{"r1", "r2", "r3"} {
		stocktest.MustHold(t, f.Edge, id, id, 1)
	}
	c := f.Server.Client()
	dump := make(map[string]string)
	for _, key := range c.Keys(stocktest.Soon(t), "*").Val() {
		dump[key] = c.Dump(stocktest.Soon(t), key).Val()
	}
	f.Net.Cut()
	if _, err := f.Edge.ConfirmEventually(stocktest.Soon(t), "s", "r1", ""); !errors.Is(err, shard.ErrUnavailable) {
		t.Fatal(err)
	}
	f.Net.Lead(f.Proxy.Addr())
	if err := c.FlushAll(stocktest.Soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	lost := new(edge.LostError)
	if _, err := f.Edge.ConfirmEventually(stocktest.Soon(t), "s", "r2", ""); !errors.As(err, &lost) {
		t.Errorf("before the edge has looked, a confirm ends with %v", err)
	}
	stocktest.Look(t, f.Edge)
	if _, err := f.Edge.ReleaseEventually(stocktest.Soon(t), "s", "r3", reservation.SourceShop, ""); !errors.As(err, &lost) {
		t.Errorf("a release ends with %v", err)
	}
	before := f.Proxy.Requests("EVALSHA")
	f.Edge.Start()
	if err := f.Proxy.WaitRequests(stocktest.Soon(t), before+4, "EVALSHA"); err != nil {
		t.Fatal(err)
	}
	if n := f.Edge.Backlog(); n != 3 {
		t.Errorf("%d outcomes wait, want 3", n)
	}
	// the sale comes back all at once, as from a rebuild
	pipe := c.TxPipeline()
	for key, value := range dump {
		pipe.RestoreReplace(stocktest.Soon(t), key, 0, value)
	}
	if _, err := pipe.Exec(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "an empty backlog", func() bool { return f.Edge.Backlog() == 0 })
	for id, want := range map[string]record.State{"r1": record.Confirmed, "r2": record.Confirmed, "r3": record.Released} {
		if got := stocktest.State(t, f.Direct, id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	f.Audit()
}

// A Redis that comes back with less than it had is noticed by the numbers of its journal,
// also when it has given them to others meanwhile.
func TestRedisGoesBack(t *testing.T) {
	server := redistest.Start(t)
	e := stocktest.Selling(t, stocktest.Options(server), 100)
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	c := server.Client()
	dump := make(map[string]string)
	for _, key := range c.Keys(stocktest.Soon(t), "*").Val() {
		dump[key] = c.Dump(stocktest.Soon(t), key).Val()
	}
	at := e.Store.Shard().Seq("s")
	for _, id := range []string{"r2", "r3", "r4", "r5", "r6"} {
		stocktest.MustHold(t, e, id, "Ann", 1)
	}
	if f := e.Store.Journal().Fall("s"); f.Lost() != 0 {
		t.Fatalf("nothing is lost, it says %+v", f)
	}
	if err := c.FlushAll(stocktest.Soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	for key, value := range dump {
		if err := c.Restore(stocktest.Soon(t), key, 0, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"n2", "n3", "n4", "n5", "n6", "n7", "n8"} {
		stocktest.MustHold(t, e, id, "Bob", 1)
	}
	head, err := e.Store.Journal().Head(stocktest.Soon(t), "s")
	if want := (shard.Fall{Low: at + 1, High: at + 5}); e.Store.Journal().Fall("s") != want || head.Lost != 4 || err != nil {
		t.Errorf("it says %+v, the head %d (%v); want %+v", e.Store.Journal().Fall("s"), head.Lost, err, want)
	}
}

// An answer of before a loss that comes after the sale has begun again does not look as if
// the new one had lost something.
func TestLateAnswerOfAnotherLife(t *testing.T) {
	f := stocktest.NewFaulty(t, stocktest.Long)
	for _, id := range []string{"r1", "r2", "r3"} {
		stocktest.MustHold(t, f.Edge, id, id, 1)
	}
	f.Proxy.HoldReplies("EVALSHA s")
	told := make(chan error, 1)
	go func() {
		_, err := f.Edge.Store.Doubt(context.Background(), "s", "r1", "")
		told <- err
	}()
	if err := f.Proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	if err := f.Server.Client().FlushAll(stocktest.Soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	stocktest.Load(t, f.Direct, stocktest.OpenSale("s", 3))
	stocktest.Look(t, f.Edge)
	f.Proxy.ReleaseReplies()
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	stocktest.MustHold(t, f.Edge, "n1", "Bob", 1)
	if fall := f.Edge.Store.Journal().Fall("s"); fall.Lost() != 0 {
		t.Errorf("it says %+v", fall)
	}
}
