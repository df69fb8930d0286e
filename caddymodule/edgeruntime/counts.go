package edgeruntime

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/counts"
)

const (
	// countsWithin bounds one round of writing where Redis may not take longer to answer, and lastCountsWithin the last one
	// of an edge that stops.
	countsWithin, lastCountsWithin = 5 * time.Second, 2 * time.Second
)

// ownCounts writes what this process counts, for all its edge runtimes.
var ownCounts = counts.NewWriter()

// openRuntimes is how many edge runtimes of this process write.
var openRuntimes atomic.Int64

// What all edges have counted of a sale.
type (
	SaleCounts    = counts.SaleCounts
	ProcessCounts = counts.ProcessCounts
	Counters      = counts.Counters
	Histogram     = counts.Histogram
)

// CountedAttempts is the name of attempts in [Counters].
func CountedAttempts(outcome, reason string) string { return counts.Attempts(outcome, reason) }

// CountsEvery is how often edges write.
func CountsEvery() time.Duration { return timing.Counts.Now() }

// counting writes this edge's counts in the background.
type counting struct {
	stop  context.CancelFunc
	done  chan struct{}
	ended sync.Once
	full  atomic.Pointer[[]string] // sales that have no room for this process
	ill   bool                     // the last round failed; only the loop uses it
}

// count begins to write.
func (d *Runtime) count() {
	ctx, stop := context.WithCancel(context.Background())
	d.counting = &counting{stop: stop, done: make(chan struct{})}
	openRuntimes.Add(1)
	go func() {
		defer close(d.counting.done)
		loop.Every(ctx, timing.Counts.Now(), nil, func() { d.tellCounts(ctx) })
	}()
}

// stopCounting ends that, after a last round.
func (d *Runtime) stopCounting() {
	d.counting.stop()
	<-d.counting.done
	last := openRuntimes.Add(-1) == 0
	ctx, cancel := context.WithTimeout(context.Background(), lastCountsWithin)
	defer cancel()
	if err := d.writeCounts(ctx, last); err != nil {
		d.log.Warn("the sums over all edges may lack the last seconds of this one", zap.Error(err))
	}
}

// tellCounts makes a round, and logs once that writing fails. A round that the end of the edge cuts off is no
// failure: the last round writes it.
func (d *Runtime) tellCounts(ctx context.Context) {
	round, cancel := context.WithTimeout(ctx, max(countsWithin, 2*d.Client().Timeout()))
	defer cancel()
	err := d.writeCounts(round, false)
	switch {
	case ctx.Err() != nil:
	case err != nil && !d.counting.ill && d.Ready() == nil:
		d.counting.ill = true
		d.log.Warn("redis does not take what this edge has counted: sums over all edges lack it until then", zap.Error(err))
	case err == nil:
		d.counting.ill = false
	}
}

// writeCounts writes what this process has counted. last: it stops.
func (d *Runtime) writeCounts(ctx context.Context, last bool) error {
	r := &counts.Round{Client: d.Client(), Edge: d.Leases().ID(), Ready: d.Ready() == nil, Last: last, All: meter.Counted()}
	for l := range d.Catalogue().All {
		if l.Lost() {
			continue
		}
		r.Sales = append(r.Sales, counts.Counted{Sale: l.Sale.ID, Live: l.IsLive(), Sells: l.IsOnSale()})
	}
	full, err := ownCounts.Write(ctx, r)
	d.counting.full.Store(&full)
	return err
}

// Counts reads what all edges have counted of a sale: this one until now, the others until their last round.
func (d *Runtime) Counts(ctx context.Context, sale string) (*SaleCounts, error) {
	if err := d.writeCounts(ctx, false); err != nil {
		return nil, err
	}
	return d.LastCounts(ctx, sale)
}

// LastCounts is Counts, and writes nothing.
func (d *Runtime) LastCounts(ctx context.Context, sale string) (*SaleCounts, error) {
	return counts.Read(ctx, d.Client(), sale)
}

// Uncounted returns the sales whose sums lack this edge, because too many count there.
func (d *Runtime) Uncounted() []string {
	if full := d.counting.full.Load(); full != nil {
		return *full
	}
	return nil
}
