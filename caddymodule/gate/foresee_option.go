package gate

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/sale"
)

// FastRefusals lets a listener wrapper refuse for a gate. Access logs and Caddy's metrics
// do not include its answers; the metrics of Stockgate count them.
//
// The gate must read all its values itself: a placeholder that another directive sets, such
// as {http.auth.user.id}, is an error.
type FastRefusals struct {
	// Force: allow handlers before the gate that may change what the client gets or the gate
	// sees; they do not run on a fast refusal. Without it, the gate itself refuses a request
	// that meets such a handler.
	Force bool `json:"force,omitempty"`
}

// provisionFast checks what fast refusals of this gate require.
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

// fastConflict returns an error for a value that the gate does not read itself.
func (g *Gate) fastConflict() error {
	for _, expr := range g.values() {
		// a value that does not compile is reported elsewhere
		if v, err := attempt.Compile(expr); err == nil && v.Kind() == attempt.Text {
			return fmt.Errorf("fast_refusals: the value %s is known to Caddy only when it handles the request: take it from the request itself, such as {header.X} or {jwt.sub}", expr)
		}
	}
	return nil
}

// values returns all expressions that the gate reads from requests.
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
