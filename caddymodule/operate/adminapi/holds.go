package adminapi

import (
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Bounds of how many reservations one answer lists.
const (
	HoldsDefault = 100
	MaxHolds     = 1_000
)

// HoldList answers GET sales/{id}/holds and GET holds, the oldest of each sale first.
type HoldList struct {
	Holds []reservation.Record `json:"holds"`
	// More says that there are more than the request asked for.
	More bool `json:"more,omitempty"`
	// Next is where the next part begins, for `?after=`.
	Next string `json:"next,omitempty"`
}

// AmbiguousRef is a ref with the reservations that have it.
type AmbiguousRef struct {
	Ref          string               `json:"ref"`
	Reservations []reservation.Record `json:"reservations"`
	// More says that there are others, which only their ids find.
	More bool `json:"more,omitempty"`
}

// MaxBulk bounds how many reservations one request resolves. Next in the answer says that
// there may be others.
const MaxBulk = 500

// BulkRequest asks for POST sales/{id}/holds/confirm and release: which holds, either
// by their names or by state, cause and age.
type BulkRequest struct {
	// Names are reservation ids or refs of the shop; only confirm takes them.
	Names []string `json:"names"`
	// State, Cause and Older select as in the list. All is required where neither a cause nor
	// an age is given.
	State string `json:"state"`
	Cause string `json:"cause"`
	Older string `json:"older"`
	All   bool   `json:"all"`
	// Force releases before the deadline.
	Force bool `json:"force"`
	// DryRun reports what would happen and changes nothing.
	DryRun bool `json:"dry_run"`
	// After is Next of the previous answer.
	After string `json:"after"`
}

// BulkAnswer says what became of the holds of a BulkRequest.
type BulkAnswer struct {
	DryRun  bool `json:"dry_run,omitempty"`
	Matched int  `json:"matched"`
	// Changed were confirmed or released by this request, FromInDoubt of them in doubt
	// before; Already were so before it.
	Changed     int `json:"changed"`
	FromInDoubt int `json:"from_in_doubt"`
	Already     int `json:"already"`
	// The fields below name the reservations that were not changed. Late, in a dry run, are
	// those that have given their units back: they are confirmed if the units are still there.
	NotFound []string `json:"not_found,omitempty"`
	// Ambiguous are refs that reservations of several buyers have. They are not changed: name
	// the right reservation by its id.
	Ambiguous    []AmbiguousRef `json:"ambiguous,omitempty"`
	TooSoon      []string       `json:"too_soon,omitempty"`
	Conflict     []string       `json:"conflict,omitempty"`
	RefundNeeded []string       `json:"refund_needed,omitempty"`
	Late         []string       `json:"late,omitempty"`
	// InDoubt is how many are in doubt in the sale now.
	InDoubt int64 `json:"in_doubt"`
	// Next is where the next request continues; empty: nothing is left.
	Next string `json:"next,omitempty"`
}

// ReturnRequest asks for POST reservations/{id}/return.
type ReturnRequest struct {
	ID      string      `json:"id"`
	Lines   []sale.Line `json:"lines,omitempty"`
	Restock bool        `json:"restock"`
}
