package probe

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// probeLook is the longest pause between two searches for holds to ask about.
	probeLook = time.Second
	// probeScan is the pause after a page of holds in doubt among which none was due, so
	// that long scans do not keep Redis busy.
	probeScan = 100 * time.Millisecond
	// probeRest is the longest pause while Redis does not answer.
	probeRest = 30 * time.Second
)

// prober asks the shop about the holds in doubt of one gate, in all sales. Several probers
// may run, on several edges and in several configurations: Redis gives the lease of each
// hold to one of them.
type prober struct {
	*Probe
	runtime *edgeruntime.Runtime
	stop    context.CancelFunc
	places  map[string]int // by sale: where the next page of its holds starts
	deaf    atomic.Bool    // the shop gave no useful answer to the last request
}

// startProber starts a prober. It counts as a request of the edge runtime, which therefore
// outlives it.
func startProber(p *Probe, d *edgeruntime.Runtime) *prober {
	ctx, stop := context.WithCancel(context.Background())
	pr := &prober{Probe: p, runtime: d, stop: stop, places: make(map[string]int)}
	if !d.Begin() {
		return pr // the process ends
	}
	go func() {
		defer d.End()
		defer p.client.CloseIdleConnections()
		pr.run(ctx)
	}()
	return pr
}

// run asks until ctx ends.
func (p *prober) run(ctx context.Context) {
	usual := min(p.plan.Wait, probeLook)
	pause := usual
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		switch asked, more, err := p.round(ctx); {
		case err != nil:
			pause = min(2*pause, probeRest)
			timer.Reset(pause)
			continue
		case asked && more:
			timer.Reset(0)
		case more:
			timer.Reset(min(usual, probeScan))
		default:
			timer.Reset(usual)
		}
		pause = usual
	}
}

// round asks about the next holds of every sale. asked: there were any; more: some sale has
// more to look at. It returns early when Redis does not answer.
func (p *prober) round(ctx context.Context) (asked, more bool, err error) {
	sales := make(map[string]int, len(p.places))
	defer func() { p.places = sales }() // drops the sales that no longer exist
	for l := range p.runtime.Catalogue().All {
		if l.Lost() {
			continue
		}
		n, next, err := p.page(ctx, l.Sale.ID, p.places[l.Sale.ID])
		if errors.Is(err, shard.ErrUnavailable) {
			if ctx.Err() == nil {
				meter.EdgeEvents{}.RedisFailed("probe")
			}
			return asked, more, err
		}
		asked = asked || n > 0
		if next != 0 {
			sales[l.Sale.ID], more = next, true
		}
	}
	return asked, more, nil
}

// page asks about some holds of one sale and waits for the answers, so that it never
// acquires a hold about which it cannot ask at once.
func (p *prober) page(ctx context.Context, sale string, from int) (asked, next int, err error) {
	callCtx, cancel := context.WithTimeout(ctx, 4*p.runtime.Store.Shard().Timeout())
	due, next, err := p.runtime.Store.TakeDueProbes(callCtx, sale, p.gate, p.plan, from)
	cancel()
	if err != nil {
		return 0, 0, err
	}
	var asking sync.WaitGroup
	for _, one := range due { // at most probeAtOnce
		asking.Go(func() { p.resolve(ctx, sale, one) })
	}
	asking.Wait()
	return len(due), next, nil
}

// resolve asks about one hold and reports the shop's answer to Redis.
func (p *prober) resolve(ctx context.Context, sale string, due reservation.ProbeDue) {
	verdict, cause, err := p.AskAbout(ctx, p.runtime.Store, sale, due)
	if ctx.Err() != nil {
		return // it is asked again
	}
	log := p.log.With(zap.String("sale", sale), zap.String("reservation", due.ID))
	if errors.Is(err, shard.ErrUnavailable) {
		meter.EdgeEvents{}.RedisFailed("probe")
		log.Warn("redis did not say which reservations have the ref of a hold in doubt: the shop is asked about it later", zap.Error(err))
		return
	}
	if word := string(verdict); errors.Is(err, errNotAsked) {
		meter.CountProbe(sale, "not_asked")
	} else {
		meter.CountProbe(sale, word)
	}
	p.hear(verdict, cause, err)
	if verdict == reservation.ProbeUnknown {
		return
	}
	callCtx, cancel := context.WithTimeout(ctx, 4*p.runtime.Store.Shard().Timeout())
	defer cancel()
	state, err := p.runtime.Store.Probed(callCtx, sale, due.ID, verdict, cause)
	log = log.With(zap.String("cause", cause))
	refund, needed := errors.AsType[*reservation.RefundNeededError](err)
	switch {
	case needed:
		log.Error("the shop has an order whose units are sold to others: refund it", zap.String("state", string(refund.State)))
	case errors.Is(err, shard.ErrUnavailable):
		if ctx.Err() == nil {
			meter.EdgeEvents{}.RedisFailed("probe")
			log.Warn("redis could not be told what the shop says of a hold in doubt: it is asked again", zap.Error(err))
		}
	case err != nil:
		log.Warn("a hold in doubt was resolved otherwise meanwhile", zap.String("verdict", string(verdict)), zap.Error(err))
	case state == record.Confirmed:
		log.Info("no longer in doubt: the shop has the order")
	case state == record.Released:
		log.Info("no longer in doubt: the shop does not have the order, its units are back on sale")
	}
}

// hear logs when the shop stops giving useful answers, and when it gives one again.
func (p *prober) hear(v reservation.ProbeAnswer, cause string, err error) {
	switch {
	case errors.Is(err, errNotAsked):
	case v != reservation.ProbeUnknown:
		if p.deaf.Swap(false) {
			p.log.Info("the probe gets answers again", zap.String("shop", p.url.Host))
		}
	case !p.deaf.Swap(true):
		p.log.Warn("the probe gets no answer that says whether the shop has an order: holds stay in doubt, it asks again",
			zap.String("shop", p.url.Host), zap.String("answer", cause), zap.Error(err))
	}
}

// Probers are those of one configuration.
type Probers struct {
	mu  sync.Mutex
	all []*prober
}

// Start starts a prober.
func (ps *Probers) Start(p *Probe, d *edgeruntime.Runtime) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.all = append(ps.all, startProber(p, d))
}

// Close stops all probers. It does not wait for them: the edge runtime does.
func (ps *Probers) Close() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.all {
		p.stop()
	}
	ps.all = nil
}
