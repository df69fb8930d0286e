package gate

import (
	"slices"

	"github.com/stockgate/stockgate/filters/outcome"
)

// givenGate reports whether an option that only a gate has is there, by its name in the table of conflicts.
var givenGate = map[string]func(*Gate) bool{
	"repeats":         func(g *Gate) bool { return g.Repeats != nil },
	"idempotency_ttl": func(g *Gate) bool { return g.IdempotencyTTL > 0 },
	"outcome ask":     func(g *Gate) bool { return g.Ask != nil },
	"outcome backend": func(g *Gate) bool { return g.Outcome == "backend" },
	"confirm":         func(g *Gate) bool { return g.decides("confirm") },
	"release":         func(g *Gate) bool { return g.decides("release") },
	"in_doubt":        func(g *Gate) bool { return g.InDoubt != nil },
	"queue":           func(g *Gate) bool { return g.Queue != nil },
	"queue again":     func(g *Gate) bool { return g.Queue != nil && g.Queue.Again != "" },
}

// Gives reports whether an option that only a gate has is there.
func (g *Gate) Gives(option string) bool { return givenGate[option](g) }

// decides reports whether a rule for the shop's answer has this outcome.
func (g *Gate) decides(then string) bool {
	return slices.ContainsFunc(g.Rules, func(r outcome.Rule) bool { return r.Outcome == then })
}
