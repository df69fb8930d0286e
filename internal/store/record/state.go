package record

// State is the state of a reservation. At any time it has exactly one.
type State string

// The states. Held and InDoubt are holds, which are not settled yet.
const (
	Held      State = "held"
	InDoubt   State = "in_doubt"
	Confirmed State = "confirmed"
	Released  State = "released"
	Expired   State = "expired"
	// Unbacked means that the shop took the order after the units had been sold to others. The
	// stock does not count it; an operator must settle it.
	Unbacked State = "unbacked"
	// Tombstone marks an id that was released before it was reserved: no reservation can have it until
	// the mark expires. It has no units.
	Tombstone State = "tombstone"
	// Waiting is told of a hold whose order waits in the queue. Its record says Held, in
	// ModeQueued.
	Waiting State = "waiting"
)

// Mode says what the deadline does to a hold.
type Mode string

const (
	// ModeResponse means that the shop may have the order: the hold becomes in doubt.
	ModeResponse Mode = "response"
	// ModeBackend means that the shop has until the deadline to confirm: the hold expires.
	ModeBackend Mode = "backend"
	// ModeQueued means that the order waits in the queue, and the shop has not got it: the hold
	// is released.
	ModeQueued Mode = "queued"
	// ModeOffer means that the units are offered to a person on the waiting list, and that there is no
	// order yet: the hold is released.
	ModeOffer Mode = "offer"
)

// Named says that reservations in this state are found by their ref.
func (s State) Named() bool {
	return s == Held || s == InDoubt || s == Confirmed || s == Unbacked
}
