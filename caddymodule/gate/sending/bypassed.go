package sending

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/reply"
	"github.com/stockgate/stockgate/filters/refuse"
)

// ServeBypassed sends a request to the shop while orders pass without a reservation. The shop gets as many of them at a
// time as usual.
func (c *Carrier) ServeBypassed(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return c.Judge.ServeBypassed(w, r, bypassed{c, next})
}

type bypassed struct {
	*Carrier
	next caddyhttp.Handler
}

func (b bypassed) ServeHTTP(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodOptions || !b.MayBeOrder(r) {
		return b.next.ServeHTTP(w, r)
	}
	if !b.bypassing.Take() {
		meter.CountAttempt("", "refused", refuse.Busy.Reason)
		return reply.Refuse(b.Refuser(), w, r, refuse.Busy)
	}
	defer b.bypassing.Give()
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	reply.Publish(r, repl, reply.Placeholders{Verdict: "bypassed"})
	forward.Forget(repl)
	taken := b.Bypass().Passes()
	err := b.next.ServeHTTP(w, r)
	status, _ := forward.ProxyStatus(repl)
	if status/100 == 2 {
		taken()
	}
	meter.CountBypassed(b.Name, status)
	return err
}
