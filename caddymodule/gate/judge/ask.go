package judge

import (
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/refuse"
)

// AsksIP reports whether the gate uses the client's address.
func (j *Judge) AsksIP() bool {
	return j.filters.Lists.Any() || j.Challenge != nil || j.filters.Reader.Needs().Has(attempt.NeedIP|attempt.NeedJWT)
}

// ReadsHeader reports whether the gate, or the guard before it, reads a header of a request.
func (j *Judge) ReadsHeader(name string) bool {
	return j.filters.Reader.ReadsHeader(name) || len(name) == len(refuse.AcceptLanguage) && strings.EqualFold(name, refuse.AcceptLanguage)
}

// KnowsNames returns what checks the placeholders of a question.
func (j *Judge) KnowsNames() option.KnowsNames { return j.filters.KnowsNames }

// Routes returns the routes of the gate's server that lead to gates.
func (j *Judge) Routes() *guard.Routes { return &j.routes }

// Refuser returns the gate's answers to refusals.
func (j *Judge) Refuser() *refuse.Refuser { return j.filters.Refuser }

// Guarded returns what guards need to know of the gate.
func (j *Judge) Guarded() *guard.Gate { return &j.guarded }

// UngatedSites returns warnings about sites that send orders to the gate's upstream without a gate. Call it
// when all handlers of the configuration are provisioned.
func (j *Judge) UngatedSites() []string {
	if j.OnlyChecks() || j.server == nil {
		return nil
	}
	loaded, err := j.ctx.AppIfConfigured("http")
	if err != nil {
		return nil
	}
	http, ok := loaded.(*caddyhttp.App)
	if !ok {
		return nil
	}
	return guard.UngatedSites(&j.guarded, j.Title(), CaddyServer(j), http.Servers)
}

// warnLoaded logs warnings that need the whole configuration.
func (j *Judge) warnLoaded() {
	if j.InShadow {
		j.log.Warn("this gate is in shadow: it refuses nothing and holds no stock, and only counts what it would have done; remove `shadow` before the sale that it is to protect")
	}
	for _, warning := range j.UngatedSites() {
		j.log.Warn(warning)
	}
	if reads := j.LacksAuthentication(); reads != "" {
		j.log.Warn(reads + " is always empty, because no authentication comes before the gate: add one before the gate, such as basic_auth, or read the buyer elsewhere")
	}
}
