package adminapi

import (
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

// Bounds of how many reservations one answer lists.
const (
	HoldsDefault = 100
	MaxHolds     = 1_000
)

// HoldList answers GET sales/{id}/holds and GET holds, the oldest of each sale first.
type HoldList struct {
	Holds []reservation.Record `json:"holds"`
	// More: there are more than were asked for.
	More bool `json:"more,omitempty"`
	// Next is where the next part begins, for `?after=`.
	Next string `json:"next,omitempty"`
}

// AmbiguousRef is a ref with the reservations that go by it.
type AmbiguousRef struct {
	Ref          string               `json:"ref"`
	Reservations []reservation.Record `json:"reservations"`
	// More: there are others, which are found by their ids alone.
	More bool `json:"more,omitempty"`
}

// BulkMost is how many reservations one request resolves at most; next says that
// there may be others.
const MaxBulk = 500

// BulkRequest asks for POST sales/{id}/holds/confirm and release: which holds, either
// by names or by what they have in common.
type BulkRequest struct {
	// Names are reservation ids or refs of the shop; only confirm takes them.
	Names []string `json:"names"`
	// State, Cause and Older are those of the list. All is needed where neither a cause
	// nor an age is given.
	State string `json:"state"`
	Cause string `json:"cause"`
	Older string `json:"older"`
	All   bool   `json:"all"`
	// Force releases before the deadline.
	Force bool `json:"force"`
	// DryRun only says what would happen.
	DryRun bool `json:"dry_run"`
	// After is what the last answer gave as next.
	After string `json:"after"`
}

// BulkAnswer is what became of them.
type BulkAnswer struct {
	DryRun  bool `json:"dry_run,omitempty"`
	Matched int  `json:"matched"`
	// Changed were confirmed or released by this request, FromInDoubt of them in doubt
	// before; Already were so before it.
	Changed     int `json:"changed"`
	FromInDoubt int `json:"from_in_doubt"`
	Already     int `json:"already"`
	// The others, by their ids or names. Late ones, in a dry run, have given their
	// units back: they are confirmed if those are still there.
	NotFound []string `json:"not_found,omitempty"`
	// Ambiguous are refs by which reservations of several buyers go: nothing was done to
	// them. Name the right reservation by its id.
	Ambiguous    []AmbiguousRef `json:"ambiguous,omitempty"`
	TooSoon      []string       `json:"too_soon,omitempty"`
	Conflict     []string       `json:"conflict,omitempty"`
	RefundNeeded []string       `json:"refund_needed,omitempty"`
	Late         []string       `json:"late,omitempty"`
	// InDoubt is how many are in doubt in the sale now.
	InDoubt int64 `json:"in_doubt"`
	// Next is where the next request goes on; empty: nothing is left.
	Next string `json:"next,omitempty"`
}

// ReturnRequest asks for POST reservations/{id}/return.
type ReturnRequest struct {
	ID      string      `json:"id"`
	Lines   []sale.Line `json:"lines,omitempty"`
	Restock bool        `json:"restock"`
}
