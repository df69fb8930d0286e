package gate

import (
	"encoding/json"
	"errors"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate/option/accesslist"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
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
	gate.bind()
	if err := checkLists(h, &gate.Judge); err != nil {
		return nil, err
	}
	if err := checkFast(h, &at, &gate.Judge, matchers); err != nil {
		return nil, err
	}
	if err := directive.CheckTwice(h, &at, gate.Name, matchers); err != nil {
		return nil, err
	}
	trial, err := checkEarly(h, gate)
	if err != nil {
		return nil, directive.WrapOption(at, err)
	}
	if err := checkPlaces(h, gate); err != nil {
		return nil, err
	}
	warnMatchers(warn, &gate.Judge, matchers)
	warnRisks(warn, trial, matchers)
	warnGuard(warn)
	return h.NewRoute(matchers, gate), nil
}

// checkLists checks that the global option defines a gate's lists. Without a global option
// the app may be configured elsewhere; it then reports the error when it loads.
func checkLists(h httpcaddyfile.Helper, j *Judge) error {
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
	}{{"deny", j.Deny}, {"allow", j.Allow}} {
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
//
// It returns the judge of the trial, which knows the global option.
func checkEarly(h httpcaddyfile.Helper, g *Gate) (*Judge, error) {
	trial := new(Gate)
	if err := reread(g, trial); err != nil {
		return nil, err
	}
	trial.bind()
	if err := trial.readGlobal(h); err != nil {
		return nil, err
	}
	return &trial.Judge, trial.checkStatic()
}

// reread reads a handler's options back from its JSON, as Provision gets them.
func reread(from, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// readGlobal gives the judge the app of the global option.
func (j *Judge) readGlobal(h httpcaddyfile.Helper) error {
	j.app = new(app.App)
	if global, ok := h.Option("stockgate").(httpcaddyfile.App); ok {
		return json.Unmarshal(global.Value, j.app)
	}
	return nil
}

// checkStatic is the part of Provision that depends on the gate's options alone.
func (g *Gate) checkStatic() error {
	if err := g.checkReading(); err != nil {
		return err
	}
	if err := g.provisionOutcome(); err != nil {
		return err
	}
	if _, err := g.newRefuser(); err != nil {
		return err
	}
	if err := g.checkSlots(); err != nil {
		return err
	}
	if err := g.provisionTimes(); err != nil {
		return err
	}
	if err := g.provisionQueue(); err != nil {
		return err
	}
	if err := g.InDoubt.Check(g.ofProbe()); err != nil {
		return err
	}
	if err := g.Repeats.Check(); err != nil {
		return err
	}
	_, err := guard.ExitPaths(g.ExitsAs)
	return err
}

// checkStatic is the part of Provision that depends on the check's options alone.
func (c *Check) checkStatic() error {
	if err := c.checkReading(); err != nil {
		return err
	}
	if _, err := c.newRefuser(); err != nil {
		return err
	}
	return c.checkSlots()
}

// checkReading is the part of open that depends on options alone.
func (j *Judge) checkReading() error {
	keys, err := ratelimit.Keys(j.Rates)
	if err != nil {
		return err
	}
	if j.reader, err = j.newReader(keys); err != nil {
		return err
	}
	if err := j.Options.Check(j.expressions()); err != nil {
		return err
	}
	if err := j.checkOtherItems(); err != nil {
		return err
	}
	if _, err := guard.QueryPaths(j.AlsoQuery); err != nil {
		return err
	}
	return j.provisionLookup()
}

// checkSlots reports a number of slots that cannot be.
func (j *Judge) checkSlots() error {
	if j.MaxInFlight < 0 {
		return errors.New("max_in_flight must be positive")
	}
	return nil
}
