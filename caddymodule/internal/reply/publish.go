package reply

import (
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/filters/refuse"
)

// Placeholders has what the last gate reports about an attempt in placeholders. They are
// computed only when they are read: five entries in the replacer's map would cost every
// refusal more than all of its filters.
type Placeholders struct {
	Verdict, Sale, Reservation, Ref string
	refusal                         *refuse.ReasonAnswer // nil: the attempt is not refused
	asked                           http.Header          // of the refused request
}

const (
	prefix = "http.stockgate."
	// publishedVar is the variable of a request in which the previous gate has left them.
	publishedVar = "stockgate.published"
)

// Publish sets the placeholders of an attempt.
func Publish(r *http.Request, repl *caddy.Replacer, now Placeholders) {
	vars, _ := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	if before, ok := vars[publishedVar].(*Placeholders); ok {
		*before = now
		return
	}
	p := new(Placeholders)
	*p = now
	if vars != nil {
		vars[publishedVar] = p
	}
	repl.Map(p.placeholder)
}

func (p *Placeholders) placeholder(name string) (any, bool) {
	name, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return nil, false
	}
	switch name {
	case "verdict":
		return p.Verdict, true
	case "reason", "title":
		if p.refusal == nil {
			return "", true
		}
		if name == "title" {
			return p.refusal.Title(p.asked), true
		}
		return string(p.refusal.Kind.Reason), true
	case "sale":
		return p.Sale, true
	case "reservation":
		return p.Reservation, true
	case "ref":
		return p.Ref, true
	}
	return nil, false
}
