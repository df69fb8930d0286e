package record

// State is what a reservation is in. At any time it is in exactly one.
type State string

// The states. Held and InDoubt are holds: not resolved yet.
const (
	Held      State = "held"
	InDoubt   State = "in_doubt"
	Confirmed State = "confirmed"
	Released  State = "released"
	Expired   State = "expired"
	// Unbacked: the shop took the order after the units had gone elsewhere. The
	// books do not count it; a person must.
	Unbacked State = "unbacked"
)

// Mode says what the deadline does to a hold.
type Mode string

// Response: the shop may have the order, so the hold becomes in doubt.
// Backend: the shop has until then to confirm, so the hold expires.
const (
	ModeResponse Mode = "response"
	ModeBackend  Mode = "backend"
)

// Named says that reservations in this state are found by their ref.
func (s State) Named() bool {
	return s == Held || s == InDoubt || s == Confirmed || s == Unbacked
}
