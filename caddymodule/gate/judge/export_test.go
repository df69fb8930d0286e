package judge

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/caddymodule/gate/option/pow"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
	"github.com/stockgate/stockgate/internal/sale"
)

// RuleNames returns the names of the rules of a gate with all options but a lookup, in their order.
func RuleNames() (names []string) {
	j := &Judge{Setup: option.Setup{AttemptOptions: &option.AttemptOptions{Deny: []string{"badips"}, OtherItems: "pass"}, Own: struct{ Seller }{}}}
	rates := []ratelimit.Rate{{Key: []string{"all"}, Events: 1, Window: caddy.Duration(time.Second), Shared: true}}
	keys, err := ratelimit.Keys(rates)
	if err = errors.Join(err, j.filters.Rates.Open("", rates, keys), j.filters.Challenge.Open(&pow.Challenge{Kind: "pow"}, "", false)); err != nil {
		panic(err)
	}
	j.filters.Credentials = new(session.Credentials)
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
