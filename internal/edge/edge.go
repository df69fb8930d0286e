// Package edge is one selling process at work on a store: it reserves stock, sends
// outcomes until Redis has them, ends overdue holds, and follows the journals to refuse
// attempts without asking Redis.
package edge

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/edge/fence"
	"github.com/stockgate/stockgate/internal/edge/risk"
	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/lists"
	"github.com/stockgate/stockgate/internal/store/rates"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/store/waitlist"
)

const (
	// watchEvery is how often an edge looks for changed sales; notices come sooner.
	watchEvery = 500 * time.Millisecond
	// defaultCheckEvery is how often it looks at the server's settings and the shared secret by default.
	defaultCheckEvery = 5 * time.Second
)

// Metrics receives what an edge counts. Implementations must be safe for
// concurrent use and fast.
type Metrics interface {
	// Reserved is called with the sale and the duration of each reserve request, whatever its answer.
	Reserved(sale string, took time.Duration)
	// RedisFailed is called when a call got no answer; during is reserve, settle, watch,
	// reap or rate.
	RedisFailed(during string)
	// BacklogDropped is called when an outcome does not fit into the backlog.
	BacklogDropped()
	// SoldUnbacked is called when the shop took an order whose units were sold elsewhere.
	SoldUnbacked()
	// SoldOther is called when an order has other units than were reserved: fewer or more.
	SoldOther(than string)
	// NothingLeft is called when an attempt is refused because its units are not there:
	// by Redis or, if remembered, without asking it.
	NothingLeft(remembered bool)
	fence.Metrics
}

type noMetrics struct{}

func (noMetrics) Reserved(string, time.Duration) {}
func (noMetrics) RedisFailed(string)             {}
func (noMetrics) BacklogDropped()                {}
func (noMetrics) SoldUnbacked()                  {}
func (noMetrics) SoldOther(string)               {}
func (noMetrics) NothingLeft(bool)               {}
func (noMetrics) Fenced(int)                     {}
func (noMetrics) Lost(_, _, _ int64)             {}

// Options configures an Edge.
type Options struct {
	// Keys are this edge's signing keys; the first signs.
	Keys []shard.SigningKey
	// Log gets the edge's messages. Default: none.
	Log *zap.Logger
	// Metrics gets what the edge counts. Default: none.
	Metrics Metrics
	// Rates is where shared rates are counted: a Redis of its own, or the same with
	// connections of its own. The edge closes it. Default: the edge's store.
	Rates *shard.Client
	// AtRisk bounds the units that a failover may lose. Default: any number.
	AtRisk risk.Bound
	// CheckEvery is how often the edge looks at the server's settings and at what all edges share: the
	// secret and the signing keys. Default: 5 s.
	CheckEvery time.Duration
	// Silence returns how long the edge sells without an answer from Redis. Default: 5 s.
	Silence func() time.Duration
}

// Edge is one process that sells from a store. It is safe for concurrent use.
type Edge struct {
	// Store has what the edge sells. Its methods call Redis once, and return an error if
	// Redis does not answer. The methods of Edge that end in Eventually retry in the
	// background until Redis has the outcome.
	Store   *reservation.Store
	shard   *shard.Client
	rates   *rates.Rates
	keys    []shard.SigningKey
	log     *zap.Logger
	metrics atomic.Pointer[Metrics]

	catalogue  atomic.Pointer[Catalogue]
	remembered remembered
	secret     atomic.Pointer[identity.Secret]
	public     atomic.Pointer[[]string]
	health     atomic.Pointer[shard.Health]
	uncounted  atomic.Pointer[error] // why shared rates cannot be counted
	backlog    *backlog
	own        ownHolds
	upcoming   upcoming
	checks     *checks
	leases     *fence.Keeper
	risk       *risk.Tracker
	desk       *waitlist.Desk
	watches    waitlist.Watches     // clients that wait for news of their places
	unitsBack  chan struct{}        // wakes who makes offers
	asksList   chan struct{}        // bounds calls of IsOnList
	viewNow    func() time.Duration // the clock of the view; it only goes forward

	start, stop sync.Once
	poke        chan struct{}
	cancel      context.CancelFunc
	loops       sync.WaitGroup
	watching    sync.Mutex // one look at a time; guards checked
	checked     time.Time
	checkEvery  time.Duration
	silence     func() time.Duration
}

// New makes an edge on a store. It does nothing before Start.
func New(s *reservation.Store, o Options) *Edge {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	e := &Edge{Store: s, shard: s.Shard(), keys: o.Keys, log: o.Log, poke: make(chan struct{}, 1), unitsBack: make(chan struct{}, 1), asksList: make(chan struct{}, mostAsking), desk: waitlist.NewDesk(s), viewNow: sinceStarted, checkEvery: cmp.Or(o.CheckEvery, defaultCheckEvery), silence: o.Silence}
	if e.silence == nil {
		e.silence = func() time.Duration { return shard.Silence }
	}
	counted := o.Rates
	if counted == nil {
		counted = s.Shard()
	}
	e.rates = rates.New(counted, e.secret.Load, func() { (*e.metrics.Load()).RedisFailed("rate") })
	e.setMetrics(o.Metrics)
	e.leases = fence.New(s, o.Log, fenceMetrics{e})
	e.backlog = newBacklog(o.Log, e.sendOutcomes, func() { (*e.metrics.Load()).BacklogDropped() })
	e.checks = newChecks(e)
	e.risk = risk.New(e.shard, o.AtRisk, o.Log)
	s.Risk = e.risk
	e.catalogue.Store(newCatalogue(nil))
	e.health.Store(&shard.Health{Err: shard.ErrStarting})
	return e
}

// fenceMetrics counts with the metrics that the edge has at the moment.
type fenceMetrics struct{ edge *Edge }

func (m fenceMetrics) Fenced(change int) { (*m.edge.metrics.Load()).Fenced(change) }
func (m fenceMetrics) Lost(promises, edges, movements int64) {
	(*m.edge.metrics.Load()).Lost(promises, edges, movements)
}

// Leases are the edge's leases on the sales that it sells.
func (e *Edge) Leases() *fence.Keeper { return e.leases }

// Silent returns the edges that are not heard any more, in sales that are not over.
func (e *Edge) Silent() []fence.SilentEdge {
	return e.leases.Silent(e.catalogue.Load().unfinished(time.Now()))
}

// setMetrics replaces the metrics; nil: nothing is counted.
func (e *Edge) setMetrics(m Metrics) {
	if m == nil {
		m = noMetrics{}
	}
	e.metrics.Store(&m)
}

// Start begins to watch sales, end overdue holds, follow journals and send late
// outcomes. Only the first call has an effect.
func (e *Edge) Start() {
	e.start.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		e.cancel = cancel
		if !e.shard.Embedded() { // which is no other process's primary
			e.leases.Start(ctx)
		}
		for _, loop := range []func(context.Context){e.watch, e.listen, e.reap, e.perform, e.follow, e.backlog.run, e.risk.Run, e.watchRates, e.makeOffers} {
			e.loops.Go(func() { loop(ctx) })
		}
	})
}

// Stop sends Redis the outcomes that wait, until ctx ends, then stops all loops and
// closes the edge's stores. It may be called again, and without Start.
func (e *Edge) Stop(ctx context.Context) error {
	var err error
	e.stop.Do(func() {
		e.start.Do(func() {}) // a later Start does nothing
		e.watches.End()
		if e.cancel != nil {
			if left := e.backlog.drain(ctx); left > 0 {
				e.log.Error("stopped before redis could be told how some forwarded attempts ended: they will be in doubt", zap.Int("reservations", left))
			}
			e.leases.Leave(ctx)
			e.cancel()
			e.loops.Wait()
			e.leases.Wait()
		}
		e.rates.Close()
		e.desk.Close()
		err = e.Store.Close()
		if shard := e.rates.Shard(); shard != e.shard {
			err = errors.Join(err, shard.Close())
		}
	})
	return err
}

// Catalogue is the edge's present view of all sales.
func (e *Edge) Catalogue() *Catalogue { return e.catalogue.Load() }

// PublicKeys returns the JWKs of all edges that this one knows of.
func (e *Edge) PublicKeys() []string {
	if p := e.public.Load(); p != nil {
		return *p
	}
	return nil
}

// Backlog returns the number of outcomes that Redis does not have yet.
func (e *Edge) Backlog() int { return e.backlog.size() }

// Ready returns why the edge must not sell now; nil: it may.
func (e *Edge) Ready() error { return e.ReadyAt(time.Now()) }

// ReadyAt is Ready at a moment of this machine's clock.
func (e *Edge) ReadyAt(moment time.Time) error {
	return e.health.Load().ReadyAt(moment, e.silence())
}

// watch keeps the catalogue, the secret and the health up to date.
func (e *Edge) watch(ctx context.Context) {
	loop.Every(ctx, watchEvery, e.poke, func() { _ = e.look(ctx) }) // the log and Ready report errors
}

// Refresh looks for changed sales now.
func (e *Edge) Refresh(ctx context.Context) error { return e.look(ctx) }

// Recheck is Refresh, and looks also at what Refresh looks at only now and then.
func (e *Edge) Recheck(ctx context.Context) error {
	e.watching.Lock()
	e.checked = time.Time{}
	e.watching.Unlock()
	return e.look(ctx)
}

// look asks Redis once for everything that an edge must know.
func (e *Edge) look(ctx context.Context) error {
	e.watching.Lock()
	defer e.watching.Unlock()
	ctx, cancel := context.WithTimeout(ctx, max(4*e.shard.Timeout(), time.Second))
	defer cancel()
	err := e.check(ctx)
	if err == nil {
		var c *Catalogue
		var index []string
		old := e.catalogue.Load()
		if c, index, err = e.readCatalogue(ctx, old, e.remembered.list()); err == nil {
			e.catalogue.Store(c)
			e.miss(ctx, old, c, index)
			e.leases.Watch(c.unfinished(time.Now()))
			err = e.shard.CheckReplicas(ctx)
		}
	}
	before := e.health.Load()
	now := &shard.Health{Err: err, LastAnswer: before.LastAnswer}
	if err == nil {
		now.LastAnswer = time.Now()
	} else if !errors.Is(err, context.Canceled) {
		(*e.metrics.Load()).RedisFailed("watch")
	}
	e.health.Store(now)
	switch {
	case err != nil && (before.Err == nil || before.Err == shard.ErrStarting) && !errors.Is(err, context.Canceled):
		e.log.Error("not selling: the gates answer 503", zap.Error(err))
	case err == nil && before.Err != nil:
		e.log.Info("selling: redis answers")
	}
	return err
}

// check looks at the server's settings and the shared secret, now and then.
func (e *Edge) check(ctx context.Context) error {
	if e.secret.Load() != nil && time.Since(e.checked) < e.checkEvery && e.health.Load().Err == nil {
		return nil
	}
	if err := e.shard.CheckMemoryPolicy(ctx); err != nil {
		return err
	}
	if err := e.shard.CheckMove(ctx); err != nil {
		return err
	}
	secret, err := e.shard.Enroll(ctx, e.keys, e.secret.Load())
	if err != nil {
		return err
	}
	public, err := e.shard.PublicKeys(ctx)
	if err != nil {
		return err
	}
	e.secret.Store(secret)
	e.public.Store(&public)
	e.checked = time.Now()
	return nil
}

// listen wakes the watch when another process has changed a sale.
func (e *Edge) listen(ctx context.Context) {
	e.shard.Listen(ctx, e.shard.Channel(), func() {
		select {
		case e.poke <- struct{}{}:
		default:
		}
	})
}

// Secret returns the key with which all edges hash identities. The error is
// shard.ErrStarting until this edge has it.
func (e *Edge) Secret() (*identity.Secret, error) {
	if s := e.secret.Load(); s != nil {
		return s, nil
	}
	return nil, shard.ErrStarting
}

// ListView makes a view of a named list. It does nothing before Start.
func (e *Edge) ListView(list string) *lists.Watcher {
	return lists.NewWatcher(lists.New(e.shard), list, lists.WatcherOptions{
		Secret:  e.secret.Load,
		Silence: e.silence,
		Failed:  func() { (*e.metrics.Load()).RedisFailed("watch") },
		Log:     e.log,
	})
}
