package fence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// pledgeEvery is how often an edge looks whether it can keep more than it has pledged, or less.
	pledgeEvery = 5 * time.Second
	// unpledgedFor is how long an edge that takes a pledge back sends no order that waits: until then the
	// server may come back without having heard that. With appendfsync everysec it has it after a second or two.
	unpledgedFor = 5 * time.Second
)

// ErrNotKept says that the edge has pledged to send an order only where the record of that is kept, and
// that this one may not be. It is a shard.ErrUnavailable.
var ErrNotKept = fmt.Errorf("%w: it does not keep what it acknowledges as it did when orders began to wait", shard.ErrUnavailable)

// pledge is what an edge has told a shard of how it sends orders that wait: only once the record of that
// outlives the server, on its disk or in all its replicas. What waits on a server that comes back was
// then not sent by this edge, also if it is lost with the server, see lua/fence.lua.
//
// The pledge is kept for each order, see Kept. The edge takes it back where it cannot keep it, and sends
// nothing until Redis has heard that and has had the time to keep it.
type pledge struct {
	mu     sync.Mutex
	said   shard.Durability // what Redis may have heard
	broken bool             // it is to be taken back
	rests  time.Time        // until when nothing is sent, by the clock's mono
	looked time.Time        // when the edge looked last; zero: it is to look
}

// toSay is what the next heartbeat says. look says how the server keeps what it acknowledges. Only one
// goroutine makes heartbeats.
func (p *pledge) toSay(now time.Time, look func() (shard.Standing, error)) shard.Durability {
	p.mu.Lock()
	said, broken, due := p.said, p.broken, p.looked.IsZero() || now.Sub(p.looked) >= pledgeEvery
	p.mu.Unlock()
	switch {
	case broken:
		return shard.Durability{}
	case !due:
		return said
	}
	at, err := look()
	if err != nil { // it still holds for each order
		return said
	}
	has := at.Durability
	if at.Rewriting {
		has.Disk = has.Disk && said.Disk
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looked = now
	if p.broken = p.broken || !has.Has(p.said); p.broken {
		return shard.Durability{}
	}
	p.said = has // before Redis hears it: from now on each order keeps it
	return has
}

// heard notes that Redis has heard what a heartbeat said.
func (p *pledge) heard(now time.Time, said shard.Durability) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken && said == (shard.Durability{}) {
		p.said, p.broken, p.looked, p.rests = said, false, time.Time{}, now.Add(unpledgedFor)
	}
}

// look has the next heartbeat look: the server is another one.
func (p *pledge) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looked = time.Time{}
}

// state is what holds for an order that is to be sent now: the pledge, and how long to wait first.
func (p *pledge) state(now time.Time) (said shard.Durability, rest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said, max(p.rests.Sub(now), 0)
}

// take has the next heartbeat take the pledge back. It reports whether that is news.
func (p *pledge) take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	news := !p.broken
	p.broken = true
	return news
}

// Kept returns nil once an order may go to the shop of which Redis has just recorded that it is sent:
// the edge has pledged nothing, or the record is kept as it has pledged. Where it has to take the pledge
// back, Kept waits until that is kept. After an error the order must not be sent.
func (k *Keeper) Kept(ctx context.Context, sale string) error {
	m := k.member(sale)
	bounded, cancel := context.WithTimeout(ctx, 2*unpledgedFor)
	defer cancel()
	for {
		answered, _ := m.wait()
		said, rest := m.pledge.state(m.clock.Mono())
		switch {
		case m.clock.Known().Term.Name == "": // without a fence nothing relies on it
			return nil
		case rest > 0:
		case said == (shard.Durability{}):
			return k.shard.StillLeased(ctx, sale, m.clock.Mark()) // it may have waited
		default:
			kept, err := m.keeps(bounded, said)
			if err == nil && kept {
				err = k.shard.StillLeased(ctx, sale, m.clock.Mark())
			}
			if err != nil || kept {
				return err
			}
			if m.pledge.take() {
				k.log.Warn("redis does not keep any more what it acknowledges, as with another appendfsync or with more replicas than replica_acks: orders that wait are sent again once it has noted that. "+
					"If it fails together with an edge, what that edge may have sent is in doubt", zap.String("sale", sale))
			}
			m.hurry()
		}
		if err := waitFor(bounded, answered, rest); err != nil {
			return errors.Join(ErrNotKept, err)
		}
	}
}

// keeps reports whether the server keeps what it acknowledges as pledged. It is the one that has
// acknowledged it: else that is an error, and the caller asks again.
func (m *member) keeps(ctx context.Context, said shard.Durability) (bool, error) {
	at, err := m.standing(ctx)
	if err == nil && !m.clock.Known().Term.BegunBy(at.Replid) {
		err = ErrNotKept
	}
	return at.Has(said), err
}

func (m *member) standing(ctx context.Context) (shard.Standing, error) {
	ctx, cancel := context.WithTimeout(ctx, m.keeper.shard.Timeout())
	defer cancel()
	return m.keeper.shard.Standing(ctx, m.sale)
}

// waitFor waits for a signal, for so long at most; 0: without a bound.
func waitFor(ctx context.Context, signal <-chan struct{}, most time.Duration) error {
	var over <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-signal:
	case <-over:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
