package lists_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters/list"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/lists"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// The packages do not import each other: these are the assertions that they fit.
var (
	_ list.HashStore = (*lists.Watcher)(nil)
	_ lists.Filter   = (*list.Hashed)(nil)
)

// listed is a list on an edge.
type listed struct {
	*list.Hashed
	edge *edge.Edge
	view *lists.Watcher
}

// mirror follows a list on an edge of its own.
func mirror(t testing.TB, o shard.Options, name string) *listed {
	t.Helper()
	l := unstarted(t, o, name)
	l.view.Start(l.Hashed)
	stocktest.Eventually(t, "the list can be looked up", func() bool { return l.view.Ready() == nil })
	return l
}

// unstarted is a list on an edge of its own, which does not follow it yet.
func unstarted(t testing.TB, o shard.Options, name string) *listed {
	t.Helper()
	e := stocktest.Ready(t, o)
	v := e.ListView(name)
	t.Cleanup(v.Stop)
	return &listed{Hashed: list.NewHashed(v), edge: e, view: v}
}

// complete waits until the filter is in use.
func (l *listed) complete(t testing.TB) {
	t.Helper()
	l.settles(t, "a filter", func(s list.Stats) bool { return s.Filter > 0 })
}

// settles waits until the filter is as the test wants it. It waits long, because the time
// depends on the machine. When it gives up it reports the present state.
func (l *listed) settles(t testing.TB, what string, so func(list.Stats) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !so(l.Stats()) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s; it is %+v, ready: %v", what, l.Stats(), l.view.Ready())
		}
	}
}

func (l *listed) secret(t testing.TB) *identity.Secret {
	t.Helper()
	s, err := l.edge.Secret()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (l *listed) add(t testing.TB, name string, entries ...string) {
	t.Helper()
	if _, err := lists.New(l.edge.Store.Shard()).Add(t.Context(), l.secret(t), name, parse(t, entries)); err != nil {
		t.Fatal(err)
	}
}

func (l *listed) remove(t testing.TB, name string, entries ...string) {
	t.Helper()
	if _, err := lists.New(l.edge.Store.Shard()).Remove(t.Context(), l.secret(t), name, parse(t, entries)); err != nil {
		t.Fatal(err)
	}
}

func parse(t testing.TB, texts []string) []lists.Entry {
	t.Helper()
	entries := make([]lists.Entry, len(texts))
	for i, text := range texts {
		e, err := list.Parse(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		entries[i] = lists.Entry(e)
	}
	return entries
}

// has looks a value up.
func (l *listed) has(t testing.TB, kind, value string) bool {
	t.Helper()
	yes, err := l.ask(kind, value)
	if err != nil {
		t.Fatalf("%s %q: %v", kind, value, err)
	}
	return yes
}

// ask looks a value up. It repeats while the watcher has had no answer from Redis for too long, as
// happens on a busy machine.
func (l *listed) ask(kind, value string) (yes bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		yes, err = l.Has(ctx, kind, value)
		if !errors.Is(err, shard.ErrUnavailable) {
			return yes, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return yes, err
		}
	}
}

func TestListView(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		one := mirror(t, stocktest.Options(b), "bad")
		one.add(t, "bad", "alice", "10.0.0.0/8")
		two := mirror(t, stocktest.Options(b), "bad") // the list already has entries
		for _, l := range []*listed{one, two} {
			stocktest.Eventually(t, "the first entries", func() bool { return l.has(t, list.Any, "alice") && l.has(t, list.IP, "10.1.1.1") })
			l.complete(t)
			for _, c := range [][2]string{{list.Any, "bob"}, {list.Buyer, "alice"}, {list.IP, "11.1.1.1"}, {list.IP, "2001:db8::1"}, {list.Any, "10.1.1.1"}} {
				if l.has(t, c[0], c[1]) {
					t.Errorf("%v is found in the list", c)
				}
			}
		}
		one.add(t, "bad", "phone:1555")
		stocktest.Eventually(t, "a new kind, on the other edge", func() bool { return two.has(t, list.Phone, "1555") })
		two.add(t, "bad", "11.1.0.0/16", "2001:db8::/33")
		stocktest.Eventually(t, "new lengths of prefixes", func() bool { return one.has(t, list.IP, "11.1.1.1") && one.has(t, list.IP, "2001:db8::1") })
		one.remove(t, "bad", "alice", "10.0.0.0/8")
		stocktest.Eventually(t, "a removal", func() bool { return !two.has(t, list.Any, "alice") && !two.has(t, list.IP, "10.1.1.1") })
		one.add(t, "bad", "alice")
		stocktest.Eventually(t, "an entry again", func() bool { return two.has(t, list.Any, "alice") })
		if two.has(t, list.IP, "11.2.1.1") || two.has(t, list.Device, "1555") {
			t.Error("a value that is not in the list is found")
		}
		other := mirror(t, stocktest.Options(b), "other")
		other.complete(t)
		if other.has(t, list.Any, "alice") {
			t.Error("another list has the entries of this one")
		}
	})
}

// TestListViewCatchesUp delays an edge's requests while other edges change the list. Afterwards
// the edge reads what it missed, and not the whole list.
func TestListViewCatchesUp(t *testing.T) {
	b := redistest.Start(t)
	writer := mirror(t, stocktest.Options(b), "writer's own")
	writer.add(t, "bad", "alice")
	p := redistest.NewProxy(t, b.Addr())
	l := mirror(t, stocktest.At(p.Addr(), stocktest.Long), "bad")
	l.complete(t)
	read := p.Requests("SMEMBERS")

	p.HoldRequests("HMGET")
	if err := p.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		writer.add(t, "bad", fmt.Sprint("buyer:", i), fmt.Sprint("device:", i))
	}
	writer.remove(t, "bad", "alice")
	p.ReleaseRequests()
	stocktest.Eventually(t, "the changes", func() bool { return l.has(t, list.Device, "199") })
	for i := range 200 {
		if !l.has(t, list.Buyer, fmt.Sprint(i)) || !l.has(t, list.Device, fmt.Sprint(i)) {
			t.Fatalf("%d was missed", i)
		}
	}
	if l.has(t, list.Any, "alice") {
		t.Error("a removal was missed")
	}
	if again := p.Requests("SMEMBERS"); again != read {
		t.Errorf("the list was read again: %d requests, then %d", read, again)
	}
}

// TestListViewMissesTooMuch: when the log does not go back far enough, the edge reads the whole
// list again. Meanwhile it finds every entry, because it asks Redis.
func TestListViewMissesTooMuch(t *testing.T) {
	b := redistest.Start(t)
	writer := mirror(t, stocktest.Options(b), "writer's own")
	writer.add(t, "bad", "first")
	p := redistest.NewProxy(t, b.Addr())
	l := mirror(t, stocktest.At(p.Addr(), stocktest.Long), "bad")
	l.complete(t)
	read := p.Requests("SMEMBERS")

	p.HoldRequests("HMGET", "SMEMBERS")
	if err := p.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	for i := range 1100 {
		writer.add(t, "bad", fmt.Sprint("v", i))
	}
	p.HoldRequests("SMEMBERS")
	stocktest.Eventually(t, "the old filter is given up", func() bool { return l.Stats().Filter == 0 })
	stocktest.Eventually(t, "the list can be looked up", func() bool { return l.view.Ready() == nil })
	for _, name := range []string{"first", "v0", "v1099"} {
		if !l.has(t, list.Any, name) {
			t.Errorf("%s was missed", name)
		}
	}
	if l.has(t, list.Any, "v1100") {
		t.Error("a value that is not in the list is found")
	}
	p.ReleaseRequests()
	l.complete(t)
	for i := range 1100 {
		if !l.has(t, list.Any, fmt.Sprint("v", i)) {
			t.Fatalf("v%d was missed", i)
		}
	}
	if p.Requests("SMEMBERS") == read {
		t.Error("the list was not read again")
	}
}

// TestListViewOfAnotherLife: Redis comes back with other data under the same name, with fewer
// changes than before, as many, or more.
func TestListViewOfAnotherLife(t *testing.T) {
	for name, entries := range map[string][]string{"none": nil, "fewer": {"bob"}, "as many": {"carol", "bob"}, "more": {"carol", "dave", "bob"}} {
		t.Run(name, func(t *testing.T) {
			b := redistest.Start(t)
			writer := mirror(t, stocktest.Options(b), "writer's own")
			writer.add(t, "bad", "alice")
			writer.add(t, "bad", "anne")
			p := redistest.NewProxy(t, b.Addr())
			l := mirror(t, stocktest.At(p.Addr(), stocktest.Long), "bad")
			l.complete(t)
			p.HoldRequests("HMGET")
			if err := p.WaitHeld(stocktest.Soon(t)); err != nil {
				t.Fatal(err)
			}
			meta := "stockgate:list:{bad}:*"
			if err := b.Client().Del(stocktest.Soon(t), b.Client().Keys(stocktest.Soon(t), meta).Val()...).Err(); err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				writer.add(t, "bad", e)
			}
			p.ReleaseRequests()
			for _, e := range entries {
				stocktest.Eventually(t, e, func() bool { return l.has(t, list.Any, e) })
			}
			l.settles(t, "a filter of what there is now", func(s list.Stats) bool { return s.Filter > 0 && s.Entries == len(entries) })
			if l.has(t, list.Any, "alice") {
				t.Error("alice is still listed")
			}
		})
	}
}

// TestListViewGrows: a filter that has become too small, or that has many removed entries, is
// made again.
func TestListViewGrows(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		l := mirror(t, stocktest.Options(b), "bad")
		l.complete(t)
		small := l.Stats()
		names := make([]string, 12_000)
		for i := range names {
			names[i] = fmt.Sprint("buyer:", i)
		}
		l.add(t, "bad", names...)
		// the last one may have been begun for as few as 5,334 entries, twice over
		l.settles(t, "a larger filter", func(s list.Stats) bool { return s.Entries == len(names) && 2*s.Filter >= 5*small.Filter })
		l.remove(t, "bad", names[:11_000]...)
		l.settles(t, "a filter without the removed", func(s list.Stats) bool { return s.Entries <= 5_000 })
		for i := range names {
			if l.has(t, list.Buyer, fmt.Sprint(i)) != (i >= 11_000) {
				t.Fatalf("buyer %d is listed: %v", i, i < 11_000)
			}
		}
	})
}

// TestListViewReadsWhatIsAdded: an entry that is added while the edge reads the list counts
// once, whether the edge finds it in the list or only in the log.
func TestListViewReadsWhatIsAdded(t *testing.T) {
	b := redistest.Start(t)
	writer := mirror(t, stocktest.Options(b), "writer's own")
	first, second, third := make([]string, 1000), make([]string, 1000), make([]string, 1000)
	for i := range first {
		first[i], second[i], third[i] = fmt.Sprint("buyer:a", i), fmt.Sprint("buyer:b", i), fmt.Sprint("buyer:c", i)
	}
	writer.add(t, "bad", first...)
	p := redistest.NewProxy(t, b.Addr())
	l := unstarted(t, stocktest.At(p.Addr(), stocktest.Long), "bad")
	p.HoldRequests("SMEMBERS") // before the first parts are read
	read := p.Requests("SMEMBERS")
	l.view.Start(l.Hashed)
	if err := p.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	writer.add(t, "bad", second...)
	p.HoldReplies("SMEMBERS") // after they were read
	p.ReleaseRequests()
	if err := errors.Join(p.WaitRequests(stocktest.Soon(t), read+1, "SMEMBERS"), p.WaitHeld(stocktest.Soon(t))); err != nil {
		t.Fatal(err)
	}
	writer.add(t, "bad", third...)
	p.ReleaseReplies()
	l.complete(t)
	if s := l.Stats(); s.Entries != 3000 {
		t.Errorf("%d entries, want 3000", s.Entries)
	}
	for i := range 1000 {
		for _, kind := range []string{"a", "b", "c"} {
			if !l.has(t, list.Buyer, fmt.Sprint(kind, i)) {
				t.Fatalf("%s%d was missed", kind, i)
			}
		}
	}
}

// TestListViewWhileChanging: several edges change a list and look entries up at the same time.
// An entry that was added for good and was found once is always found after that, and in the
// end all are found.
func TestListViewWhileChanging(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		each := draw.Times(1000, 3000)
		edges := []*listed{mirror(t, stocktest.Options(b), "bad"), mirror(t, stocktest.Options(b), "bad")}
		var found atomic.Int64
		done := make(chan struct{})
		var lookups, changes sync.WaitGroup
		lookups.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				for i := range found.Load() {
					if yes, err := edges[1].ask(list.Any, fmt.Sprint("0/", i*100)); !yes || err != nil {
						t.Errorf("%d was found before: %v, %v", i*100, yes, err)
						return
					}
				}
				if yes, err := edges[1].ask(list.Any, fmt.Sprint("0/", found.Load()*100)); err != nil {
					t.Error(err)
				} else if yes {
					found.Add(1)
				}
			}
		})
		for n, l := range edges {
			changes.Go(func() {
				secret, err := l.edge.Secret()
				if err != nil {
					t.Error(err)
					return
				}
				for i := 0; i < each; i += 100 {
					var batch, gone []string
					for j := range 100 {
						batch = append(batch, fmt.Sprint(n, "/", i+j))
						gone = append(gone, fmt.Sprint("any:gone ", n, i+j))
					}
					_, err1 := lists.New(l.edge.Store.Shard()).Add(context.Background(), secret, "bad", parse(t, append(batch, gone...)))
					_, err2 := lists.New(l.edge.Store.Shard()).Remove(context.Background(), secret, "bad", parse(t, gone))
					if err := errors.Join(err1, err2); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		changes.Wait()
		for _, l := range edges {
			for n := range edges {
				stocktest.Eventually(t, "the last change", func() bool { return l.has(t, list.Any, fmt.Sprint(n, "/", each-1)) })
			}
		}
		close(done) // the edges have seen all changes
		lookups.Wait()
		for _, l := range edges {
			for n := range edges {
				for i := range each {
					if !l.has(t, list.Any, fmt.Sprint(n, "/", i)) {
						t.Fatalf("%d/%d was missed", n, i)
					}
				}
			}
		}
	})
}

// TestListLookupsDoNotDelayConfirms: Redis is slow with the lookups of attempts, and more wait
// than there are connections. A confirm has others.
func TestListLookupsDoNotDelayConfirms(t *testing.T) {
	f := stocktest.NewFaulty(t, stocktest.Long)
	stocktest.MustHold(t, f.Edge, "sold", "Ann", 1)
	v := f.Edge.ListView("bad")
	t.Cleanup(v.Stop)
	l := &listed{Hashed: list.NewHashed(v), edge: f.Edge, view: v}
	v.Start(l.Hashed)
	stocktest.Eventually(t, "the list can be looked up", func() bool { return v.Ready() == nil })
	l.add(t, "bad", "buyer:bob")
	stocktest.Eventually(t, "an entry", func() bool { return l.has(t, list.Buyer, "bob") })

	const connections = 64 // of a pool
	asked := f.Proxy.Requests("SISMEMBER")
	f.Proxy.HoldReplies("SISMEMBER")
	var lookups sync.WaitGroup
	var ended atomic.Int64
	for range 2 * connections {
		lookups.Go(func() {
			_, _ = l.Has(context.Background(), list.Buyer, "bob")
			ended.Add(1)
		})
	}
	defer lookups.Wait()
	defer f.Proxy.ReleaseReplies()
	if err := f.Proxy.WaitRequests(stocktest.Soon(t), asked+connections, "SISMEMBER"); err != nil {
		t.Fatal(err)
	}
	if state, err := f.Edge.Store.Confirm(stocktest.Soon(t), "s", "sold", reservation.SourceAnswer, ""); err != nil || state != record.Confirmed {
		t.Errorf("the confirm: %q, %v", state, err)
	}
	if n := ended.Load(); n > 0 {
		t.Errorf("the confirm waited until %d lookups gave up", n)
	}
}

// TestListLookupsOfOneAttemptEndTogether: an attempt that has waited long enough for earlier
// lookups does not wait for another one.
func TestListLookupsOfOneAttemptEndTogether(t *testing.T) {
	b := redistest.Start(t)
	p := redistest.NewProxy(t, b.Addr())
	l := mirror(t, stocktest.At(p.Addr(), stocktest.Long), "bad")
	keys := [][16]byte{l.view.HashText(list.Buyer, "bob")}
	if yes, err := l.view.HasAny(t.Context(), time.Now(), keys); yes || err != nil {
		t.Errorf("the first lookup: %v, %v", yes, err)
	}
	asked := p.Requests("SISMEMBER")
	if yes, err := l.view.HasAny(t.Context(), time.Now().Add(-stocktest.Long), keys); yes || !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("a lookup when the time is up: %v, %v", yes, err)
	}
	if n := p.Requests("SISMEMBER") - asked; n != 0 {
		t.Errorf("Redis was asked %d times when the time was up", n)
	}
}

func TestListViewNotReady(t *testing.T) {
	b := redistest.Start(t)
	e := stocktest.NewEdge(t, stocktest.Options(b), edge.Options{}) // has had no answer from Redis
	v := e.ListView("bad")
	m := list.NewHashed(v)
	if _, err := e.Secret(); !errors.Is(err, shard.ErrStarting) {
		t.Errorf("a secret before there is one: %v", err)
	}
	if yes, err := m.Has(context.Background(), list.Any, "alice"); yes || !errors.Is(err, shard.ErrStarting) {
		t.Errorf("before it was started: %v, %v", yes, err)
	}
	v.Start(m)
	v.Start(m)
	if err := v.Ready(); !errors.Is(err, shard.ErrStarting) {
		t.Errorf("without a secret: %v", err)
	}
	if err := e.Refresh(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "the list can be looked up", func() bool { return v.Ready() == nil })

	// the entries were hashed with a secret that is gone
	meta := "stockgate:list:{bad}:meta"
	if err := b.Client().HSet(stocktest.Soon(t), meta, "secret", "another").Err(); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "the wrong secret is seen", func() bool { return errors.Is(v.Ready(), lists.ErrForeignSecret) })
	if yes, err := m.Has(context.Background(), list.Any, "alice"); yes || !errors.Is(err, lists.ErrForeignSecret) {
		t.Errorf("with another secret: %v, %v", yes, err)
	}
	if err := b.Client().Del(stocktest.Soon(t), meta).Err(); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "the list can be looked up", func() bool { return v.Ready() == nil })

	b.Kill()
	stocktest.Eventually(t, "silence is seen", func() bool { return errors.Is(v.Ready(), shard.ErrUnavailable) })
	if yes, err := m.Has(context.Background(), list.Any, "alice"); yes || !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("without Redis: %v, %v", yes, err)
	}
	b.Restart()
	stocktest.Eventually(t, "the list can be looked up", func() bool { return v.Ready() == nil })
	v.Stop()
	v.Stop()
	v.Start(m)
}

func TestListViewStopsWithoutStart(t *testing.T) {
	e := stocktest.NewEdge(t, stocktest.Options(redistest.Start(t)), edge.Options{})
	v := e.ListView("bad")
	v.Stop()
	v.Start(list.NewHashed(v))
}
