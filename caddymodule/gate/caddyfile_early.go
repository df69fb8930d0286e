package gate

import (
	"encoding/json"
	"fmt"

	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/ratelimit"
	"github.com/stockgate/stockgate/refuse"
)

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
	if err := g.provisionLookup(); err != nil {
		return err
	}
	if err := g.provisionOutcome(); err != nil {
		return err
	}
	if _, err := refuse.New(g.Refusals); err != nil {
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
