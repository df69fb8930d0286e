package caddymodule

import (
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/sale"
)

// published is what the last gate says of an attempt in placeholders. They are read
// only where somebody asks for them: five entries in the replacer's map would cost
// every refusal more than all of its filters.
type published struct {
	verdict, sale, reservation, ref string
	reason                          sale.Reason
}

const (
	placeholders = "http.stockgate."
	// publishedVar is where in a request's variables the gate before has left them.
	publishedVar = "stockgate.published"
)

// publish sets the placeholders of an attempt.
func publish(r *http.Request, repl *caddy.Replacer, now published) {
	vars, _ := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	if before, ok := vars[publishedVar].(*published); ok {
		*before = now
		return
	}
	p := new(published)
	*p = now
	if vars != nil {
		vars[publishedVar] = p
	}
	repl.Map(p.placeholder)
}

func (p *published) placeholder(name string) (any, bool) {
	name, ok := strings.CutPrefix(name, placeholders)
	if !ok {
		return nil, false
	}
	switch name {
	case "verdict":
		return p.verdict, true
	case "reason":
		return string(p.reason), true
	case "sale":
		return p.sale, true
	case "reservation":
		return p.reservation, true
	case "ref":
		return p.ref, true
	}
	return nil, false
}
