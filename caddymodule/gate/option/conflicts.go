package option

import "fmt"

// conflicts are the options that exclude each other, and those that need others: the only place that has
// them. A gate or a check that breaks one of them is an error, in a Caddyfile as in JSON. docs/configure.md
// lists them, made from here.
var conflicts = []conflict{
	{option: "one_at_a_time", check: true, excludes: []string{"line", "lines", "graphql", "json_body", "persisted", "rate", "deny", "allow", "challenge", "fast_refusals", "max_in_flight"},
		why: "with it a check only lets requests of a session wait, so put the other option into another stockgate_check"},
	{option: "lookup", check: true, needs: "one_at_a_time", why: "a check asks the shop only for the cart whose turn a request waits for, as in `one_at_a_time {lookup.cart.id}`"},

	{option: "ref shared", needs: "ref", why: "only a ref can be shared"},
	{option: "repeats", needs: "ref", why: "only an order that has a ref is forwarded again"},
	{option: "idempotency_ttl", needs: "idempotency", why: "it says how long a key is remembered: say where the key is found, such as `idempotency {header.Idempotency-Key}`"},
	{option: "continue", needs: "ref", why: "the ref names the hold that goes on"},
	{option: "continue", excludes: []string{"ref shared", "idempotency"}, why: "the ref of one buyer names the hold that goes on"},

	{option: "lookup", excludes: []string{"idempotency"}, why: "a cart that was sold is empty, so name the order by `ref`"},
	{option: "outcome ask", needs: "confirm", why: askRules},
	{option: "outcome ask", needs: "release", why: askRules},
	{option: "outcome ask", needs: "ref", why: "say how the shop calls the order, such as `ref {lookup.cart.id}`"},
	{option: "outcome ask", excludes: []string{"idempotency"}, why: "the shop is asked about an order by its `ref`"},
	{option: "outcome backend", excludes: []string{"confirm"}, why: "the shop confirms through stockgate_api"},
	{option: "outcome backend", excludes: []string{"in_doubt"}, why: "its holds expire at their deadline, and none comes in doubt"},

	{option: "queue", excludes: []string{"max_in_flight"}, why: "at_once says how many orders are at the shop"},
	{option: "queue", excludes: []string{"continue"}, why: "the shop has the token of the hold that goes on, and could sell with it while the order waits"},
	{option: "queue again", excludes: []string{"outcome ask"}, why: "it is a test of the shop's answer to the order, and the shop is asked how the order ended"},

	{option: "fast_refusals", excludes: []string{"lookup", "one_at_a_time"}, why: "a request is looked up, and waits, only where Caddy handles it"},
	{option: "fast_refusals", excludes: []string{"graphql", "json_body", "persisted"}, why: "the gate must read the operation to know whether a request is an attempt"},

	{option: "shadow", excludes: []string{"lookup", "one_at_a_time"}, why: "when the shop has answered, a lookup no longer finds the cart"},
	{option: "shadow", excludes: []string{"graphql", "json_body", "persisted"}, why: "their values are known only when the gate has read the body, and a gate in shadow reads it after the shop"},
	{option: "shadow", excludes: []string{"fast_refusals"}, why: "a gate in shadow refuses nothing, also at the connection: take fast_refusals out until the gate is live"},
	{option: "shadow", excludes: []string{"challenge"}, why: "clients are not asked for a solution, and every attempt would count as refused: take challenge out until the gate is live"},
	{option: "shadow", excludes: []string{"outcome backend"}, why: "the shop decides after its answer, about a hold that a gate in shadow does not have: use outcome response until the gate is live"},
	{option: "shadow", excludes: []string{"queue"}, why: "a gate in shadow lets no order wait: take queue out until the gate is live"},
}

const askRules = "say what the shop's answer means, such as `confirm @sold` and `release @not`"

// conflict is what an option excludes, or needs. check: it does so in a stockgate_check only.
type conflict struct {
	option   string
	check    bool
	excludes []string
	needs    string
	why      string
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
	for _, c := range conflicts {
		if c.check && (!s.OnlyChecks() || s.Enters) || !s.gives(c.option) {
			continue
		}
		if c.needs != "" && !s.gives(c.needs) {
			return fmt.Errorf("%s needs %s: %s", c.option, c.needs, c.why)
		}
		for _, other := range c.excludes {
			if s.gives(other) {
				return fmt.Errorf("%s and %s do not go together: %s", c.option, other, c.why)
			}
		}
	}
	return nil
}
