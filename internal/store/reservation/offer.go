package reservation

import (
	"context"
	"fmt"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// toEntry is the number of an entry on the waiting list, to which units are offered.
type toEntry int64

func (entry toEntry) operation(c *encodedRequest, notAfter int64) shard.Operation {
	return shard.Op(lua.Offer, append([]any{int64(entry), notAfter, c.profile, c.rest, c.of.Buyer}, c.limitArgs()...)...)
}

// OfferAnswer is the answer to an offer: a hold, a refusal, or an error as of Reserve. Gone: the entry does not wait
// any more.
type OfferAnswer struct {
	Hold    Hold
	Refusal *sale.Refusal
	Gone    bool
	Err     error
}

// Offer holds units for people on the waiting list of a sale, in one call. Each request has one line, and the
// number of its entry. An error is the whole call's: it is unknown then what was offered, and the same again
// has no other effect.
func (s *Store) Offer(ctx context.Context, saleID string, entries []int64, requests []*ReserveRequest) ([]OfferAnswer, error) {
	now, known := s.shard.Clock(saleID).Now()
	if !known {
		return nil, fmt.Errorf("%w: its time is not known (%w)", shard.ErrUnavailable, shard.ErrNotSent)
	}
	notAfter := now + s.shard.Options.Timeout.Milliseconds()
	claims, ops := make([]*encodedRequest, len(requests)), make([]shard.Operation, len(requests))
	for i, c := range requests {
		c.ID, c.Mode = fmt.Sprint("w", entries[i]), record.ModeOffer // the script completes the id
		if err := c.check(); err != nil {
			return nil, err
		}
		claims[i] = c.encode()
		ops[i] = toEntry(entries[i]).operation(claims[i], notAfter)
	}
	replies, seq, err := s.shard.RunWith(ctx, s.shard.Options.ReplicaAcks, saleID, ops...)
	if err != nil {
		return nil, err
	}
	out := make([]OfferAnswer, len(replies))
	for i, r := range replies {
		s.told(saleID, claims[i], toEntry(entries[i]), r, seq)
		claims[i].learn(seq, r)
		if out[i].Gone = r.Code() == lua.Gone; !out[i].Gone {
			out[i].Hold, out[i].Refusal, out[i].Err = s.reserved(requests[i], r)
		}
	}
	return out, nil
}
