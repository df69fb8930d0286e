package judge

import (
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/gate/cart"
	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/reply"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/sale"
)

// Judge reads the attempts of one handler and judges them by the rules. A gate, a stockgate_check and a
// stockgate_waitlist have one each.
type Judge struct {
	option.Setup

	ctx                 caddy.Context // of the configuration
	log                 *zap.Logger
	filters             option.Filters
	rules               ruleSet
	seller              Seller // nil: the judge only checks
	clerk               cart.Clerk
	noBuyer, noQuantity option.Silence // values that no attempt has
	// server is the server that the handler belongs to; nil: none.
	server  HTTPServer
	routes  guard.Routes
	guarded guard.Gate
	bypass  *app.BypassSwitch // on while orders pass without a reservation
	// fastCounters has, for each reason, the counter of the sale that was first refused
	// fast.
	fastCounters []atomic.Pointer[refusals]
}

// Log is the handler's log.
func (j *Judge) Log() *zap.Logger { return j.log }

// BodyLimit is how many bytes of a body are read.
func (j *Judge) BodyLimit() int64 { return j.filters.Reader.MaxBody() }

// Visit begins what a request is to the judge.
func (j *Judge) Visit(w http.ResponseWriter, r *http.Request) Visit {
	return Visit{Began: time.Now(), Repl: r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer), Out: w.Header()}
}

// Meet reads and judges a request. over: it has got its answer, or next has served it.
func (j *Judge) Meet(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, p *Case) (over bool, err error) {
	if p.clean = r.Trailer == nil && !attempt.AnyStrippable(r.Header); !p.clean {
		guard.StripReserved(r)
		attempt.StripH2C(r.Header)
	}
	if guard.PassageOf(r) == 0 { // no guard has asked
		if why, _, _ := j.routes.Refuses(r); why != "" {
			return true, j.Refuse(w, r, "", p.Began, &sale.Refusal{Reason: sale.Malformed, Detail: why})
		}
	}
	if r.Method == http.MethodOptions {
		return true, j.serveOptions(w, r, next, p.Began)
	}
	switch no, err := j.Consider(r, p); {
	case err != nil: // the client left or was too slow, or request_body has a lower limit
		reply.DropPayload(r)
		return true, caddyhttp.Error(http.StatusBadRequest, err)
	case no != nil:
		return true, j.Refuse(w, r, p.SaleID(), p.Began, no)
	case p.Scope == scope.Unknown:
		return true, j.filters.Operations.AskDocument(w)
	}
	return false, nil
}

// Refuse answers and counts a refusal of an attempt that began at that time. name is the
// sale's id, empty if there is none: text from a client never becomes a label.
func (j *Judge) Refuse(w http.ResponseWriter, r *http.Request, name string, began time.Time, no *sale.Refusal) error {
	meter.Lost(name, time.Since(began))
	meter.CountAttempt(name, "refused", no.Reason)
	return reply.Refuse(j.filters.Refuser, w, r, no)
}

// HandOn hands on a request without a reservation: it is unchanged, has no token, and still ends with its
// client.
func (j *Judge) HandOn(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, p *Case) error {
	if p.Scope == scope.Attempt {
		meter.CountAttempt(p.SaleID(), "passed", "")
		reply.Publish(r, p.Repl, reply.Placeholders{Verdict: "passed", Sale: p.SaleID()})
	}
	if len(p.Keys) > 0 {
		j.ForgetCart(p)
	}
	if p.Turn != nil {
		ctx, done := p.Turn.Pass(r.Context())
		defer done()
		handed := r.WithContext(ctx)
		err := next.ServeHTTP(w, handed)
		if err != nil {
			reply.DropAsIn(handed, r)
		}
		return err
	}
	return next.ServeHTTP(w, r)
}

// OpenRuntime returns the edge runtime if it may sell now. A dry run sells nothing.
func (j *Judge) OpenRuntime(r *http.Request, dryRun bool) *edgeruntime.Runtime {
	d := j.App.Runtime()
	if d == nil || d.Ready() != nil {
		return nil
	}
	if d.IsLocal() && !dryRun && !FromThisMachine(r) {
		if c := j.log.Check(zap.WarnLevel, "not selling: `redis embedded` is for trying things out on this machine; configure a redis"); c != nil {
			c.Write()
		}
		return nil
	}
	return d
}

// FromThisMachine reports whether the request came to a loopback address.
func FromThisMachine(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	ap, err := netip.ParseAddrPort(addr.String())
	return addr.Network() == "unix" || err == nil && ap.Addr().Unmap().IsLoopback()
}

// RefuseTooLong refuses an order that is too large for a token.
var RefuseTooLong = &sale.Refusal{Reason: sale.Malformed, Detail: "the order has too many lines for one token"}
