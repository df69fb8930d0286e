package gate

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/sale"
)

// FastRefusals lets a listener wrapper refuse in a gate's place. Access logs and Caddy's
// metrics do not see what it answers; the metrics of Stockgate count it.
//
// The gate's values must be ones that it reads itself: a placeholder that another
// directive sets, such as {http.auth.user.id}, is an error.
type FastRefusals struct {
	// Force: handlers before the gate may change what a client gets or the gate sees;
	// they do not run on a fast refusal. Without it, a request that meets one is refused
	// by the gate itself.
	Force bool `json:"force,omitempty"`
}

// provisionFast says what fast refusals of this gate lack.
func (g *Gate) provisionFast() error {
	if g.FastRefusals == nil {
		return nil
	}
	if err := g.fastConflict(); err != nil {
		return err
	}
	if g.server == nil || !g.app.HasListener(g.server) {
		return fmt.Errorf("fast_refusals: the server of this gate has no listener wrapper stockgate: write `servers { listener_wrappers { stockgate } }` in the global options")
	}
	g.fastCounters = make([]atomic.Pointer[refusals], len(sale.Kinds))
	return nil
}

// fastConflict says which value of the gate is not read by the gate itself.
func (g *Gate) fastConflict() error {
	for _, expr := range g.values() {
		// what cannot be compiled is another error
		if v, err := attempt.Compile(expr); err == nil && v.Kind() == attempt.Text {
			return fmt.Errorf("fast_refusals: the value %s is known to Caddy only when it handles the request: take it from the request itself, such as {header.X} or {jwt.sub}", expr)
		}
	}
	return nil
}

// values are all expressions that the gate reads from requests.
func (g *Gate) values() []string {
	exprs := slices.Concat(g.Sale, g.Buyer, g.Region, g.Ref, g.Idempotency)
	for _, r := range g.Rates {
		exprs = append(exprs, r.Key...)
	}
	for _, kind := range g.Identities {
		exprs = append(exprs, kind...)
	}
	for _, l := range g.Lines {
		exprs = append(append(exprs, l.SKU...), l.Quantity...)
	}
	slices.Sort(exprs)
	return exprs
}
