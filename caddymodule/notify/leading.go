package notify

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/caddymodule/overviewcache"
	"github.com/stockgate/stockgate/internal/store/lease"
	"github.com/stockgate/stockgate/internal/store/notices"
)

const (
	// deadAfter is how long an edge's report counts that does not change any more, and dropAfter how long it stays.
	deadAfter, dropAfter = 10 * time.Second, 10 * time.Minute
	// edgeCalm times as long as anything else an edge must be back: heartbeats come every 20 s of sales that are not
	// sold now.
	edgeCalm = 5
)

// cacheOptions bound how often the sales are read. No cell is kept.
var cacheOptions = overviewcache.Options{Least: 2 * time.Second, Longest: 30 * time.Second, Queue: true}

// leading is the time in which this edge tells for all. It is used by one goroutine.
type leading struct {
	lease   *lease.Lease
	stop    context.CancelFunc
	sending sync.WaitGroup
	cache   atomic.Pointer[overviewcache.Cache]
	edges   map[string]heard
	gone    map[string]time.Time // since when a subject that was told is gone
	back    map[string]time.Time // since when a sale that was sold out has units
	over    atomic.Bool          // the sender has ended
}

// heard is the report of an edge, and since when it has not changed.
type heard struct {
	report
	since time.Time
}

func newLeading(l *lease.Lease, stop context.CancelFunc) *leading {
	return &leading{lease: l, stop: stop, edges: make(map[string]heard), gone: make(map[string]time.Time), back: make(map[string]time.Time)}
}

// judge compares the sales and the edges with what was told, and tells the differences.
func (l *leading) judge(ctx context.Context, t *teller) {
	said, known, err := t.runtime.Client().Conditions(ctx)
	if err != nil {
		return
	}
	now := time.Now()
	if dead := l.hear(said, now); len(dead) > 0 {
		_ = t.runtime.Client().DropConditions(ctx, dead...)
	}
	look := &lookout{teller: t, ctx: ctx, now: now, known: known, cache: overviewcache.Of(&l.cache, t.runtime, cacheOptions), shop: l.shop(now), back: l.back}
	look.sales()
	look.edges()
	for _, c := range l.conditions(now) {
		look.add(c.Kind, fact{about: c.About, state: "on", over: c.Over, say: func(string) *notices.Notice { n := c.notice(); return &n }})
	}
	l.watch(known, look.facts, now)
	for _, c := range decide(known, look.facts, now, look.isUnknown, func(about string) bool { return l.calm(about, now) }) {
		if _, err := t.notices.Raise(ctx, c.about, c.from, c.to, c.notice); err != nil {
			return // the next round does
		}
	}
}

// hear reads what edges say of themselves, and returns those that are long dead.
func (l *leading) hear(said map[string]string, now time.Time) (dead []string) {
	for edge, text := range said {
		var r report
		if json.Unmarshal([]byte(text), &r) != nil {
			continue // a newer edge
		}
		if before, ok := l.edges[edge]; !ok || before.Round != r.Round {
			l.edges[edge] = heard{r, now}
		} else if now.Sub(before.since) > dropAfter {
			dead = append(dead, edge)
		}
	}
	for edge := range l.edges {
		if _, ok := said[edge]; !ok {
			delete(l.edges, edge)
		}
	}
	return dead
}

// conditions are what goes on at edges that live.
func (l *leading) conditions(now time.Time) (all []condition) {
	for _, h := range l.edges {
		if now.Sub(h.since) < deadAfter {
			all = append(all, h.Conditions...)
		}
	}
	slices.SortFunc(all, func(a, b condition) int { return strings.Compare(a.About, b.About) })
	return slices.CompactFunc(all, func(a, b condition) bool { return a.About == b.About })
}

// shop sums up the orders of the last minute over all edges.
func (l *leading) shop(now time.Time) map[string][2]int64 {
	all := make(map[string][2]int64)
	for _, h := range l.edges {
		if now.Sub(h.since) >= deadAfter {
			continue
		}
		for id, n := range h.Shop {
			sum := all[id]
			all[id] = [2]int64{sum[0] + n[0], sum[1] + n[1]}
		}
	}
	return all
}

// watch notes since when what was told is gone.
func (l *leading) watch(known map[string]string, facts []fact, now time.Time) {
	there := make(map[string]bool, len(facts))
	for _, f := range facts {
		there[f.about] = true
	}
	for about := range known {
		if _, gone := l.gone[about]; !gone && !there[about] {
			l.gone[about] = now
		}
	}
	for about := range l.gone {
		if _, told := known[about]; !told || there[about] {
			delete(l.gone, about)
		}
	}
}

func (l *leading) calm(about string, now time.Time) bool {
	wait := timing.NoticeCalm.Now()
	if strings.HasPrefix(about, "edge ") {
		wait *= edgeCalm
	}
	since, gone := l.gone[about]
	return gone && now.Sub(since) >= wait
}
