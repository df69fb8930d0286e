package ledger

import "context"

// DriftPause is the time between two checks of a sale with this many cells.
var DriftPause = driftPause

// Poll returns what drains one sale by a batch of this many movements at most in each call.
func Poll(d *Drainer, sale string, most int) func(context.Context) (int, error) {
	return (&following{Drainer: d, sale: sale, most: most, drift: drift{sale: sale, what: driftLedger}}).poll
}
