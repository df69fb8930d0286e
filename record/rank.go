package record

import (
	"github.com/stockgate/stockgate/identity"
	"strings"
	"time"
)

// BindingRank is how good the claim of a reservation is to a binding field that it names. Of
// several reservations that with the highest has it. lua/bindings.lua does the same step by
// step: see bound_to and taken there.
type BindingRank int8

const (
	// RankNone: the field does not belong to the reservation.
	RankNone BindingRank = iota
	// RankAttempt: a purchase without a key that the shop decides later. It has the field until
	// its attempt is answered; nothing tells when that was.
	RankAttempt
	// RankOverdue: a key whose time is over. It is as good as free.
	RankOverdue
	// RankUnbacked: sold without stock. It gets what no other has.
	RankUnbacked
	// RankHold: held or in doubt. It had the field before others became unbacked, else it would not
	// have been held.
	RankHold
	// RankSold: confirmed. It takes the field from all others and keeps it.
	RankSold
)

// Sure says that the field must belong to the reservation if no other has a higher rank. With
// a lower one it may belong to it, or to none.
func (r BindingRank) Sure() bool { return r >= RankHold }

// IsKeyField says whether a binding field is that of an idempotency key.
func IsKeyField(field string) bool { return strings.HasPrefix(field, identity.KeyField) }

// IsSingleField says whether a binding field is that of a purchase without a key: of its buyer
// and lines.
func IsSingleField(field string) bool { return strings.HasPrefix(field, identity.SingleField) }

// BindingRank is the rank of a reservation for a field that it names, as if no key's time were
// ever over. It depends on the state and the mode.
func (r *Record) BindingRank(field string) BindingRank {
	single := IsSingleField(field)
	switch r.State {
	case Held, InDoubt:
		if single && r.Mode == ModeBackend {
			return RankAttempt
		}
		return RankHold
	case Confirmed:
		if !single {
			return RankSold
		}
	case Unbacked:
		if !single {
			return RankUnbacked
		}
	}
	return RankNone
}

// BindingRankAt is BindingRank at a moment of the shard's clock, of a sale that ends at a time.
// It depends on Changed and KeyTTL too.
func (r *Record) BindingRankAt(field string, now, ends time.Time) BindingRank {
	rank := r.BindingRank(field)
	if (rank == RankSold || rank == RankUnbacked) && IsKeyField(field) && !now.Before(r.Changed.Add(r.KeyTTL)) && !now.Before(ends) {
		return RankOverdue
	}
	return rank
}
