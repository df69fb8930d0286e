package judge

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
	j := &Judge{Setup: Setup{AttemptOptions: &AttemptOptions{Deny: []string{"badips"}, OtherItems: "pass"}, Seller: struct{ Seller }{}}}
	rates := []ratelimit.Rate{{Key: []string{"all"}, Events: 1, Window: caddy.Duration(time.Second), Shared: true}}
	keys, err := ratelimit.Keys(rates)
	if err = errors.Join(err, j.rates.Open("", rates, keys), j.challenge.Open(&pow.Challenge{Kind: "pow"}, "", false)); err != nil {
		panic(err)
	}
	j.credentials = new(session.Credentials)
	j.compileRules()
	for _, one := range j.rules.rest {
		names = append(names, one.name)
	}
	return names
}

// AddRule adds a rule that needs the request only, behind the denylists. Judges that are provisioned until
// it is removed have it.
func AddRule(refuses func(*sale.Attempt) *sale.Refusal) (remove func()) {
	before := rules
	rules = slices.Insert(slices.Clone(rules), 1, rule{name: "added", needs: aRequest, judge: func(_ *Judge, _ *http.Request, p *Case) (*sale.Refusal, bool) {
		return refuses(p.Attempt), false
	}})
	return func() { rules = before }
}

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
