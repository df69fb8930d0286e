package gate

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/gate/option/pow"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
	"github.com/stockgate/stockgate/internal/sale"
)

// RuleNames returns the names of the rules of a gate with all options but a lookup, in their order.
func RuleNames() (names []string) {
	g := &Gate{AttemptOptions: AttemptOptions{Deny: []string{"badips"}, OtherItems: "pass"}}
	g.bind()
	rates := []ratelimit.Rate{{Key: []string{"all"}, Events: 1, Window: caddy.Duration(time.Second), Shared: true}}
	keys, err := ratelimit.Keys(rates)
	if err = errors.Join(err, g.rates.Open("", rates, keys), g.challenge.Open(&pow.Challenge{Kind: "pow"}, "", false)); err != nil {
		panic(err)
	}
	g.credentials = new(session.Credentials)
	g.compileRules()
	for _, one := range g.Judge.rules.rest {
		names = append(names, one.name)
	}
	return names
}

// AddRule adds a rule that needs the request only, behind the denylists. Judges that are provisioned until
// it is removed have it.
func AddRule(refuses func(*sale.Attempt) *sale.Refusal) (remove func()) {
	before := rules
	rules = slices.Insert(slices.Clone(rules), 1, rule{name: "added", needs: aRequest, judge: func(_ *Judge, _ *http.Request, p *purchase) (*sale.Refusal, bool) {
		return refuses(p.attempt), false
	}})
	return func() { rules = before }
}

// PollIn is in how many seconds a person may ask again when so many are on the list, and LeastPoll the least of it.
var PollIn, LeastPoll = pollIn, leastPoll

// Told is what a person is told at a place.
type Told = told

// Append appends what is told.
func (t *told) Append(b []byte) []byte { return t.append(b) }

// SendEvent sends lines of a stream, and reports whether the client has read them.
func SendEvent(w http.ResponseWriter, lines string) bool {
	e := events{w: w, to: http.NewResponseController(w)}
	return e.send([]byte(lines))
}

// SetAfter replaces the clock by which the gate asks the shop later. It must come before the first attempt.
func (g *Gate) SetAfter(after func(time.Duration, func()) *time.Timer) { g.after = after }

// Conflict is a row of the table of conflicts, with each other option that it excludes or needs.
type Conflict struct {
	Option string
	Check  bool
	Needs  bool
	Others []string
	Why    string
}

// Conflicts returns the table.
func Conflicts() (all []Conflict) {
	for _, c := range conflicts {
		one := Conflict{c.option, c.check, c.needs != "", c.excludes, c.why}
		if one.Needs {
			one.Others = []string{c.needs}
		}
		all = append(all, one)
	}
	return all
}

// Conflict returns the first conflict among the options of a gate.
func (g *Gate) Conflict() error {
	g.bind()
	return g.conflict()
}

// Conflict returns the first conflict among the options of a check.
func (c *Check) Conflict() error {
	c.bind()
	return c.conflict()
}
