package selling

import (
	"slices"

	"github.com/stockgate/stockgate/filters/outcome"
)

// given reports whether an option that only a gate has is there, by its name in the table of conflicts.
var given = map[string]func(*Terms) bool{
	"repeats":         func(t *Terms) bool { return t.Repeats != nil },
	"idempotency_ttl": func(t *Terms) bool { return t.IdempotencyTTL > 0 },
	"outcome ask":     func(t *Terms) bool { return t.Ask != nil },
	"outcome backend": func(t *Terms) bool { return t.Outcome == "backend" },
	"confirm":         func(t *Terms) bool { return t.decides("confirm") },
	"release":         func(t *Terms) bool { return t.decides("release") },
	"in_doubt":        func(t *Terms) bool { return t.InDoubt != nil },
	"queue":           func(t *Terms) bool { return t.Queue != nil },
	"queue again":     func(t *Terms) bool { return t.Queue != nil && t.Queue.Again != "" },
}

// Gives reports whether an option that only a gate has is there.
func (t *Terms) Gives(option string) bool { return given[option](t) }

// decides reports whether a rule for the shop's answer has this outcome.
func (t *Terms) decides(then string) bool {
	return slices.ContainsFunc(t.Rules, func(r outcome.Rule) bool { return r.Outcome == then })
}
