package edge_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// viewed is an edge that does nothing on its own but follow, behind a proxy, with a
// clock that only the test moves.
type viewed struct {
	*edge.Edge
	server *redistest.Server
	proxy  *redistest.Proxy
	net    *stocktest.Network
	direct *reservation.Store // to the server, past the proxy
	clock  atomic.Int64
}

func newViewed(t *testing.T, stock int64) *viewed {
	s := redistest.Start(t)
	v := &viewed{server: s, proxy: redistest.NewProxy(t, s.Addr()), direct: stocktest.OpenStore(t, stocktest.Options(s))}
	v.net = &stocktest.Network{Addr: v.proxy.Addr()}
	stocktest.Load(t, v.direct, stocktest.OpenSale("s", stock))
	o := stocktest.At(v.proxy.Addr(), stocktest.Long)
	o.Dialer = v.net.Dial
	v.Edge = stocktest.Ready(t, o)
	v.SetViewClock(func() time.Duration { return time.Duration(v.clock.Load()) })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.Follow(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	follows(t, v.Edge)
	return v
}

// soldOut lets one buyer hold all units, and another one hear of it.
func (v *viewed) soldOut(t *testing.T, stock int64) {
	t.Helper()
	stocktest.MustHold(t, v.Edge, "all", "Ann", stock)
	refusedBy(t, v.Edge, "no", 1)
	if got := remembered(t, v.Edge, 1); got != sale.AllHeld {
		t.Fatalf("%q is remembered", got)
	}
}

// step moves the clock, and waits until a read has made the view fresh again.
func (v *viewed) step(t *testing.T, d time.Duration) {
	t.Helper()
	v.clock.Add(int64(d))
	stocktest.Eventually(t, "a fresh view", func() bool { return upToDate(t, v.Edge) })
}

// A refusal that comes after the units have come back is not remembered.
func TestALateRefusal(t *testing.T) {
	v := newViewed(t, 1)
	stocktest.MustHold(t, v.Edge, "r1", "Ann", 1)
	v.proxy.HoldReplies("EVALSHA")
	refused := make(chan sale.Reason, 1)
	go func() {
		_, no, err := stocktest.Hold(context.Background(), v.Edge, "late", "Bob", 1)
		if err != nil || no == nil {
			no = &sale.Refusal{Reason: sale.Reason(fmt.Sprint(err))}
		}
		refused <- no.Reason
	}()
	if err := v.proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := v.direct.Release(stocktest.Soon(t), "s", "r1", reservation.SourceShop, ""); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "the release in the view", func() bool { return upToDate(t, v.Edge) })
	v.proxy.ReleaseReplies()
	if got := <-refused; got != sale.AllHeld {
		t.Fatalf("refused as %s", got)
	}
	if got := remembered(t, v.Edge, 1); got != "" {
		t.Errorf("%s is remembered, of before the release", got)
	}
}

// An old refusal does not take the place of a newer one, nor does a success that is
// older than a refusal end it.
func TestRepliesInAnyOrder(t *testing.T) {
	v := newViewed(t, 3)
	l, _ := v.Catalogue().Sale("s")
	line, no := stocktest.UnitsOfA(1), sale.Refuse(sale.AllHeld)
	newest, _ := v.Followed("s")
	v.Told(l, &line[0], newest+5, 0, no)
	v.Told(l, &line[0], newest+2, 0, &sale.Refusal{Reason: sale.SoldOut})
	if got := v.Recall(l, nil, line); got == nil || got.Reason != sale.AllHeld {
		t.Errorf("remembered %+v, want the newest", got)
	}
	v.Got(l, line, newest+5)
	if v.Recall(l, nil, line) == nil {
		t.Error("a hold of the same moment ends what was said after it")
	}
	v.Got(l, line, newest+6)
	if got := v.Recall(l, nil, line); got != nil {
		t.Errorf("%+v is remembered after a unit was held", got)
	}
	v.Told(l, &line[0], newest-1, 0, no)
	if got := v.Recall(l, nil, line); got != nil {
		t.Errorf("%+v is remembered, of before the edge has followed", got)
	}
}

// A view that has not been read for a second says nothing, whatever it was.
func TestAnOldViewSaysNothing(t *testing.T) {
	v := newViewed(t, 1)
	v.soldOut(t, 1)
	if v.MayBeBound("s", "k|none") {
		t.Error("what was never bound may be bound")
	}
	v.proxy.HoldReplies("XREAD")
	if err := v.proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	v.clock.Add(int64(700 * time.Millisecond))
	if v.MayBeBound("s", "k|none") || remembered(t, v.Edge, 1) == "" {
		t.Error("within a second the view is empty")
	}
	v.clock.Add(int64(300 * time.Millisecond))
	if got := remembered(t, v.Edge, 1); got != "" || !v.MayBeBound("s", "k|none") {
		t.Errorf("after a second %q is remembered", got)
	}
	v.proxy.ReleaseReplies()
	stocktest.Eventually(t, "a fresh view", func() bool { return upToDate(t, v.Edge) && !v.MayBeBound("s", "k|none") })
}

// Without its connection the view says nothing from that moment on. The same journal
// is followed further, from where the view was; another one again.
func TestALostConnection(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, v *viewed)
		anew   bool
	}{
		"the same journal": {func(*testing.T, *viewed) {}, false},
		"more has come": {func(t *testing.T, v *viewed) {
			if _, err := v.direct.Adjust(stocktest.Soon(t), "s", "j1", "a", 1, ""); err != nil {
				t.Fatal(err)
			}
		}, false},
		"other entries": {func(t *testing.T, v *viewed) { // a replica that lacked the last ones was promoted
			c, key := v.server.Client(), v.direct.Shard().ShardKeys("s")[9]
			entries := c.XRange(stocktest.Soon(t), key, "-", "+").Val()
			if err := c.Del(stocktest.Soon(t), key).Err(); err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if err := c.Do(stocktest.Soon(t), "XADD", key, e.ID, "v", "1", "time", "1", "movements", e.Values["movements"]).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := newViewed(t, 1)
			v.soldOut(t, 1)
			v.net.Cut()
			stocktest.Eventually(t, "no view", func() bool { _, ok := v.Followed("s"); return !ok })
			if got := remembered(t, v.Edge, 1); got != "" || !v.MayBeBound("s", "k|none") {
				t.Errorf("%q is remembered", got)
			}
			bind(t, v, "k|unheard")
			c.change(t, v)
			v.net.Lead(v.proxy.Addr())
			follows(t, v.Edge)
			if got := remembered(t, v.Edge, 1); got != "" {
				t.Errorf("%s is remembered, of before", got)
			}
			if got := v.MayBeBound("s", "k|unheard"); got != c.anew {
				t.Errorf("a binding that is in no entry is seen: %t, want %t", got, c.anew)
			}
		})
	}
}

// bind binds a field without a word in the journal.
func bind(t *testing.T, v *viewed, fields ...string) {
	t.Helper()
	key := v.direct.Shard().ShardKeys("s")[10]
	pipe := v.server.Client().Pipeline()
	for _, f := range fields {
		pipe.HSet(stocktest.Soon(t), key, f, "some reservation")
	}
	if _, err := pipe.Exec(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
}

// Entries that were trimmed before they were read, and another life of the same Redis,
// begin the view again.
func TestAGapBeginsAnew(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, v *viewed) error{
		"trimmed": func(t *testing.T, v *viewed) error {
			var err error
			for i := range 3 {
				_, e := v.direct.Adjust(stocktest.Soon(t), "s", fmt.Sprint("j", i), "a", 1, "")
				err = errors.Join(err, e)
			}
			return errors.Join(err, v.server.Client().XTrimMaxLen(stocktest.Soon(t), v.direct.Shard().ShardKeys("s")[9], 1).Err())
		},
		"all trimmed": func(t *testing.T, v *viewed) error {
			_, err := v.direct.Adjust(stocktest.Soon(t), "s", "j", "a", 1, "")
			return errors.Join(err, v.server.Client().XTrimMaxLen(stocktest.Soon(t), v.direct.Shard().ShardKeys("s")[9], 0).Err())
		},
		"flushed": func(t *testing.T, v *viewed) error {
			return v.server.Client().FlushAll(stocktest.Soon(t)).Err()
		},
		"flushed and loaded again": func(t *testing.T, v *viewed) error {
			err := v.server.Client().FlushAll(stocktest.Soon(t)).Err()
			stocktest.Load(t, v.direct, stocktest.OpenSale("s", 3))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := newViewed(t, 1)
			v.soldOut(t, 1)
			v.proxy.HoldRequests("XREAD")
			if err := v.proxy.WaitHeld(stocktest.Soon(t)); err != nil {
				t.Fatal(err)
			}
			if err := change(t, v); err != nil {
				t.Fatal(err)
			}
			bind(t, v, "k|unheard")
			v.proxy.ReleaseRequests()
			stocktest.Eventually(t, "that nothing is remembered", func() bool { return remembered(t, v.Edge, 1) == "" })
			if name == "flushed" {
				stocktest.Eventually(t, "no view", func() bool { _, ok := v.Followed("s"); return !ok })
				return
			}
			stocktest.Eventually(t, "the new view", func() bool { return upToDate(t, v.Edge) && v.BindingsLoaded("s") && v.MayBeBound("s", "k|unheard") })
			if v.MayBeBound("s", "k|none") {
				t.Error("the new view says nothing")
			}
		})
	}
}

// What an edge releases itself is back for its next buyer at once, before it reads the
// journal.
func TestItsOwnRelease(t *testing.T) {
	v := newViewed(t, 1)
	v.soldOut(t, 1)
	v.proxy.HoldReplies("XREAD")
	if err := v.proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := v.ReleaseEventually(stocktest.Soon(t), "s", "all", reservation.SourceShop, ""); err != nil {
		t.Fatal(err)
	}
	if got := remembered(t, v.Edge, 1); got != "" {
		t.Errorf("%s is remembered", got)
	}
	stocktest.MustHold(t, v.Edge, "r2", "Bob", 1)
	v.proxy.ReleaseReplies()
	stocktest.Eventually(t, "the view", func() bool { return upToDate(t, v.Edge) })
}
