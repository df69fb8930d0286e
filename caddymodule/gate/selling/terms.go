// Package selling has the options that only a gate has, and what they are compiled to.
package selling

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/gate/option/probe"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/edge"
)

// Terms are what the options are compiled to: how long stock is held, and what decides the outcome of an order.
type Terms struct {
	*SellingOptions
	setup *option.Setup

	Outcomes *outcome.Rules
	// Asked is what the shop is asked about an order; nil: nothing.
	Asked *inquiry.Inquiry
	Hold  edge.HoldOptions
	// MostAtShop is how long the shop may take; 0: until the token expires.
	MostAtShop time.Duration
	// Probe asks about holds in doubt; nil: they are kept.
	Probe    *probe.Probe
	Repeated ratelimit.RepeatRate
	// Verifying is the lookup of orders that have waited; nil: there is none.
	Verifying *inquiry.Inquiry
	// Later tells the answer that puts an order off; nil: there is none.
	Later func(*outcome.ShopAnswer) (yes, known bool)
	// RefIsLookedUp: the gate has a queue, and the cart that is looked up has the ref.
	RefIsLookedUp bool
	otherRules    *outcome.Rules // of orders that were made with the other outcome mode
}

// Bind gives the terms the options of a gate.
func (t *Terms) Bind(own *SellingOptions, shared *option.Setup) {
	t.SellingOptions, t.setup = own, shared
}

// Open compiles the options. Close releases what it acquires, even if it fails halfway.
func (t *Terms) Open(knows option.KnowsNames, log *zap.Logger) (err error) {
	if err := t.openOptions(knows); err != nil {
		return err
	}
	if t.InDoubt != nil {
		if t.Probe, err = t.InDoubt.Compile(t.ofProbe(log)); err != nil {
			return err
		}
	}
	if len(t.Ref) > 0 {
		return t.Repeated.Open(t.setup.Name, t.Repeats)
	}
	return nil
}

// Check is the part of Open that depends on options alone.
func (t *Terms) Check(knows option.KnowsNames, log *zap.Logger) error {
	if err := t.openOptions(knows); err != nil {
		return err
	}
	if err := t.InDoubt.Check(t.ofProbe(log)); err != nil {
		return err
	}
	return t.Repeats.Check()
}

func (t *Terms) openOptions(knows option.KnowsNames) error {
	if err := t.openOutcome(knows); err != nil {
		return err
	}
	if err := t.openTimes(); err != nil {
		return err
	}
	return t.openQueue()
}

// Close releases what Open has acquired.
func (t *Terms) Close() error {
	t.Asked.Close()
	t.Verifying.Close()
	return t.Repeated.Close()
}

// openQueue compiles the queue.
func (t *Terms) openQueue() (err error) {
	if t.Queue == nil {
		return nil
	}
	if t.otherRules, err = t.compileOther(); err != nil {
		return err
	}
	if err := t.Queue.Compile(); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	if t.Later, err = t.Queue.CompileAgain(t.Answers); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	return t.openVerifying()
}

// openVerifying prepares the lookups of orders that wait. They have slots of their own, which a rush
// cannot take: at_once bounds them.
func (t *Terms) openVerifying() (err error) {
	if t.Lookup == nil {
		return nil
	}
	spec := *t.Lookup
	spec.AtOnce, spec.Queue = t.Queue.AtOnce, 0
	if t.Verifying, err = spec.Compile("the lookup", "jwt."); err != nil {
		return err
	}
	t.RefIsLookedUp = len(t.Ref) > 0 && (t.Verifying.ByRef() || !slices.ContainsFunc(t.Ref, func(expr string) bool { return !strings.HasPrefix(expr, "{lookup.") }))
	return nil
}

// ofProbe is what a probe knows of the gate.
func (t *Terms) ofProbe(log *zap.Logger) *probe.Gate {
	return &probe.Gate{Name: t.setup.Name, ByRef: len(t.Ref) > 0, HoldFor: t.Hold.HoldFor, Answers: t.Answers, MaxAnswer: t.AnswerLimit(), Log: log}
}
