package selling

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/store/record"
)

const (
	backendHoldFor        = 15 * time.Minute
	backendForwardTimeout = 20 * time.Second
)

// Mode returns what happens to the gate's holds at their deadline.
func (t *Terms) Mode() record.Mode {
	if t.Outcome == "backend" {
		return record.ModeBackend
	}
	return record.ModeResponse
}

// openOutcome compiles what decides a reservation.
func (t *Terms) openOutcome(knows option.KnowsNames) (err error) {
	if t.Outcome != "" && t.Outcome != "response" && t.Outcome != "backend" && t.Outcome != "ask" {
		return fmt.Errorf("outcome %q: there are response, ask and backend", t.Outcome)
	}
	if err := t.OutcomeConflict(); err != nil {
		return err
	}
	if t.MaxAnswer != 0 && (t.MaxAnswer < leastAnswer || t.MaxAnswer > mostAnswer) {
		return errors.New("max_answer: an answer of the shop is read up to 1KiB at least and 16MiB at most")
	}
	if t.Outcomes, err = outcome.Compile(t.Rules, t.Answers, t.Mode() == record.ModeBackend || t.Ask != nil); err != nil || t.Ask == nil {
		return err
	}
	t.Outcomes.Otherwise = outcome.InDoubt
	if t.Asked, err = t.Ask.Compile(); err != nil {
		return err
	}
	t.Asked.MaxAnswer = t.AnswerLimit()
	return knows("outcome ask", t.Asked)
}

// The bounds of max_answer.
const (
	leastAnswer = 1 << 10
	mostAnswer  = 16 << 20
)

// AnswerLimit is how many bytes of an answer of the shop are read.
func (t *Terms) AnswerLimit() int { return cmp.Or(int(t.MaxAnswer), outcome.DefaultMaxBody) }

// OutcomeConflict reports options that a gate cannot use with its outcome.
func (t *Terms) OutcomeConflict() error {
	if err := t.askConflict(); err != nil || t.Ask != nil {
		return err
	}
	for name, answer := range t.Answers {
		for _, test := range answer.JSON {
			if slices.Contains(test.Values, outcome.RefValue) && t.InDoubt == nil {
				return fmt.Errorf("@%s compares with {ref}, and the shop is not asked about an order: use it with `outcome ask` or `in_doubt probe`", name)
			}
		}
	}
	if t.Mode() != record.ModeBackend {
		return t.graphQLConflict()
	}
	return nil
}

// graphQLConflict reports a gate that takes the status of a GraphQL server for its decision:
// it is 200 where the shop refuses too, and unsold units would be confirmed.
func (t *Terms) graphQLConflict() error {
	if len(t.setup.GraphQL) == 0 {
		return nil
	}
	for _, r := range t.Rules {
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

// askConflict reports an outcome ask without its question, and a question without it, in JSON.
func (t *Terms) askConflict() error {
	if (t.Outcome == "ask") != (t.Ask != nil) {
		return errors.New("outcome ask: say what the shop is asked, such as `outcome ask GET http://shop:3000/orders/{ref}`")
	}
	if t.Ask != nil && t.Ask.ByAnswer() && len(t.setup.GraphQL) > 0 {
		return errors.New("outcome ask: {answer.…} names no order where clients of GraphQL choose what the answer has: ask by {ref}, {lookup.…} or the session")
	}
	return nil
}
