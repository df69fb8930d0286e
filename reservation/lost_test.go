package reservation_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/stockgate/stockgate/internal/redistest"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

// watched is an edge that sells "s", with what it logs.
func watched(t *testing.T, b redistest.Backend) (*reservation.Edge, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.WarnLevel)
	e := newEdge(t, options(b), reservation.EdgeOptions{Log: zap.New(core)})
	load(t, e.Store, openSale("s", 3))
	look(t, e)
	logs.TakeAll()
	return e, logs
}

func look(t *testing.T, e *reservation.Edge) {
	t.Helper()
	if err := e.Refresh(soon(t)); err != nil {
		t.Fatal(err)
	}
}

// verdict is what buyers hear of the sale "s"; empty: it sells, "not listed": it is none.
func verdict(e *reservation.Edge) string {
	l, ok := e.Catalogue().Sale("s")
	if !ok {
		return "not listed"
	}
	if no := l.Verdict(time.Now()); no != nil {
		return string(no.Reason)
	}
	return ""
}

// A sale that Redis has lost is unavailable at the edges that sold it and at those that
// start afterwards, and loading its file again is refused unless it is to begin anew.
func TestEmptiedRedis(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e, logs := watched(t, b)
		mustHold(t, e, "r1", "Ann", 1)
		if err := b.Client().FlushAll(soon(t)).Err(); err != nil {
			t.Fatal(err)
		}
		if _, no, err := hold(soon(t), e, "r2", "Ann", 1); err != nil || no == nil || no.Reason != sale.Unavailable {
			t.Errorf("before the edge has looked, a buyer hears %v, %v", no, err)
		}
		if _, err := e.ApplyUnlessLost(soon(t), openSale("t", 3), reservation.ApplyOptions{}); err != nil {
			t.Errorf("a sale that never was: %v", err)
		}
		for range 3 {
			look(t, e)
		}
		if got := verdict(e); got != "unavailable" || len(e.Catalogue().Listing("a")) != 2 || !e.Catalogue().Complete() {
			t.Errorf("the edge says %q, complete: %v", got, e.Catalogue().Complete())
		}
		if found := logs.FilterLevelExact(zapcore.ErrorLevel).All(); len(found) != 1 || found[0].ContextMap()["sale"] != "s" ||
			!strings.Contains(found[0].ContextMap()["error"].(string), "rebuild s --from ledger") {
			t.Errorf("it logs %+v", found)
		}

		other := newEdge(t, options(b), reservation.EdgeOptions{})
		look(t, other)
		if got := verdict(other); got != "unavailable" || other.Catalogue().Complete() {
			t.Errorf("a new edge says %q, complete: %v", got, other.Catalogue().Complete())
		}
		for name, err := range map[string]error{
			"a reservation": e.Missing(soon(t), "", reservation.ErrNotFound), "one of the sale": other.Missing(soon(t), "s", reservation.ErrNotFound),
		} {
			if lost := new(reservation.LostError); !errors.As(err, &lost) || lost.Sale != "s" || !errors.Is(err, reservation.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := e.Missing(soon(t), "t", reservation.ErrNotFound); err != reservation.ErrNotFound {
			t.Errorf("a reservation of a sale that is there: %v", err)
		}

		for _, at := range []*reservation.Edge{e, other} {
			for _, dry := range []bool{true, false} {
				_, err := at.ApplyUnlessLost(soon(t), openSale("s", 3), reservation.ApplyOptions{DryRun: dry})
				if !errors.Is(err, reservation.ErrRefused) || !strings.Contains(err.Error(), "rebuild s") || !strings.Contains(err.Error(), "--new") {
					t.Fatalf("the file again: %v", err)
				}
			}
		}
		if _, err := other.ApplyUnlessLost(soon(t), openSale("s", 3), reservation.ApplyOptions{New: true}); err != nil {
			t.Fatal(err)
		}
		if err := other.Store.SetStatus(soon(t), "s", sale.Open, "test"); err != nil {
			t.Fatal(err)
		}
		for _, at := range []*reservation.Edge{e, other} {
			look(t, at)
			if got := verdict(at); got != "" || !at.Catalogue().Complete() {
				t.Errorf("begun anew it is %q", got)
			}
		}
		mustHold(t, e, "r3", "Ann", 3)
	})
}

// What is lost of a sale may be its shard only, as with the slots of one node, or its
// name in the index of sales only: that is written back.
func TestHalfEmptiedRedis(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e, logs := watched(t, b)
		if err := b.Client().Del(soon(t), "stockgate:sales").Err(); err != nil {
			t.Fatal(err)
		}
		look(t, e)
		mustHold(t, e, "r1", "Ann", 1)
		if ids, err := e.Store.Sales(soon(t)); err != nil || len(ids) != 1 || verdict(e) != "" || logs.FilterMessageSnippet("written back").Len() != 1 {
			t.Errorf("the index has %v (%v), the edge says %q", ids, err, verdict(e))
		}
		if err := b.Client().Del(soon(t), e.Store.ShardKeys("s")...).Err(); err != nil {
			t.Fatal(err)
		}
		look(t, e)
		if got := verdict(e); got != "unavailable" {
			t.Errorf("without its shard it is %q", got)
		}
	})
}

// Buyers do not hear that an item is not on sale because its stock is gone from Redis.
func TestStockThatIsGone(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e, _ := watched(t, b)
		if err := b.Client().Del(soon(t), e.Store.ShardKeys("s")[1]).Err(); err != nil {
			t.Fatal(err)
		}
		if _, no, err := hold(soon(t), e, "r1", "Ann", 1); err != nil || no == nil || no.Reason != sale.Unavailable {
			t.Errorf("a buyer hears %+v, %v", no, err)
		}
	})
}

// What is told to an edge that starts must be in Redis; a sale that was closed may have
// been deleted, and only edges that have seen it miss it.
func TestRememberedSale(t *testing.T) {
	b := redistest.Start(t)
	e := newEdge(t, options(b), reservation.EdgeOptions{})
	if !e.Remember("s") || e.Remember("s") {
		t.Error("what is new is not said")
	}
	look(t, e)
	if got := verdict(e); got != "unavailable" {
		t.Errorf("it is %q", got)
	}
	emptied := redistest.Start(t)
	other, _ := watched(t, emptied)
	if err := other.Store.SetStatus(soon(t), "s", sale.Closed, "test"); err != nil {
		t.Fatal(err)
	}
	look(t, other)
	if err := emptied.Client().FlushAll(soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	look(t, other)
	if ids, err := other.Store.Sales(soon(t)); err != nil || len(ids) != 0 || verdict(other) != "unavailable" {
		t.Errorf("closed and lost it is %q, the index has %v (%v)", verdict(other), ids, err)
	}
}

// What became of reservations of a sale that Redis has lost is told when the sale is there
// again.
func TestOutcomesOfALostSaleWait(t *testing.T) {
	f := newFaulty(t, long)
	for _, id := range []string{"r1", "r2", "r3"} {
		mustHold(t, f.edge, id, id, 1)
	}
	c := f.server.Client()
	dump := make(map[string]string)
	for _, key := range c.Keys(soon(t), "*").Val() {
		dump[key] = c.Dump(soon(t), key).Val()
	}
	f.net.cut()
	if _, err := f.edge.ConfirmEventually(soon(t), "s", "r1", ""); !errors.Is(err, reservation.ErrUnavailable) {
		t.Fatal(err)
	}
	f.net.lead(f.proxy.Addr())
	if err := c.FlushAll(soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	lost := new(reservation.LostError)
	if _, err := f.edge.ConfirmEventually(soon(t), "s", "r2", ""); !errors.As(err, &lost) {
		t.Errorf("before the edge has looked, a confirm ends with %v", err)
	}
	look(t, f.edge)
	if _, err := f.edge.ReleaseEventually(soon(t), "s", "r3", reservation.Shop, ""); !errors.As(err, &lost) {
		t.Errorf("a release ends with %v", err)
	}
	before := f.proxy.Requests("EVALSHA")
	f.edge.Start()
	if err := f.proxy.WaitRequests(soon(t), before+4, "EVALSHA"); err != nil {
		t.Fatal(err)
	}
	if n := f.edge.Backlog(); n != 3 {
		t.Errorf("%d outcomes wait, want 3", n)
	}
	// the sale comes back all at once, as from a rebuild
	pipe := c.TxPipeline()
	for key, value := range dump {
		pipe.RestoreReplace(soon(t), key, 0, value)
	}
	if _, err := pipe.Exec(soon(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an empty backlog", func() bool { return f.edge.Backlog() == 0 })
	for id, want := range map[string]reservation.State{"r1": reservation.Confirmed, "r2": reservation.Confirmed, "r3": reservation.Released} {
		if got := state(t, f.direct, id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	f.audit()
}

// A Redis that comes back with less than it had is noticed by the numbers of its journal,
// also when it has given them to others meanwhile.
func TestRedisGoesBack(t *testing.T) {
	server := redistest.Start(t)
	e := selling(t, options(server), 100)
	mustHold(t, e, "r1", "Ann", 1)
	c := server.Client()
	dump := make(map[string]string)
	for _, key := range c.Keys(soon(t), "*").Val() {
		dump[key] = c.Dump(soon(t), key).Val()
	}
	at := e.Store.Seq("s")
	for _, id := range []string{"r2", "r3", "r4", "r5", "r6"} {
		mustHold(t, e, id, "Ann", 1)
	}
	if f := e.Store.Fall("s"); f.Lost() != 0 {
		t.Fatalf("nothing is lost, it says %+v", f)
	}
	if err := c.FlushAll(soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	for key, value := range dump {
		if err := c.Restore(soon(t), key, 0, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"n2", "n3", "n4", "n5", "n6", "n7", "n8"} {
		mustHold(t, e, id, "Bob", 1)
	}
	head, err := e.Store.JournalHead(soon(t), "s")
	if want := (reservation.Fall{Low: at + 1, High: at + 5}); e.Store.Fall("s") != want || head.Lost != 4 || err != nil {
		t.Errorf("it says %+v, the head %d (%v); want %+v", e.Store.Fall("s"), head.Lost, err, want)
	}
}

// An answer of before a loss that comes after the sale has begun anew does not look as if
// the new one had lost something.
func TestLateAnswerOfAnotherLife(t *testing.T) {
	f := newFaulty(t, long)
	for _, id := range []string{"r1", "r2", "r3"} {
		mustHold(t, f.edge, id, id, 1)
	}
	f.proxy.HoldReplies("EVALSHA s")
	told := make(chan error, 1)
	go func() {
		_, err := f.edge.Store.Doubt(context.Background(), "s", "r1", "")
		told <- err
	}()
	if err := f.proxy.WaitHeld(soon(t)); err != nil {
		t.Fatal(err)
	}
	if err := f.server.Client().FlushAll(soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	load(t, f.direct, openSale("s", 3))
	look(t, f.edge)
	f.proxy.ReleaseReplies()
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	mustHold(t, f.edge, "n1", "Bob", 1)
	if fall := f.edge.Store.Fall("s"); fall.Lost() != 0 {
		t.Errorf("it says %+v", fall)
	}
}
