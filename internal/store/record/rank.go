package record

import (
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/store/identity"
)

// BindingRank is the priority of a reservation for a binding field that it names. Of several
// reservations, the one with the highest rank has the field. lua/bindings.lua does the same
// step by step: see bound_to and taken there.
type BindingRank int8

const (
	// RankNone means that the field does not belong to the reservation.
	RankNone BindingRank = iota
	// RankAttempt is an attempt without a key that the shop decides later. It has the field
	// until the attempt is answered; no record says when that was.
	RankAttempt
	// RankOverdue is a key whose time is over. A new attempt can take the field; a reservation that
	// is sold late gets it only where it got it before that time.
	RankOverdue
	// RankUnbacked is sold without stock. It gets the field only when no other reservation has
	// it.
	RankUnbacked
	// RankHold is held or in doubt. It had the field before others became unbacked, or it would
	// not have been held.
	RankHold
	// RankSold is confirmed. It takes the field from all others and keeps it.
	RankSold
)

// Sure says that the field must belong to the reservation if no other has a higher rank. With a
// lower rank, the field may belong to it or to none.
func (r BindingRank) Sure() bool { return r >= RankHold }

// IsKeyField reports whether a binding field is that of an idempotency key.
func IsKeyField(field string) bool { return strings.HasPrefix(field, identity.KeyField) }

// IsSingleField reports whether a binding field is that of an attempt without a key: of its buyer
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

// BindingRankAt is BindingRank at a moment of the shard's clock, in a sale that ends at ends.
// It also depends on Changed and KeyTTL.
func (r *Record) BindingRankAt(field string, now, ends time.Time) BindingRank {
	rank := r.BindingRank(field)
	if (rank == RankSold || rank == RankUnbacked) && IsKeyField(field) && !now.Before(r.Changed.Add(r.KeyTTL)) && !now.Before(ends) {
		return RankOverdue
	}
	return rank
}
