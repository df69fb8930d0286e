package reservation

import (
	"context"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// instead says in whose place a claim is made: the operation that does so, until notAfter in ms by Redis's own time.
type instead interface {
	operation(c *encodedRequest, notAfter int64) shard.Operation
}

// ofHold is a hold whose cart was changed.
type ofHold struct {
	id string
	// listed: its buyer may be on the waiting list, and has these identities.
	listed     bool
	identities ofOffer
}

func (hold ofHold) operation(c *encodedRequest, notAfter int64) shard.Operation {
	args := append(c.insteadArgs(hold.id, notAfter, c.of.Ref), string(hold.identities))
	return shard.Op(lua.Swap, append(args, c.limitArgs()...)...)
}

// ofOffer has the identities of a person who may have an offer, beside the buyer's: " kind=hash …".
type ofOffer string

func (identities ofOffer) operation(c *encodedRequest, notAfter int64) shard.Operation {
	args := append(c.insteadArgs(string(identities), notAfter, c.ref), c.order())
	return shard.Op(lua.Accept, append(args, c.limitArgs()...)...)
}

// insteadArgs are the first arguments of lua/swap.lua and lua/accept.lua.
func (c *encodedRequest) insteadArgs(of any, notAfter int64, ref string) []any {
	r := &c.of
	return []any{of, r.ID, notAfter, c.profile, r.Binding.Field, ref, r.Buyer, c.rest}
}

// limitArgs are how many limits there are, the field of each, and the counters of unpaid holds.
func (c *encodedRequest) limitArgs() []any {
	args := []any{len(c.of.Charges)}
	for i := range c.of.Charges {
		args = append(args, c.of.Charges[i].Field)
	}
	for _, field := range c.of.Unpaid.Fields {
		args = append(args, field)
	}
	return args
}

// Swap is Reserve in the place of a hold of the same buyer and ref, whose cart was changed. The
// hold is released; what the request lacks of it stays held until its token has expired, and a
// confirm of it undoes the swap. The refusal is also pending if a request of the hold is still
// being answered, or if the hold cannot be swapped any more. listed: the buyer may be on the waiting list, with the
// identities of Accept: an offer of what the request has more of ends, and its units are the request's.
func (s *Store) Swap(ctx context.Context, c *ReserveRequest, hold, identities string, listed bool) (Hold, *sale.Refusal, error) {
	return s.reserveInstead(ctx, c, ofHold{hold, listed, ofOffer(identities)})
}

// Accept is Reserve by a person who may be on the waiting list, with the hashes of the person's identities beside
// the buyer's: " kind=hash …". If the person has an offer, that ends: its units and what it counts of limits
// are the order's, and the rest is free. An order for more than the offer, or without one, is refused as long as
// others wait. Where the gate has a queue, the order waits in it.
func (s *Store) Accept(ctx context.Context, c *ReserveRequest, identities string) (Hold, *sale.Refusal, error) {
	return s.reserveInstead(ctx, c, ofOffer(identities))
}

func (s *Store) reserveInstead(ctx context.Context, c *ReserveRequest, of instead) (Hold, *sale.Refusal, error) {
	if err := c.check(); err != nil {
		return Hold{}, nil, err
	}
	until, ok := ctx.Deadline()
	if !ok {
		until = time.Now().Add(s.shard.Options.Timeout)
	}
	now, known := s.shard.Clock(c.Sale).Now()
	if !known {
		return Hold{}, nil, fmt.Errorf("%w: its time is not known (%w)", shard.ErrUnavailable, shard.ErrNotSent)
	}
	claim := c.encode()
	if s.Risk != nil {
		if may := s.Risk.Admit(ctx, c.Sale, 1, func(int) int64 { return claim.units }); may != nil && !may[0] {
			return Hold{}, refuseAtRisk, nil
		}
	}
	replies, seq, err := s.shard.RunWith(ctx, s.shard.Options.ReplicaAcks, c.Sale, of.operation(claim, now+time.Until(until).Milliseconds()))
	if err != nil {
		return Hold{}, nil, err
	}
	s.told(c.Sale, claim, of, replies[0], seq)
	switch replies[0].Code() {
	case lua.Conflict, lua.AtShop, lua.NotFound:
		return Hold{}, sale.Refuse(sale.Pending), nil
	case lua.Restoring:
		return Hold{}, RefuseLost, nil
	}
	claim.learn(seq, replies[0])
	return s.reserved(c, replies[0])
}

// told notes what a shard has answered to a claim in the place of another one.
func (s *Store) told(saleID string, claim *encodedRequest, of instead, r shard.Reply, seq int64) {
	batch := []*Call{{Request: request{claim: claim, instead: of}}}
	s.sold(saleID, batch, []shard.Reply{r}, seq, nil)
	if promises := s.promises.Load(); promises != nil && isPromise(batch[0], r) {
		(*promises).Promised(saleID, seq, promiseOf(batch[0], r))
	}
}
