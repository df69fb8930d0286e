package fence

import (
	"context"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
)

// askLedgerEvery is the pause between two questions to a ledger that does not answer.
const askLedgerEvery = 500 * time.Millisecond

// Ledger returns the newest movement that a ledger has of a sale; 0, 0: none.
type Ledger func(ctx context.Context, sale string) (epoch, number int64, err error)

// UseLedger has fences ask a ledger how far it has followed a sale: Redis may have come back with less.
// No fence waits for the answer. leave ends that, unless another ledger is used by then.
func (k *Keeper) UseLedger(l Ledger) (leave func()) {
	k.ledger.Store(&l)
	return func() { k.ledger.CompareAndSwap(&l, nil) }
}

// ledgerAnswer is what the ledger has said in a fence.
type ledgerAnswer struct {
	asked int64 // see member
	at    shard.LedgerPosition
}

// ledgerPosition is what the edge says in a fence of its ledger.
func (m *member) ledgerPosition() shard.LedgerPosition {
	if m.keeper.ledger.Load() == nil {
		return shard.NoLedger
	}
	if a := m.ledger.Load(); a != nil && a.asked == m.asked.Load() {
		return a.at
	}
	return shard.LedgerSilent
}

// askLedger asks the ledger in the background, until it answers or the fence is over.
func (m *member) askLedger(ctx context.Context) {
	asked := m.asked.Add(1)
	if m.keeper.ledger.Load() == nil {
		return
	}
	m.keeper.running.Go(func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for ; m.state.Load() != nil && m.asked.Load() == asked; timer.Reset(askLedgerEvery) {
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
			ask := m.keeper.ledger.Load()
			if ask == nil {
				continue
			}
			bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
			epoch, number, err := (*ask)(bounded, m.sale)
			cancel()
			if err == nil {
				m.ledger.Store(&ledgerAnswer{asked, shard.LedgerPosition(fmt.Sprintf("%d:%d", epoch, number))})
				m.hurry()
				return
			}
		}
	})
}
