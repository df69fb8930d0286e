package dashboard

import (
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/journal"
)

const (
	// maxActions is how many actions the log of the page has.
	maxActions = 50
	// unnamed is who did what older edges have written without a name.
	unnamed = "admin API"
)

// action is something that an operator did, as the journal tells it. Settled holds of the
// same minute are one action.
type action struct {
	At    int64  `json:"at"` // ms
	Who   string `json:"who"`
	Kind  string `json:"kind"`
	ID    string `json:"id,omitempty"`
	Units int64  `json:"units,omitempty"`
	Times int    `json:"times"`
}

// actions are the last actions, the newest last.
type actions struct{ list []action }

// add notes a movement if an operator caused it.
func (a *actions) add(m *journal.Movement) {
	did := action{At: m.Time.UnixMilli(), Kind: m.Kind, Who: m.Cause, Times: 1}
	switch m.Kind {
	case "open", "paused", "closed", "applied", "rebuilt", "repaired", "offers_paused", "offers_resumed":
	case "adjusted":
		did.ID = m.ID
		for _, l := range m.Lines {
			did.ID = l.Cell
			did.Units += l.Units
		}
	case "confirmed", "released", "returned":
		cause := m.Cause
		if m.Kind == "returned" { // the id of the return stands before
			_, cause, _ = strings.Cut(cause, " ")
		}
		who, named := strings.CutPrefix(cause, adminapi.OperatorCause+":")
		if !named && cause != adminapi.OperatorCause {
			return
		}
		if did.Who = who; !named {
			did.Who = unnamed
		}
		for _, l := range m.Lines {
			did.Units += l.Units
		}
	default:
		return
	}
	if n := len(a.list); n > 0 && did.ID == "" && did.Units > 0 {
		last := &a.list[n-1]
		if last.Kind == did.Kind && last.Who == did.Who && did.At-last.At < time.Minute.Milliseconds() {
			last.At, last.Units, last.Times = did.At, last.Units+did.Units, last.Times+1
			return
		}
	}
	if a.list = append(a.list, did); len(a.list) > maxActions {
		a.list = append(a.list[:0], a.list[1:]...)
	}
}
