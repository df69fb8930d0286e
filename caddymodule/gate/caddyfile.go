package gate

import (
	"encoding/json"
	"fmt"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/accesslist"
	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/caddymodule/ratelimit"
)

// ReadDirective reads a gate, and warns about settings that are allowed but rarely
// intended.
func ReadDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // the directive's name
	at := *h.Dispenser
	warn := directive.NewWarner(&h, "stockgate")
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, h.WrapErr(err)
	}
	gate := new(Gate)
	if err := gate.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	if err := gate.OneAtATime.Resolve(h); err != nil {
		return nil, err
	}
	if err := checkLists(h, gate); err != nil {
		return nil, err
	}
	if err := checkFast(h, &at, gate, matchers); err != nil {
		return nil, err
	}
	if err := directive.CheckTwice(h, &at, gate.Name, matchers); err != nil {
		return nil, err
	}
	if err := checkEarly(h, gate); err != nil {
		return nil, at.WrapErr(err)
	}
	if err := checkPlaces(h, gate); err != nil {
		return nil, err
	}
	warnCheck(warn, gate)
	warnMethod(warn, gate, matchers)
	warnAvoidable(warn, matchers)
	warnExact(warn, gate, matchers)
	warnShaped(warn, gate)
	warnBuyer(warn, gate.Buyer)
	warnValues(warn, gate)
	warnLines(warn, gate)
	warnIdentities(warn, gate)
	warnShared(warn, gate)
	gate.JWT.Warn(warn)
	warnGuard(warn)
	return h.NewRoute(matchers, gate), nil
}

// checkLists checks that the global option defines a gate's lists. Without a global option
// the app may be configured elsewhere; it then reports the error when it loads.
func checkLists(h httpcaddyfile.Helper, g *Gate) error {
	global, ok := h.Option("stockgate").(httpcaddyfile.App)
	if !ok {
		return nil
	}
	var configured app.App
	if err := json.Unmarshal(global.Value, &configured); err != nil {
		return err
	}
	for _, uses := range []struct {
		option string
		names  []string
	}{{"deny", g.Deny}, {"allow", g.Allow}} {
		for _, name := range uses.names {
			if _, ok := configured.Lists[name]; !ok {
				return h.WrapErr(accesslist.Unknown(uses.option, name))
			}
		}
	}
	return nil
}

// Interface guard
var _ caddyfile.Unmarshaler = (*Gate)(nil)

// checkEarly finds, while the file is adapted, what Provision would refuse whatever the
// environment is, so that the error names file and line. Provision checks it again, for
// configurations in JSON.
func checkEarly(h httpcaddyfile.Helper, g *Gate) error {
	text, err := json.Marshal(g)
	if err != nil {
		return err
	}
	trial := new(Gate) // what is found here is found again from the JSON
	if err := json.Unmarshal(text, trial); err != nil {
		return err
	}
	// What is missing may be given in JSON: Provision requires it.
	if len(trial.Lines) == 0 && trial.LinesFrom == nil && !trial.onlyTurns() {
		trial.Lines = []Line{{SKU: []string{"{json.sku}"}}}
	}
	if len(trial.Buyer) == 0 {
		trial.Buyer = []string{"{http.auth.user.id}"}
	}
	trial.app = new(app.App)
	if global, ok := h.Option("stockgate").(httpcaddyfile.App); ok {
		if err := json.Unmarshal(global.Value, trial.app); err != nil {
			return err
		}
	}
	return trial.checkStatic()
}

// checkStatic is the part of Provision that depends on the gate's options alone.
func (g *Gate) checkStatic() error {
	keys, err := ratelimit.Keys(g.Rates)
	if err != nil {
		return err
	}
	if g.reader, err = g.newReader(keys); err != nil {
		return err
	}
	if err := g.Options.Check(g.expressions()); err != nil {
		return err
	}
	if err := g.provisionLookup(); err != nil {
		return err
	}
	if err := g.provisionOutcome(); err != nil {
		return err
	}
	if _, err := g.newRefuser(); err != nil {
		return err
	}
	if err := g.shadowConflict(); err != nil {
		return err
	}
	if g.MaxInFlight < 0 {
		return fmt.Errorf("max_in_flight must be positive")
	}
	if !g.Check {
		if err := g.provisionTimes(); err != nil {
			return err
		}
	}
	_, err = guard.ExitPaths(g.ExitsAs)
	return err
}
