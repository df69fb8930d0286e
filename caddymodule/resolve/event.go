package resolve

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/filters/webhook"
	"github.com/stockgate/stockgate/internal/sale"
)

// event is one event that a rule matches, about one order.
type event struct {
	then outcome.Decision // Confirm or Release
	ref  string
}

// readEvents compiles what the events are read by.
func (h *Resolve) readEvents() (err error) {
	if len(h.Ref) == 0 {
		return errors.New("ref is missing: say where an event has the shop's own name of the order, such as `ref {json.data.object.client_reference_id}`")
	}
	for _, text := range h.Ref {
		path, ok := strings.CutPrefix(text, "{json.")
		path, closed := strings.CutSuffix(path, "}")
		if !ok || !closed {
			return fmt.Errorf("ref %s: only the body is signed, write {json.PATH}", text)
		}
		if err := h.checkPath("ref", path); err != nil {
			return err
		}
		h.refs = append(h.refs, path)
	}
	if err := h.refs.Check(); err != nil {
		return fmt.Errorf("ref: %w", err)
	}
	for name, a := range h.Events {
		if len(a.Status) > 0 || len(a.Header) > 0 {
			return fmt.Errorf("event @%s: only the body is signed, so that only json can be tested", name)
		}
		for _, t := range a.JSON {
			if err := h.checkPath("event @"+name, t.Path); err != nil {
				return err
			}
		}
	}
	confirms := false
	for _, rule := range h.Rules {
		confirms = confirms || rule.Outcome == "confirm"
		for _, when := range rule.When {
			if !strings.HasPrefix(when, "@") {
				return fmt.Errorf("%s %s: an event has no status; name one that is defined as `@name { json … }`", rule.Outcome, when)
			}
		}
	}
	if !confirms {
		return errors.New("confirm is missing: say which events are a payment, such as `confirm @paid`")
	}
	h.rules, err = outcome.Compile(h.Rules, h.Events, true)
	return err
}

// readBatch compiles where the body has several events.
func (h *Resolve) readBatch() error {
	h.batch = h.preset.Events
	if h.EventsIn == "" {
		return nil
	}
	if h.batch != nil {
		return fmt.Errorf("events: %s has its events in %s, and needs no events", h.Verify[0].Scheme, h.batch.Path)
	}
	path, ok := strings.CutPrefix(h.EventsIn, "{json")
	path, closed := strings.CutSuffix(path, "}")
	if !ok || !closed || path != "" && path[0] != '.' {
		return fmt.Errorf("events %s: write {json.PATH} for the array that has the events, or {json} where the body is the array", h.EventsIn)
	}
	path = strings.TrimPrefix(path, ".")
	if h.EventsIn != "{json}" {
		if err := (outcome.Paths{path}).Check(); err != nil {
			return fmt.Errorf("events: %w", err)
		}
	}
	h.batch = &webhook.EventList{Path: path}
	return nil
}

// checkPath refuses a path that the provider does not sign.
func (h *Resolve) checkPath(what, path string) error {
	if signed := h.preset.Fields; signed != nil && !slices.Contains(signed, path) {
		return fmt.Errorf("%s: %s does not sign %s, so that it can be changed on its way; it signs %s", what, h.Verify[0].Scheme, path, strings.Join(signed, ", "))
	}
	return nil
}

// events returns the events of a verified body that a rule matches, and counts the others. several:
// the body has more than one event, whether or not rules match them.
func (h *Resolve) events(body []byte) (found []event, several bool, no *refusal) {
	documents := []json.RawMessage{body}
	if h.batch != nil {
		var err error
		if documents, err = h.batch.Events(body); err != nil {
			h.log.Error("a webhook does not go to the shop: its events cannot be told apart; see that `events` names the array that has them", zap.Error(err))
			return nil, false, notAccepted(err)
		}
	}
	for _, document := range documents {
		e, no := h.read(document)
		if no != nil {
			return nil, false, no
		}
		if e != nil {
			found = append(found, *e)
		}
	}
	if len(documents) == 0 {
		meter.CountWebhook(meter.WebhookOther)
	}
	return found, len(documents) > 1, nil
}

// read returns the event of a document; nil: no rule matches it, or it has no ref, and it is counted.
func (h *Resolve) read(document []byte) (*event, *refusal) {
	e := event{then: h.rules.Decide(&outcome.ShopAnswer{Body: document, Whole: true})}
	if e.then == outcome.Undecided {
		return nil, h.severalOf("the tests")
	}
	if e.then != outcome.Confirm && e.then != outcome.Release {
		meter.CountWebhook(meter.WebhookOther)
		return nil, nil
	}
	var whole bool
	if e.ref, whole = h.refs.In(document); !whole {
		return nil, h.severalOf("ref")
	}
	if !sale.IsName(e.ref) {
		meter.CountWebhook(meter.WebhookNoRef)
		return nil, nil
	}
	return &e, nil
}

// severalOf refuses a webhook of which an array has more elements than are read: the shop would take
// what the others say too, and their orders would not be settled.
func (h *Resolve) severalOf(reads string) *refusal {
	const why = "an array of the body has more elements than stockgate_resolve reads"
	h.log.Error("a webhook does not go to the shop: "+why+"; name the array of its events with `events`, let the provider send one event in each webhook, or read all elements",
		zap.String("in", reads))
	return &refusal{status: http.StatusBadRequest, counts: meter.WebhookUnreadable, text: why + ": send one event in each webhook"}
}
