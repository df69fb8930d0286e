package gate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/store/record"
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
	if g.Outcome != "" && g.Outcome != "response" && g.Outcome != "backend" && g.Outcome != "ask" {
		return fmt.Errorf("outcome %q: there are response, ask and backend", g.Outcome)
	}
	if err := g.outcomeConflict(); err != nil {
		return err
	}
	if g.MaxAnswer != 0 && (g.MaxAnswer < leastAnswer || g.MaxAnswer > mostAnswer) {
		return errors.New("max_answer: an answer of the shop is read up to 1KiB at least and 16MiB at most")
	}
	if g.outcomes, err = outcome.Compile(g.Rules, g.Answers, g.mode() == record.ModeBackend || g.Ask != nil); err != nil || g.Ask == nil {
		return err
	}
	g.outcomes.Otherwise = outcome.InDoubt
	g.asksLater, g.after = filters.NewSlots(maxAsksLater), time.AfterFunc
	if g.ask, err = g.Ask.Compile(); err != nil {
		return err
	}
	g.ask.MaxAnswer = g.AnswerLimit()
	return g.KnowsNames("outcome ask", g.ask)
}

// The bounds of max_answer.
const (
	leastAnswer = 1 << 10
	mostAnswer  = 16 << 20
)

// AnswerLimit is how many bytes of an answer of the shop are read.
func (g *Gate) AnswerLimit() int { return cmp.Or(int(g.MaxAnswer), outcome.DefaultMaxBody) }

// Outcomes are the rules that decide a reservation.
func (g *Gate) Outcomes() *outcome.Rules { return g.outcomes }

// outcomeConflict reports options that a gate cannot use with its outcome.
func (g *Gate) outcomeConflict() error {
	if err := g.askConflict(); err != nil || g.Ask != nil {
		return err
	}
	for name, answer := range g.Answers {
		for _, test := range answer.JSON {
			if slices.Contains(test.Values, outcome.RefValue) && g.InDoubt == nil {
				return fmt.Errorf("@%s compares with {ref}, and the shop is not asked about an order: use it with `outcome ask` or `in_doubt probe`", name)
			}
		}
	}
	if g.mode() != record.ModeBackend {
		return g.graphQLConflict()
	}
	return nil
}

// graphQLConflict reports a gate that takes the status of a GraphQL server for its decision:
// it is 200 where the shop refuses too, and unsold units would be confirmed.
func (g *Gate) graphQLConflict() error {
	if len(g.GraphQL) == 0 {
		return nil
	}
	for _, r := range g.Rules {
		if r.Outcome != "confirm" {
			continue
		}
		for _, when := range r.When {
			if strings.HasPrefix(when, "@") {
				return nil
			}
		}
	}
	return errors.New("a server of GraphQL answers 200 also where it refuses, so that no status confirms an order: ask it with `outcome ask`, let the shop confirm with `outcome backend`, or say in a matcher what its answer must have, such as `@sold { json !errors }` and `confirm @sold`")
}
