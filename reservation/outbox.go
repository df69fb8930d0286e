package reservation

import (
	"context"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/lua"
)

// OutboxPlace says how far the outbox is with a sale.
type OutboxPlace struct {
	// Epoch is the life of the shard.
	Epoch int64
	// Sent is the last movement that the receiver has; 0: none.
	Sent int64
	// Sending is the last movement of the batch that is on its way, which begins after
	// Sent; not above Sent: none is.
	Sending int64
}

// ClaimOutbox takes or renews the right to send a sale's movements for so long, by
// the shard's clock. It notes that the batch up to last, of that epoch, is on its way;
// 0: none. Where another one already is, the place says so, and that one is to be
// sent. False: somebody else has the right. What is before the claim is on the replicas
// then: what the receiver is told outlives a failover.
func (s *Store) ClaimOutbox(ctx context.Context, sale, owner string, forHow time.Duration, epoch, last int64) (OutboxPlace, bool, error) {
	replies, err := s.runReplicated(ctx, s.scripts.Settle, sale, operation{"outbox", []any{owner, forHow.Milliseconds(), epoch, last}})
	if err != nil {
		return OutboxPlace{}, false, err
	}
	r := replies[0]
	at := OutboxPlace{Epoch: r.number(1), Sent: r.number(2), Sending: r.number(3)}
	switch r.code() {
	case lua.OK:
		return at, true, nil
	case lua.Conflict:
		return at, false, nil
	case lua.NoSale:
		return at, false, ErrNoSale
	}
	return at, false, fmt.Errorf("%w: outbox gave %q", ErrUnavailable, r.code())
}

// GiveUpOutbox ends a claim, so that nobody has to wait for its end.
func (s *Store) GiveUpOutbox(ctx context.Context, sale, owner string) error {
	_, _, err := s.ClaimOutbox(ctx, sale, owner, 0, 0, 0)
	return err
}

// Sent notes that the outbox's receiver has a sale's journal up to an entry: what is
// before it may be trimmed. It never goes back.
func (s *Store) Sent(ctx context.Context, sale string, epoch, seq int64) error {
	replies, err := s.run(ctx, s.scripts.Settle, sale, operation{"sent", []any{epoch, seq}})
	if err != nil {
		return err
	}
	switch code := replies[0].code(); code {
	case lua.OK:
		return nil
	case lua.Conflict:
		return &GapError{Sale: sale, Want: replies[0].number(1) + 1}
	case lua.NoSale:
		return ErrNoSale
	default:
		return fmt.Errorf("%w: sent gave %q", ErrUnavailable, code)
	}
}
