package gate

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
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
// Its options are the options of the gate that read and judge an attempt: lines and buyer are required. With other_items
// pass, items that no sale lists are left out of a cart: one that is listed must be left.
type WaitlistHandler struct {
	AttemptOptions
	// Lookup asks the shop, in the buyer's name, what is in the cart of a person who enters. Default: the request says it.
	Lookup *inquiry.Spec `json:"lookup,omitempty"`
	// Ref names the cart for a lookup whose URL or body has {ref}. Default: none.
	Ref []string `json:"ref,omitempty"`

	Judge `json:"-"`
}

// CaddyModule returns the Caddy module information.
func (*WaitlistHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.stockgate_waitlist", New: func() caddy.Module { return new(WaitlistHandler) }}
}

// Provision compiles the options.
func (l *WaitlistHandler) Provision(ctx caddy.Context) error {
	return l.inSite(ctx, l.provision(ctx))
}

func (l *WaitlistHandler) provision(ctx caddy.Context) error {
	l.bind()
	if err := l.conflict(); err != nil {
		return err
	}
	keys, err := l.open(ctx)
	if err != nil {
		return err
	}
	if err := l.provisionFilters(); err != nil {
		return err
	}
	if err := l.openLimits(keys); err != nil {
		return err
	}
	if err := l.openServer(ctx, false); err != nil {
		return err
	}
	guard.WatchExits(ctx, l.server)
	l.compileRules()
	return Of(l.app).add(&l.Judge)
}

// errNoBuyer says that all clients would be one person.
var errNoBuyer = errors.New("stockgate_waitlist needs buyer: say who waits, as the gate does, such as `buyer {http.auth.user.id}`")

// bind gives the judge the options of the waiting list.
func (l *WaitlistHandler) bind() {
	l.Judge.AttemptOptions, l.names, l.enters = &l.AttemptOptions, names{Lookup: l.Lookup, Ref: l.Ref}, true
}

// conflict is as for a check; besides, the list must know who waits.
func (l *WaitlistHandler) conflict() error {
	if len(l.Buyer) == 0 {
		return errNoBuyer
	}
	for option, there := range map[string]bool{"one_at_a_time": l.OneAtATime != nil, "fast_refusals": l.FastRefusals != nil, "max_in_flight": l.MaxInFlight != 0} {
		if there {
			return errors.New(option + " is no option of stockgate_waitlist: write it at the gate")
		}
	}
	if len(l.Ref) > 0 && l.Lookup == nil {
		return errors.New("ref needs lookup: at stockgate_waitlist it only names the cart about which the shop is asked")
	}
	return l.Judge.conflict()
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
	p := &purchase{visit: l.visit(w, r)}
	if l.bypass.State() != app.BypassOff {
		return l.refuse(w, r, "", p.began, refuse.Unavailable)
	}
	if over, err := l.meet(w, r, next, p); over {
		return err
	}
	if p.scope != scope.Attempt || p.unlisted {
		return l.refuse(w, r, "", p.began, sale.Refuse(sale.UnknownItem))
	}
	entered, no, err := p.runtime.Enter(r.Context(), p.listing, p.attempt, p.lines)
	switch {
	case errors.Is(err, edge.ErrNoWaitlist), errors.Is(err, edge.ErrOneItem), errors.Is(err, edge.ErrBundle):
		no = &sale.Refusal{Reason: sale.Malformed, Detail: err.Error()}
	case err != nil:
		no = refuse.Unavailable
	}
	if no != nil {
		return l.refuse(w, r, p.saleID(), p.began, no)
	}
	ticket, err := p.runtime.WaitTicket(p.saleID(), p.runtime.BuyerHash(p.attempt))
	if err != nil {
		return l.refuse(w, r, p.saleID(), p.began, refuse.Unavailable)
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
	line, _ := p.listing.Sale.LineOf(entered.Cell)
	return tell(w, r, status, told{State: state, SKU: line.SKU, Region: line.Region, Quantity: entered.Quantity})
}

// originalPath is the path of a request as its client sent it.
func originalPath(r *http.Request) string {
	if before, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		return before.URL.Path
	}
	return r.URL.Path
}

// told is where a person stands.
type told struct {
	// State is waiting, offered or ended.
	State    string `json:"state"`
	SKU      string `json:"sku,omitempty"`
	Region   string `json:"region,omitempty"`
	Quantity int64  `json:"quantity,omitempty"`
	// Place counts from 1. About is in seconds, by the pace of the last minutes; absent: no offer was made lately.
	Place int   `json:"place,omitempty"`
	About int64 `json:"about,omitempty"`
	// Until is when an offer ends, Now the time of the edge; absent: in a pause, which does not count.
	Until time.Time `json:"until,omitzero"`
	Now   time.Time `json:"now,omitzero"`
	// Why says how it has ended: accepted, lapsed, left, closed, or a reason of a refusal. Absent: it is not known.
	Why string `json:"why,omitempty"`
}

func tell(w http.ResponseWriter, r *http.Request, status int, t told) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	body = append(body, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that has left does not matter
	}
	return nil
}

// asker is who asks at a place: the sale, and the hash of the buyer.
type asker struct {
	runtime *edge.Edge
	listing *edge.Listing
	buyer   string
}

// isOver reports whether the sale will make no offers any more.
func (a *asker) isOver() bool {
	no := a.listing.Sale.RefusalAt(a.listing.Status, a.listing.Now())
	return no != nil && (no.Reason == sale.ClosedSale || no.Reason == sale.Ended)
}

// asks reads the place in a path. ok is false where the request has its answer.
func (l *WaitlistHandler) asks(w http.ResponseWriter, r *http.Request) (a asker, ok bool, err error) {
	d := l.openRuntime(r, false)
	if d == nil {
		return a, false, l.later(w, r)
	}
	ticket := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	saleID, buyer, known := d.ReadWaitTicket(ticket)
	listing, there := d.Catalogue().Sale(saleID)
	if !known || !there {
		return a, false, caddyhttp.Error(http.StatusNotFound, nil)
	}
	return asker{d.Edge, listing, buyer}, true, nil
}

// later answers while it is not known where a person stands.
func (l *WaitlistHandler) later(w http.ResponseWriter, r *http.Request) error {
	return l.refuse(w, r, "", time.Now(), refuse.Unavailable)
}

// pollAfter is the least time in seconds between two questions of a person, and pollsPerSecond how many questions
// of all may come to all edges.
const pollAfter, pollsPerSecond = 2, 30_000

func (l *WaitlistHandler) show(w http.ResponseWriter, r *http.Request) error {
	a, ok, err := l.asks(w, r)
	if !ok {
		return err
	}
	p, found, known := a.runtime.Waiting(a.listing, a.buyer)
	switch {
	case !known:
		return l.later(w, r)
	case !found || p.Ended != "":
		return tell(w, r, http.StatusOK, told{State: "ended", Why: p.Ended})
	case !p.Entry.Offered && a.isOver():
		return tell(w, r, http.StatusOK, told{State: "ended", Why: "closed"})
	}
	line, _ := a.listing.Sale.LineOf(p.Entry.Cell)
	t := told{State: "waiting", SKU: line.SKU, Region: line.Region, Quantity: p.Entry.Quantity, Place: p.Place, About: int64(p.About / time.Second)}
	if p.Entry.Offered {
		t.State, t.Now = "offered", a.listing.Now().UTC().Truncate(time.Second)
		if a.listing.Status != sale.Paused {
			t.Until = p.Entry.Until
		}
	}
	wait := max(pollAfter, int64(p.Of)/pollsPerSecond)
	w.Header().Set("Retry-After", strconv.FormatInt(wait+refuse.Spread(wait), 10))
	return tell(w, r, http.StatusOK, t)
}

func (l *WaitlistHandler) leave(w http.ResponseWriter, r *http.Request) error {
	a, ok, err := l.asks(w, r)
	if !ok {
		return err
	}
	was, err := a.runtime.Withdraw(r.Context(), a.listing, a.buyer)
	if err != nil {
		return l.later(w, r)
	}
	why := ""
	if was {
		why = "left"
	}
	return tell(w, r, http.StatusOK, told{State: "ended", Why: why})
}

// Cleanup releases what Provision has acquired.
func (l *WaitlistHandler) Cleanup() error { return l.close() }

// ReadWaitlistDirective reads a stockgate_waitlist, with the warnings of a gate.
func ReadWaitlistDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // the directive's name
	at := *h.Dispenser
	warn := directive.NewWarner(&h, "stockgate_waitlist")
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, h.WrapErr(err)
	}
	list := new(WaitlistHandler)
	if err := list.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	list.bind()
	if err := checkLists(h, &list.Judge); err != nil {
		return nil, err
	}
	trial := new(WaitlistHandler)
	if err := reread(list, trial); err != nil {
		return nil, err
	}
	trial.bind()
	if err := trial.readGlobal(h); err != nil {
		return nil, err
	}
	if err := trial.checkReading(); err != nil {
		return nil, directive.WrapOption(at, err)
	}
	if _, err := trial.newRefuser(); err != nil {
		return nil, directive.WrapOption(at, err)
	}
	warnRisks(warn, &trial.Judge, matchers)
	warnGuard(warn)
	return h.NewRoute(matchers, list), nil
}

// UnmarshalCaddyfile reads a stockgate_waitlist. Syntax:
//
//	stockgate_waitlist [<matcher>] [<name>] {
//		graphql   [query.]<field> [<argument> <value...>]
//		json_body <path> [<value...>]
//		persisted <file>
//		line     <sku> [<quantity> [absent 0|1]]
//		lines    <array> <sku-field> [<quantity-field>]
//		buyer    <value...>
//		identity phone|email|address|device|ip <value...>
//		jwt      …
//		sale     <value...>
//		region   <value...>
//		deny     <list...>
//		allow    <list...>
//		rate     …
//		challenge pow { … }
//		other_items refuse|pass
//		lookup   [GET|POST] <url> [<body>] { … }
//		ref      <value...>
//		max_body <size>
//		body     checked|ignored
//		also_query <parameter[=prefix]...>
//		refuse   …
//		messages …
//	}
//
// The options are the gate's.
func (l *WaitlistHandler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		l.Name = d.Val()
	}
	if d.NextArg() {
		return d.Errf("stockgate_waitlist takes a matcher and a name, found %q after them", d.Val())
	}
	at := *d
	options := l.directives()
	for _, not := range []string{"one_at_a_time", "max_in_flight", "fast_refusals", "websockets"} {
		delete(options, not)
	}
	options["lookup"] = directive.Option{Usage: inquiry.LookupUsage, Read: inquiry.ReadLookup(&l.Lookup)}
	options["ref"] = directive.Option{Usage: "ref <value...>", Read: directive.Texts(&l.Ref)}
	if err := directive.ReadBlock(d, options); err != nil {
		return err
	}
	l.bind()
	return directive.WrapOption(at, l.conflict())
}

// Interface guards
var (
	_ caddy.Provisioner           = (*WaitlistHandler)(nil)
	_ caddy.CleanerUpper          = (*WaitlistHandler)(nil)
	_ caddyhttp.MiddlewareHandler = (*WaitlistHandler)(nil)
	_ caddyfile.Unmarshaler       = (*WaitlistHandler)(nil)
)
