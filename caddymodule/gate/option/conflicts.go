package option

import "fmt"

// Conflicts are the options that exclude each other, and those that need others: the only place that has
// them. A gate or a check that breaks one of them is an error, in a Caddyfile as in JSON. docs/configure.md
// lists them, made from here.
var Conflicts = []ConflictRow{
	{Option: "one_at_a_time", Check: true, Excludes: []string{"line", "lines", "graphql", "json_body", "persisted", "rate", "deny", "allow", "challenge", "fast_refusals", "max_in_flight"},
		Why: "with it a check only lets requests of a session wait, so put the other option into another stockgate_check"},
	{Option: "lookup", Check: true, Needs: "one_at_a_time", Why: "a check asks the shop only for the cart whose turn a request waits for, as in `one_at_a_time {lookup.cart.id}`"},

	{Option: "ref shared", Needs: "ref", Why: "only a ref can be shared"},
	{Option: "repeats", Needs: "ref", Why: "only an order that has a ref is forwarded again"},
	{Option: "idempotency_ttl", Needs: "idempotency", Why: "it says how long a key is remembered: say where the key is found, such as `idempotency {header.Idempotency-Key}`"},
	{Option: "continue", Needs: "ref", Why: "the ref names the hold that goes on"},
	{Option: "continue", Excludes: []string{"ref shared", "idempotency"}, Why: "the ref of one buyer names the hold that goes on"},

	{Option: "lookup", Excludes: []string{"idempotency"}, Why: "a cart that was sold is empty, so name the order by `ref`"},
	{Option: "outcome ask", Needs: "confirm", Why: askRules},
	{Option: "outcome ask", Needs: "release", Why: askRules},
	{Option: "outcome ask", Needs: "ref", Why: "say how the shop calls the order, such as `ref {lookup.cart.id}`"},
	{Option: "outcome ask", Excludes: []string{"idempotency"}, Why: "the shop is asked about an order by its `ref`"},
	{Option: "outcome backend", Excludes: []string{"confirm"}, Why: "the shop confirms through stockgate_api"},
	{Option: "outcome backend", Excludes: []string{"in_doubt"}, Why: "its holds expire at their deadline, and none comes in doubt"},

	{Option: "queue", Excludes: []string{"max_in_flight"}, Why: "at_once says how many orders are at the shop"},
	{Option: "queue", Excludes: []string{"continue"}, Why: "the shop has the token of the hold that goes on, and could sell with it while the order waits"},
	{Option: "queue again", Excludes: []string{"outcome ask"}, Why: "it is a test of the shop's answer to the order, and the shop is asked how the order ended"},

	{Option: "fast_refusals", Excludes: []string{"lookup", "one_at_a_time"}, Why: "a request is looked up, and waits, only where Caddy handles it"},
	{Option: "fast_refusals", Excludes: []string{"graphql", "json_body", "persisted"}, Why: "the gate must read the operation to know whether a request is an attempt"},

	{Option: "shadow", Excludes: []string{"lookup", "one_at_a_time"}, Why: "when the shop has answered, a lookup no longer finds the cart"},
	{Option: "shadow", Excludes: []string{"graphql", "json_body", "persisted"}, Why: "their values are known only when the gate has read the body, and a gate in shadow reads it after the shop"},
	{Option: "shadow", Excludes: []string{"fast_refusals"}, Why: "a gate in shadow refuses nothing, also at the connection: take fast_refusals out until the gate is live"},
	{Option: "shadow", Excludes: []string{"challenge"}, Why: "clients are not asked for a solution, and every attempt would count as refused: take challenge out until the gate is live"},
	{Option: "shadow", Excludes: []string{"outcome backend"}, Why: "the shop decides after its answer, about a hold that a gate in shadow does not have: use outcome response until the gate is live"},
	{Option: "shadow", Excludes: []string{"queue"}, Why: "a gate in shadow lets no order wait: take queue out until the gate is live"},
}

const askRules = "say what the shop's answer means, such as `confirm @sold` and `release @not`"

// ConflictRow is what an option excludes, or needs.
type ConflictRow struct {
	Option   string
	Check    bool // it does so in a stockgate_check only
	Excludes []string
	Needs    string
	Why      string
}

// given reports whether an option of a judge is there. The others are a seller's.
var given = map[string]func(*Setup) bool{
	"line":          func(s *Setup) bool { return len(s.Lines) > 0 },
	"lines":         func(s *Setup) bool { return s.LinesFrom != nil },
	"graphql":       func(s *Setup) bool { return len(s.GraphQL) > 0 },
	"json_body":     func(s *Setup) bool { return len(s.JSONBody) > 0 },
	"persisted":     func(s *Setup) bool { return s.Persisted != "" },
	"rate":          func(s *Setup) bool { return len(s.Rates) > 0 },
	"deny":          func(s *Setup) bool { return len(s.Deny) > 0 },
	"allow":         func(s *Setup) bool { return len(s.Allow) > 0 },
	"challenge":     func(s *Setup) bool { return s.Challenge != nil },
	"one_at_a_time": func(s *Setup) bool { return s.OneAtATime != nil },
	"fast_refusals": func(s *Setup) bool { return s.FastRefusals != nil },
	"max_in_flight": func(s *Setup) bool { return s.MaxInFlight != 0 },
	"ref":           func(s *Setup) bool { return len(s.Ref) > 0 },
	"ref shared":    func(s *Setup) bool { return s.RefShared },
	"continue":      func(s *Setup) bool { return s.Continue },
	"idempotency":   func(s *Setup) bool { return len(s.Idempotency) > 0 },
	"lookup":        func(s *Setup) bool { return s.Lookup != nil },
	"shadow":        func(s *Setup) bool { return s.InShadow },
}

// gives reports whether an option is there, of the judge or of its seller.
func (s *Setup) gives(option string) bool {
	if given := given[option]; given != nil {
		return given(s)
	}
	return s.Own != nil && s.Own.Gives(option)
}

// Conflict reports the first conflict among the options.
func (s *Setup) Conflict() error {
	for _, c := range Conflicts {
		if c.Check && (!s.OnlyChecks() || s.Enters) || !s.gives(c.Option) {
			continue
		}
		if c.Needs != "" && !s.gives(c.Needs) {
			return fmt.Errorf("%s needs %s: %s", c.Option, c.Needs, c.Why)
		}
		for _, other := range c.Excludes {
			if s.gives(other) {
				return fmt.Errorf("%s and %s do not go together: %s", c.Option, other, c.Why)
			}
		}
	}
	return nil
}
