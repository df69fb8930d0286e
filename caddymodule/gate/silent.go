package gate

import (
	"strings"
	"sync/atomic"

	"go.uber.org/zap"
)

// silentAfter is the number of attempts without a value after which a gate says that its
// configuration probably reads the wrong place.
const silentAfter = 200

// silence notices a value that the first attempts of a gate all lack. It costs one atomic load
// once it is settled.
type silence struct {
	settled atomic.Bool
	seen    atomic.Int32
}

// note counts an attempt. It returns true once: when all of the first silentAfter attempts
// lacked the value.
func (s *silence) note(lacks bool) bool {
	if s.settled.Load() {
		return false
	}
	if !lacks {
		s.settled.Store(true)
		return false
	}
	if s.seen.Add(1) != silentAfter {
		return false
	}
	return !s.settled.Swap(true)
}

// notice says once that the buyer, or a quantity that the gate names, is never there.
func (g *Gate) notice(p *purchase) {
	if p.dryRun && !p.shadow {
		return
	}
	if len(g.Buyer) > 0 && g.noBuyer.note(p.attempt.Buyer == "") {
		g.log.Warn("the buyer was empty in all 200 attempts: does the shop send it there, and does an authentication run before the gate?",
			zap.String("buyer", strings.Join(g.Buyer, " ")))
	}
	if len(p.attempt.Lines) > 0 && g.noQuantity.note(p.attempt.AssumedOne) {
		g.log.Warn("a quantity that the gate names was absent in all 200 attempts, and one unit was reserved for each line: if the shop reads the quantity elsewhere, it sells more than is reserved",
			zap.String("quantity", g.quantities()))
	}
}

// quantities lists where the gate reads quantities.
func (g *Gate) quantities() string {
	var all []string
	for _, l := range g.Lines {
		all = append(all, l.Quantity...)
	}
	if g.LinesFrom != nil {
		all = append(all, g.LinesFrom.Array+" "+g.LinesFrom.Quantity)
	}
	return strings.Join(all, " ")
}
