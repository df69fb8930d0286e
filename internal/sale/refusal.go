package sale

import "net/http"

// Reason says why an attempt was refused. It is part of the public contract: header,
// problem document, metrics and logs use the same word.
type Reason string

// The reasons, in the order of their statuses.
const (
	Malformed      Reason = "malformed"
	Quantity       Reason = "quantity"
	BodyTooLarge   Reason = "body_too_large"
	NoBuyer        Reason = "no_buyer"
	Denied         Reason = "denied"
	NotEligible    Reason = "not_eligible"
	Challenge      Reason = "challenge"
	LimitReached   Reason = "limit_reached"
	TooManyUnpaid  Reason = "too_many_unpaid"
	UnknownItem    Reason = "unknown_item"
	UnknownSale    Reason = "unknown_sale"
	UnknownRegion  Reason = "unknown_region"
	ClosedDoor     Reason = "closed_door"
	NotStarted     Reason = "not_started"
	PausedSale     Reason = "paused"
	SoldOut        Reason = "sold_out"
	AllHeld        Reason = "all_held"
	NotYourTurn    Reason = "not_your_turn"
	UnitsFree      Reason = "available"
	TwoEntries     Reason = "two_entries"
	ListFull       Reason = "list_full"
	NoCart         Reason = "no_cart"
	CartChanged    Reason = "cart_changed"
	Duplicate      Reason = "duplicate"
	Pending        Reason = "pending"
	InDoubt        Reason = "in_doubt"
	AlreadyOrdered Reason = "already_ordered"
	Ended          Reason = "ended"
	ClosedSale     Reason = "closed"
	KeyReused      Reason = "key_reused"
	TooEarly       Reason = "too_early"
	RateLimited    Reason = "rate_limited"
	Busy           Reason = "busy"
	NotSent        Reason = "not_sent"
	Unavailable    Reason = "unavailable"
)

// Kind is what all refusals with one reason have in common.
type Kind struct {
	Reason Reason
	Status int
	// Title is a sentence for the buyer.
	Title string
	// Wait says that waiting may help: the answer carries Retry-After.
	Wait bool
}

// Kinds lists every reason once, in the order of the statuses.
var Kinds = []Kind{
	{Malformed, http.StatusBadRequest, "The request cannot be read without doubt.", false},
	{Quantity, http.StatusBadRequest, "This quantity is not for sale in one order.", false},
	{BodyTooLarge, http.StatusRequestEntityTooLarge, "The request body is too large.", false},
	{NoBuyer, http.StatusUnauthorized, "Please sign in to buy.", false},
	{Denied, http.StatusForbidden, "This purchase is not accepted.", false},
	{NotEligible, http.StatusForbidden, "This sale is for members only.", false},
	{Challenge, http.StatusForbidden, "Please solve the challenge and try again.", false},
	{LimitReached, http.StatusForbidden, "The purchase limit is reached.", false},
	{TooManyUnpaid, http.StatusForbidden, "Too many of your purchases are not paid.", true},
	{UnknownItem, http.StatusNotFound, "This item is not on sale.", false},
	{UnknownSale, http.StatusNotFound, "There is no such sale.", false},
	{UnknownRegion, http.StatusNotFound, "This item is not sold in this region.", false},
	{ClosedDoor, http.StatusNotFound, "This way to the shop is closed.", false},
	{NotStarted, http.StatusConflict, "The sale has not started yet.", true},
	{PausedSale, http.StatusConflict, "The sale is paused.", true},
	{SoldOut, http.StatusConflict, "Sold out.", false},
	{AllHeld, http.StatusConflict, "All units are being bought; some may come back.", true},
	{NotYourTurn, http.StatusConflict, "Others wait for these units; please join the waiting list.", false},
	{UnitsFree, http.StatusConflict, "Units are available; please order.", false},
	{TwoEntries, http.StatusConflict, "These details belong to two people on the waiting list.", false},
	{ListFull, http.StatusConflict, "The waiting list is full.", true},
	{NoCart, http.StatusConflict, "There is nothing in the cart.", false},
	{CartChanged, http.StatusConflict, "The cart was changed while the order waited; nothing was bought.", false},
	{Duplicate, http.StatusConflict, "The same purchase is already running.", true},
	{Pending, http.StatusConflict, "Another purchase of yours is still running.", true},
	{InDoubt, http.StatusConflict, "It is not known yet whether this purchase succeeded; please wait.", true},
	{AlreadyOrdered, http.StatusConflict, "This purchase was made already.", false},
	{Ended, http.StatusGone, "The sale has ended.", false},
	{ClosedSale, http.StatusGone, "The sale is closed.", false},
	{KeyReused, http.StatusUnprocessableEntity, "This idempotency key was used for another purchase.", false},
	{TooEarly, http.StatusTooEarly, "Please repeat the request after the TLS handshake.", false},
	{RateLimited, http.StatusTooManyRequests, "Too many attempts; please wait a moment.", true},
	{Busy, http.StatusServiceUnavailable, "Too many purchases at this moment.", true},
	{NotSent, http.StatusServiceUnavailable, "The shop could not take this purchase in time; nothing was bought.", true},
	{Unavailable, http.StatusServiceUnavailable, "Purchases are not possible at this moment.", true},
}

// KindOf returns the kind of a reason; false: there is no such reason.
func KindOf(r Reason) (Kind, bool) {
	for _, k := range Kinds {
		if k.Reason == r {
			return k, true
		}
	}
	return Kind{}, false
}

// Refusal says why an attempt is refused, and what the buyer can do.
type Refusal struct {
	Reason Reason
	// RetryAfter is in whole seconds; 0: waiting does not help, or the time is not known.
	RetryAfter int64
	// Limit is the limit that is reached, for limit_reached and pending.
	Limit *Limit
	// SKU is the item that was refused; empty: the whole attempt.
	SKU string
	// Detail says which input is wrong, for malformed and quantity, why there is no order
	// for a client that closed its side of the connection (unavailable), or what is
	// wrong with the token of a no_buyer. It never repeats what the client sent.
	Detail string
	// Reservation is the id of the buyer's own earlier reservation, for in_doubt and
	// already_ordered.
	Reservation string
	// Challenge is the task to solve before the next attempt, for challenge.
	Challenge string
}

// Refuse makes a refusal without details.
func Refuse(r Reason) *Refusal { return &Refusal{Reason: r} }
