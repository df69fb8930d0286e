package waitlist

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

func init() { caddy.RegisterModule(new(WaitlistHandler)) }

// WaitlistHandler lets people wait for units that others hold, in sales with a waiting list. A POST enters with what a
// gate would read in it, and is answered with a Location: GET there says where the person stands, DELETE
// leaves. A person accepts an offer by the ordinary order, at the gate.
//
// A GET with `Prefer: wait=25` is answered when there is news, one with `Accept: text/event-stream` gets all news as
// server-sent events. With fast_refusals the listener wrapper answers GET and HEAD of places.
//
// Its options are the options of the gate that read and judge an attempt: lines and buyer are required. With other_items
// pass, items that no sale lists are left out of a cart: one that is listed must be left.
type WaitlistHandler struct {
	option.AttemptOptions
	// Lookup asks the shop, in the buyer's name, what is in the cart of a person who enters. Default: the request says it.
	Lookup *inquiry.Spec `json:"lookup,omitempty"`
	// Ref names the cart for a lookup whose URL or body has {ref}. Default: none.
	Ref []string `json:"ref,omitempty"`

	judge.Judge `json:"-"`
	// down is closed when the server shuts down or the configuration goes: requests that are open end then.
	down chan struct{}
	stop func()
	// openFor is how long an answer may take, because the server cuts it off later; 0: any time.
	openFor time.Duration
}

// CaddyModule returns the Caddy module information.
func (*WaitlistHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.stockgate_waitlist", New: func() caddy.Module { return new(WaitlistHandler) }}
}

// Provision compiles the options.
func (l *WaitlistHandler) Provision(ctx caddy.Context) error {
	return l.InSite(ctx, l.provision(ctx))
}

func (l *WaitlistHandler) provision(ctx caddy.Context) error {
	l.down = make(chan struct{})
	l.stop = sync.OnceFunc(func() { close(l.down) })
	l.Bind()
	if err := l.conflict(); err != nil {
		return err
	}
	if err := l.Open(ctx); err != nil {
		return err
	}
	server := judge.CaddyServer(&l.Judge)
	l.EntersAt = entersAt(ctx, server)
	if err := l.Serve(ctx, nil); err != nil {
		return err
	}
	if server != nil { // it waits for requests before it lets go of its handlers
		server.RegisterOnShutdown(l.stop)
		l.openFor = time.Duration(server.WriteTimeout) * 9 / 10
	}
	return nil
}

// errNoBuyer says that all clients would be one person.
var errNoBuyer = errors.New("stockgate_waitlist needs buyer: say who waits, as the gate does, such as `buyer {http.auth.user.id}`")

// Bind gives the judge the options of the waiting list.
func (l *WaitlistHandler) Bind() *option.Setup {
	l.Setup = option.Setup{AttemptOptions: &l.AttemptOptions, Names: option.Names{Lookup: l.Lookup, Ref: l.Ref}, Enters: true}
	return &l.Setup
}

// conflict reports options that a waiting list has not; it must know who waits.
func (l *WaitlistHandler) conflict() error {
	if len(l.Buyer) == 0 {
		return errNoBuyer
	}
	for option, there := range map[string]bool{"one_at_a_time": l.OneAtATime != nil, "max_in_flight": l.MaxInFlight != 0} {
		if there {
			return errors.New(option + " is no option of stockgate_waitlist: write it at the gate")
		}
	}
	if len(l.Ref) > 0 && l.Lookup == nil {
		return errors.New("ref needs lookup: at stockgate_waitlist it only names the cart about which the shop is asked")
	}
	return nil
}

// ServeHTTP lets a person enter, tells where one stands, or lets one leave.
func (l *WaitlistHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	w.Header().Set("Cache-Control", "no-store")
	switch r.Method {
	case http.MethodPost:
		return l.enter(w, r, next)
	case http.MethodGet, http.MethodHead:
		return l.show(w, r)
	case http.MethodDelete:
		return l.leave(w, r)
	case http.MethodOptions:
		return next.ServeHTTP(w, r)
	}
	w.Header().Set("Allow", "GET, HEAD, POST, DELETE")
	return caddyhttp.Error(http.StatusMethodNotAllowed, nil)
}

// enter puts the person of an attempt on the list.
func (l *WaitlistHandler) enter(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	p := &judge.Case{Visit: l.Visit(w, r)}
	if l.Bypass().State() != app.BypassOff {
		return l.Refuse(w, r, "", p.Began, refuse.Unavailable)
	}
	if over, err := l.Meet(w, r, next, p); over {
		return err
	}
	if p.Scope != scope.Attempt || p.Unlisted {
		return l.Refuse(w, r, "", p.Began, sale.Refuse(sale.UnknownItem))
	}
	entered, no, err := p.Runtime.Enter(r.Context(), p.Listing, p.Attempt, p.Lines)
	switch {
	case errors.Is(err, edge.ErrNoWaitlist), errors.Is(err, edge.ErrOneItem), errors.Is(err, edge.ErrBundle):
		no = &sale.Refusal{Reason: sale.Malformed, Detail: err.Error()}
	case err != nil:
		no = refuse.Unavailable
	}
	if no != nil {
		return l.Refuse(w, r, p.SaleID(), p.Began, no)
	}
	ticket, err := p.Runtime.WaitTicket(p.SaleID(), p.Runtime.BuyerHash(p.Attempt))
	if err != nil {
		return l.Refuse(w, r, p.SaleID(), p.Began, refuse.Unavailable)
	}
	w.Header().Set("Location", strings.TrimSuffix(originalPath(r), "/")+"/"+ticket)
	status := http.StatusOK
	if entered.New {
		status = http.StatusCreated
	}
	state := "waiting"
	if entered.Offered {
		state = "offered"
	}
	line, _ := p.Listing.Sale.LineOf(entered.Cell)
	tell(w, r, status, &told{State: state, SKU: line.SKU, Region: line.Region, Quantity: entered.Quantity})
	return nil
}

// originalPath is the path of a request as its client sent it.
func originalPath(r *http.Request) string {
	if before, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		return before.URL.Path
	}
	return r.URL.Path
}

func (l *WaitlistHandler) leave(w http.ResponseWriter, r *http.Request) error {
	a, ok, err := l.asks(w, r)
	if !ok {
		return err
	}
	listing, there := a.listing()
	if !there {
		return caddyhttp.Error(http.StatusNotFound, nil)
	}
	was, err := a.runtime.Withdraw(r.Context(), listing, a.buyer)
	if err != nil {
		return l.later(w, r)
	}
	why := ""
	if was {
		why = "left"
	}
	tell(w, r, http.StatusOK, &told{State: "ended", Why: why})
	return nil
}

// Cleanup releases what Provision has acquired.
func (l *WaitlistHandler) Cleanup() error {
	if l.stop != nil {
		l.stop()
	}
	return l.Close()
}

// Interface guards
var (
	_ caddy.Provisioner           = (*WaitlistHandler)(nil)
	_ caddy.CleanerUpper          = (*WaitlistHandler)(nil)
	_ caddyhttp.MiddlewareHandler = (*WaitlistHandler)(nil)
)
