package selling

import (
	"slices"
	"time"

	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/record"
)

// Verdicts are what decides the outcome of an order, and for how long its stock is held at the shop.
type Verdicts struct {
	Mode    record.Mode
	Rules   *outcome.Rules
	HoldFor time.Duration
	Margin  time.Duration
	AtMost  time.Duration // for which the shop may take; 0: no bound but the gate's
}

// VerdictsOf are those of an order: its mode was recorded with it.
func (t *Terms) VerdictsOf(o *queue.Order) Verdicts {
	v := Verdicts{Mode: t.Mode(), Rules: t.Outcomes, HoldFor: t.Hold.HoldFor, Margin: t.Hold.Margin}
	if o.Mode == "" || o.Mode == v.Mode {
		return v
	}
	v.Mode, v.Rules, v.HoldFor = o.Mode, t.otherRules, o.HoldFor
	v.Margin = min(v.Margin, max(v.HoldFor/5, time.Second))
	if v.Mode == record.ModeBackend {
		v.AtMost = backendForwardTimeout
	}
	return v
}

// compileOther compiles the rules for orders of the mode that the gate does not have. Of the gate's rules
// those count that it could have in that mode.
func (t *Terms) compileOther() (*outcome.Rules, error) {
	if t.Ask != nil { // its rules judge what the shop says when it is asked
		return outcome.Compile(nil, nil, true)
	}
	if t.Mode() != record.ModeBackend {
		releases := slices.DeleteFunc(slices.Clone(t.Rules), func(r outcome.Rule) bool { return r.Outcome == "confirm" })
		return outcome.Compile(releases, t.Answers, true)
	}
	if len(t.setup.GraphQL) == 0 {
		return outcome.Compile(t.Rules, t.Answers, false)
	}
	rules, err := outcome.Compile(t.Rules, t.Answers, true) // no status of such a server confirms
	if err == nil {
		rules.Otherwise = outcome.InDoubt
	}
	return rules, err
}
