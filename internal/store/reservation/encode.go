package reservation

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// encodedRequest is a reserve request, and the form of it that lua/reserve.lua takes.
type encodedRequest struct {
	of       ReserveRequest // its caller may change its own meanwhile; no control characters are in it
	profile  string         // what it has in common with many other requests
	ref      string         // with the prefix that says how it is bound; empty: none
	rest     string         // the record's fields after the buyer
	units    int64          // of all lines
	notAfter int64          // ms by Redis's own time; set when it is sent
}

func (c *ReserveRequest) encode() *encodedRequest {
	out := &encodedRequest{of: *c}
	r := &out.of
	r.Buyer, r.Gate = record.Plain(r.Buyer), record.Plain(r.Gate)
	r.Binding.Field, r.Binding.Print = record.Plain(r.Binding.Field), record.Plain(r.Binding.Print)
	switch {
	case r.Ref == "":
	case r.RefShared:
		out.ref = "s|" + r.Ref
	default:
		out.ref = "b|" + r.Ref
	}
	for i := range r.Lines {
		out.units += r.Lines[i].Quantity
	}
	b := r.appendProfile(make([]byte, 0, 512), "")
	out.profile = string(b)
	out.rest = string(r.appendRest(b[:0]))
	return out
}

// appendProfile appends what the request has in common with many others. again is how its order counts
// when it is told again, see told; empty: it is made for the first time.
func (c *ReserveRequest) appendProfile(b []byte, again string) []byte {
	if again == "" {
		b = strconv.AppendInt(b, c.Version, 10)
	} else {
		b = append(b, "told"...)
	}
	for _, n := range [...]int64{c.HoldFor.Milliseconds(), c.Margin.Milliseconds()} {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	b = c.Queue.appendMode(append(b, ' '), cmp.Or(again, "queued"), c.Mode)
	b = c.Unpaid.appendProfile(append(b, ' '))
	b = strconv.AppendInt(append(b, ' '), int64(len(c.Lines)), 10)
	for i := range c.Lines {
		b = appendLine(append(b, ' '), &c.Lines[i])
	}
	for i := range c.Charges {
		charge := &c.Charges[i]
		limit := charge.Limit.Max
		if charge.Limit.Shadow {
			limit = -limit
		}
		for _, n := range [...]int64{charge.Amount, limit, charge.From, charge.To} {
			b = strconv.AppendInt(append(b, ' '), n, 10)
		}
	}
	return b
}

// appendRest appends the fields of a new record after the buyer: lines, charges,
// cause, version, guard, print, key_ttl, ref, gate, returned, probes and unpaid.
func (c *ReserveRequest) appendRest(b []byte) []byte {
	b = append(b, '\t')
	for i := range c.Lines {
		if i > 0 {
			b = append(b, ' ')
		}
		b = appendLine(b, &c.Lines[i])
	}
	b = append(b, '\t')
	for i := range c.Charges {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(append(b, c.Charges[i].Field...), ' ')
		b = strconv.AppendInt(b, c.Charges[i].Amount, 10)
	}
	b = strconv.AppendInt(append(b, "\t\t"...), c.Version, 10)
	for _, field := range [...]string{c.Binding.Field, c.Binding.Print} {
		b = append(append(b, '\t'), field...)
	}
	b = strconv.AppendInt(append(b, '\t'), c.Binding.TTL.Milliseconds(), 10)
	for _, field := range [...]string{c.Ref, c.Gate} {
		b = append(append(b, '\t'), field...)
	}
	b = append(b, "\t\t\t"...)
	for i, field := range c.Unpaid.Fields {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, field...)
	}
	return append(b, '\t')
}

// appendLine appends "cell quantity".
func appendLine(b []byte, l *sale.Line) []byte {
	b = append(b, l.SKU...)
	if l.Region != "" {
		b = append(append(b, '@'), l.Region...)
	}
	return strconv.AppendInt(append(b, ' '), l.Quantity, 10)
}

// lineArgs appends how many lines there are, and the cell and the units of each.
func lineArgs(args []any, lines []sale.Line) []any {
	args = append(args, len(lines))
	for i := range lines {
		args = append(args, lines[i].Cell(), lines[i].Quantity)
	}
	return args
}

// chargeArgs appends how many charges there are, and the field and the amount of each.
func chargeArgs(args []any, charges []Charge) []any {
	args = append(args, len(charges))
	for i := range charges {
		args = append(args, charges[i].Field, charges[i].Amount)
	}
	return args
}

// order is what is to be sent, if the order has to wait; nil: there is no queue.
func (c *encodedRequest) order() []byte {
	if c.of.Queue == nil {
		return nil
	}
	return c.of.Queue.Order
}

// told is the request as it is told again, which only stock and bindings may refuse: it charges its limits
// and counters of unpaid holds without bounds, in whatever window it is now. An order that has gone to
// the shop does not wait now, and one that waits does not go, whatever the line is like. In mode
// backend the attempt may have been answered, and its buyer may have repeated the purchase: buyer and
// lines bind nothing, see docs/failover.md.
func (c *encodedRequest) told(waits bool) *encodedRequest {
	const unbounded = 9_000_000_000_000_000
	again := *c
	r := &again.of
	if r.Mode == record.ModeBackend && record.IsSingleField(r.Binding.Field) && !waits {
		r.Binding.Field = ""
	}
	r.Unpaid.AtOnce, r.Unpaid.Ended = unbounded, unbounded
	r.Charges = slices.Clone(r.Charges)
	for i := range r.Charges {
		charge := &r.Charges[i]
		charge.Limit, charge.From, charge.To = &sale.Limit{Max: unbounded, Shadow: true}, 0, unbounded
	}
	counts := "goes"
	if waits {
		counts = "waits"
	}
	again.profile = string(r.appendProfile(nil, counts))
	return &again
}

// evidence returns what a token would say of the request. now is in ms.
func (c *encodedRequest) evidence(now int64) *Evidence {
	r, created := &c.of, time.UnixMilli(now)
	return &Evidence{Buyer: r.Buyer, Created: created, Exp: created.Add(r.HoldFor), Ref: r.Ref, Lines: r.Lines, Charges: r.Charges}
}

// reserveArgs returns the arguments of a call with some reserve requests.
// The shard's history is as the caller knows it.
func reserveArgs(term string, known int64, claims []*encodedRequest) []any {
	var profiles []*string
	places := make([]int, len(claims))
	refs, orders, fields, owed, earliest := 0, 0, 0, 0, claims[0].notAfter
	notAfter := make([]byte, 0, 14*len(claims))
	for i, c := range claims {
		place := 0
		for place < len(profiles) && *profiles[place] != c.profile {
			place++
		}
		if place == len(profiles) {
			profiles = append(profiles, &c.profile)
		}
		places[i] = place + 1
		if c.ref != "" {
			refs = 1
		}
		if c.order() != nil {
			orders = 2
		}
		fields += len(c.of.Charges)
		owed += len(c.of.Unpaid.Fields)
		earliest = min(earliest, c.notAfter)
		notAfter = append(strconv.AppendInt(notAfter, c.notAfter, 10), ' ')
	}
	args := make([]any, 0, 9+len(profiles)+7*len(claims)+fields+owed)
	args = append(args, lua.Schema, term, known, earliest, notAfter, len(claims), refs+orders, owed, len(profiles))
	for _, p := range profiles {
		args = append(args, p)
	}
	if len(profiles) > 1 {
		for _, place := range places {
			args = append(args, place)
		}
	}
	for _, c := range claims {
		args = append(args, &c.of.ID)
	}
	for _, c := range claims {
		args = append(args, &c.of.Binding.Field)
	}
	if refs > 0 {
		for _, c := range claims {
			args = append(args, &c.ref)
		}
	}
	for _, c := range claims {
		args = append(args, &c.of.Buyer)
	}
	for _, c := range claims {
		args = append(args, &c.rest)
	}
	if orders > 0 {
		for _, c := range claims {
			args = append(args, c.order())
		}
	}
	for _, c := range claims {
		for i := range c.of.Charges {
			args = append(args, &c.of.Charges[i].Field)
		}
	}
	for _, c := range claims {
		for i := range c.of.Unpaid.Fields {
			args = append(args, &c.of.Unpaid.Fields[i])
		}
	}
	return args
}

// reserveAt sends reserve requests for one sale in one call. It returns the shard's seq
// after the call.
func (s *Store) reserveAt(ctx context.Context, sale string, claims []*encodedRequest) ([]shard.Reply, int64, error) {
	if err := s.shard.Acquire(ctx, sale); err != nil {
		return nil, 0, err
	}
	return s.shard.AgainUnfenced(ctx, sale, func() ([]shard.Reply, int64, error) {
		before := s.shard.Clock(sale).Mark()
		term, known := s.shard.History(ctx, sale)
		acks := s.shard.Options.ReplicaAcks
		raw, failed := s.shard.Eval(ctx, lua.Reserve, s.shard.ShardKeys(sale), reserveArgs(term, known, claims), acks)
		replies, seq, err := s.shard.Replies(ctx, sale, before, raw, len(claims), acks, failed)
		if err == nil {
			err = s.shard.StillLeased(ctx, sale, before)
		}
		return replies, seq, err
	})
}
