package reservation

import (
	"context"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/lua"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/shard"
)

// encodedRequest is a reserve request in the form that lua/reserve.lua takes.
type encodedRequest struct {
	profile          string // what it has in common with many other requests
	id, guard, buyer string
	ref              string // with the prefix that says how it is bound; empty: none
	rest             string // the record's fields after the buyer
	order            []byte // what is to be sent, if it has to wait; nil: there is no queue
	charges          []Charge
	owed             []string // counters of unpaid holds
	units            int64    // of all lines
	notAfter         int64    // ms by Redis's own time; set when it is sent
}

func (c *ReserveRequest) encode() *encodedRequest {
	out := &encodedRequest{
		id: c.ID, guard: record.Plain(c.Binding.Field), buyer: record.Plain(c.Buyer), charges: c.Charges, owed: c.Unpaid.Fields,
	}
	switch {
	case c.Ref == "":
	case c.RefShared:
		out.ref = "s|" + c.Ref
	default:
		out.ref = "b|" + c.Ref
	}
	b := make([]byte, 0, 512)
	for _, n := range [...]int64{c.Version, c.HoldFor.Milliseconds(), c.Margin.Milliseconds()} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	b = append(c.Queue.appendMode(b, c.Mode), ' ')
	if c.Queue != nil {
		out.order = c.Queue.Order
	}
	b = append(c.Unpaid.appendProfile(b), ' ')
	b = strconv.AppendInt(b, int64(len(c.Lines)), 10)
	for i := range c.Lines {
		b = appendLine(append(b, ' '), &c.Lines[i])
		out.units += c.Lines[i].Quantity
	}
	for i := range c.Charges {
		ch := &c.Charges[i]
		limit := ch.Limit.Max
		if ch.Limit.Shadow {
			limit = -limit
		}
		for _, n := range [...]int64{ch.Amount, limit, ch.From, ch.To} {
			b = strconv.AppendInt(append(b, ' '), n, 10)
		}
	}
	out.profile = string(b)
	out.rest = string(c.appendRest(b[:0], out.guard))
	return out
}

// appendRest appends the fields of a new record after the buyer: lines, charges,
// cause, version, guard, print, key_ttl, ref, gate, returned, probes and unpaid.
func (c *ReserveRequest) appendRest(b []byte, guard string) []byte {
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
	for _, field := range [...]string{guard, record.Plain(c.Binding.Print)} {
		b = append(append(b, '\t'), field...)
	}
	b = strconv.AppendInt(append(b, '\t'), c.Binding.TTL.Milliseconds(), 10)
	for _, field := range [...]string{c.Ref, record.Plain(c.Gate)} {
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

// swap returns the operation that reserves in the place of a hold, until notAfter.
func (c *encodedRequest) swap(hold, ref string, notAfter int64) shard.Operation {
	args := []any{hold, c.id, notAfter, c.profile, c.guard, ref, c.buyer, c.rest, len(c.charges)}
	for i := range c.charges {
		args = append(args, c.charges[i].Field)
	}
	for _, field := range c.owed {
		args = append(args, field)
	}
	return shard.Op(lua.Swap, args...)
}

// told is the claim as it is told again, which only stock and bindings may refuse: it charges its limits
// and counters of unpaid holds without bounds, in whatever window it is now. An order that has gone to
// the shop does not wait now, and one that waits does not go, whatever the line is like. In mode
// backend the attempt may have been answered, and its buyer may have repeated the purchase: buyer and
// lines bind nothing, see docs/fence.md.
func (c *encodedRequest) told(waits bool) *encodedRequest {
	again := *c
	terms := strings.Fields(c.profile)
	terms[0] = "told"
	mode, _, _ := strings.Cut(strings.TrimPrefix(terms[3], "queued:"), ":")
	if record.Mode(mode) == record.ModeBackend && record.IsSingleField(c.guard) && !waits {
		again.guard = ""
	}
	if rest, queued := strings.CutPrefix(terms[3], "queued:"); queued {
		word := "goes:"
		if waits {
			word = "waits:"
		}
		terms[3] = word + rest
	}
	const unbounded = "9000000000000000"
	if owed := strings.Split(terms[4], ":"); len(owed) > 1 {
		terms[4] = strings.Join([]string{owed[0], unbounded, unbounded, owed[3]}, ":")
	}
	lines, _ := strconv.Atoi(terms[5])
	for i := 6 + 2*lines; i < len(terms); i += 4 {
		terms[i+1], terms[i+2], terms[i+3] = "-"+unbounded, "0", unbounded
	}
	again.profile = strings.Join(terms, " ")
	return &again
}

// orderRef is the shop's own name of the order.
func (c *encodedRequest) orderRef() string { return strings.Split(c.rest, "\t")[8] }

// evidence returns what a token would say of the request, as lua/confirm.lua takes it. now is
// in ms.
func (c *encodedRequest) evidence(now int64) []any {
	terms, rest := strings.Fields(c.profile), strings.Split(c.rest, "\t")
	mode := terms[3]
	if queued, ok := strings.CutPrefix(mode, "queued:"); ok {
		mode, _, _ = strings.Cut(queued, ":")
	}
	holdFor, _ := strconv.ParseInt(terms[1], 10, 64)
	args := []any{0, c.buyer, now, now + holdFor, c.orderRef(), mode}
	for _, list := range []string{rest[1], rest[2]} { // lines and charges
		words := strings.Fields(list)
		args = append(args, len(words)/2)
		for _, w := range words {
			args = append(args, w)
		}
	}
	return args
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
		if c.order != nil {
			orders = 2
		}
		fields += len(c.charges)
		owed += len(c.owed)
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
		args = append(args, &c.id)
	}
	for _, c := range claims {
		args = append(args, &c.guard)
	}
	if refs > 0 {
		for _, c := range claims {
			args = append(args, &c.ref)
		}
	}
	for _, c := range claims {
		args = append(args, &c.buyer)
	}
	for _, c := range claims {
		args = append(args, &c.rest)
	}
	if orders > 0 {
		for _, c := range claims {
			args = append(args, c.order)
		}
	}
	for _, c := range claims {
		for i := range c.charges {
			args = append(args, &c.charges[i].Field)
		}
	}
	for _, c := range claims {
		for i := range c.owed {
			args = append(args, &c.owed[i])
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
			err = s.shard.StillLeased(ctx, sale)
		}
		return replies, seq, err
	})
}
