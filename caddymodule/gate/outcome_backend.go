package gate

import (
	"errors"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/outcome"
	"github.com/stockgate/stockgate/record"
)

const (
	backendHoldFor        = 15 * time.Minute
	backendForwardTimeout = 20 * time.Second
)

// mode returns what happens to the gate's holds at their deadline.
func (g *Gate) mode() record.Mode {
	if g.Outcome == "backend" {
		return record.ModeBackend
	}
	return record.ModeResponse
}

// provisionOutcome compiles what decides a reservation.
func (g *Gate) provisionOutcome() (err error) {
	if g.Outcome != "" && g.Outcome != "response" && g.Outcome != "backend" {
		return fmt.Errorf("outcome %q: there are response and backend", g.Outcome)
	}
	if err := g.outcomeConflict(); err != nil {
		return err
	}
	g.rules, err = outcome.Compile(g.Rules, g.Answers, g.mode() == record.ModeBackend)
	return err
}

// outcomeConflict reports options that a gate cannot use with outcome backend.
func (g *Gate) outcomeConflict() error {
	if g.mode() != record.ModeBackend {
		return nil
	}
	if g.InDoubt != nil {
		return errors.New("outcome backend takes no in_doubt: its holds expire at their deadline, none comes in doubt")
	}
	for _, r := range g.Rules {
		if r.Outcome == "confirm" {
			return errors.New("outcome backend takes no confirm: the shop confirms through stockgate_api")
		}
	}
	return nil
}
