package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

func init() { caddy.RegisterModule(new(Exit)) }

// Exit is a transport around another one, and the second check: a request for the route of
// a gate does not reach the gate's upstream unless a gate has decided on it. Guards and
// gates put it around the transports of their server; it is not for configurations.
//
// It answers refused requests with 400, never with an error, which would count as a failure
// of the upstream. If the request met no guard, it only counts and logs.
type Exit struct {
	// InnerRaw is the transport that sends the request. Default: http.
	InnerRaw json.RawMessage `json:"inner,omitempty" caddy:"namespace=http.reverse_proxy.transport inline_key=protocol"`

	inner http.RoundTripper
	cgi   bool // it passes the target that the client sent to the upstream
	exits exits
	log   *zap.Logger
	said  atomic.Int64 // when it was last logged, in seconds
}

// CaddyModule returns the Caddy module information.
func (*Exit) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.reverse_proxy.transport.stockgate", New: func() caddy.Module { return new(Exit) }}
}

// Provision loads the inner transport.
func (t *Exit) Provision(ctx caddy.Context) error {
	if t.InnerRaw == nil {
		t.InnerRaw = json.RawMessage(`{"protocol":"http"}`)
	}
	inner, err := ctx.LoadModule(t, "InnerRaw")
	if err != nil {
		return fmt.Errorf("loading the transport: %w", err)
	}
	server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	t.around(inner.(http.RoundTripper), server, ctx.Logger())
	return nil
}

// NewExit returns the second check around a transport of a server's reverse_proxy.
func NewExit(inner http.RoundTripper, server *caddyhttp.Server, log *zap.Logger) *Exit {
	t := new(Exit)
	t.around(inner, server, log)
	return t
}

// around puts t around a transport.
func (t *Exit) around(inner http.RoundTripper, server *caddyhttp.Server, log *zap.Logger) {
	t.inner, t.exits.server, t.log = inner, server, log
	if m, ok := inner.(caddy.Module); ok {
		t.cgi = strings.HasSuffix(string(m.CaddyModule().ID), ".fastcgi")
	}
}

// RoundTrip sends a request, unless it is for a gate that it has not met.
func (t *Exit) RoundTrip(r *http.Request) (*http.Response, error) {
	_, clients := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	far := PassageOf(r)
	if !clients || far == passageDecided { // active health checks start before all routes are provisioned
		return t.inner.RoundTrip(r)
	}
	if t, ok := r.Context().Value(turnKey{}).(turn); ok && !t.asks(r) {
		return lostItsWay(r), nil
	}
	g := t.exits.around(r, t.cgi)
	if g == nil {
		return t.inner.RoundTrip(r)
	}
	if g.door { // closed on purpose, and its guard has let the request pass
		meter.CountAttempt("", "refused", sale.ClosedDoor)
		return refusedExit(g, r, refuse.ClosedDoor)
	}
	t.tell(r, g, far == passageGuarded)
	if far != passageGuarded {
		return t.inner.RoundTrip(r)
	}
	return refusedExit(g, r, &sale.Refusal{Reason: sale.Malformed, Detail: whyRoute})
}

// tell counts a request, and logs at most one a second.
func (t *Exit) tell(r *http.Request, g *Gate, refused bool) {
	what := "passed"
	if refused {
		what = "refused"
	}
	meter.All().Around.WithLabelValues(what).Inc()
	now := time.Now().Unix()
	if last := t.said.Load(); last == now || !t.said.CompareAndSwap(last, now) {
		return
	}
	t.log.Warn("around: a request for a gated route leaves for the upstream, and no gate has decided on it; find out which route or rewrite it has taken, "+
		"and put the gate before that one too (more of them in this second are only counted)",
		zap.String("gate", g.Name), zap.String("request", what), zap.String("method", r.Method), zap.String("path", cut(r.URL.Path, 256)))
}

// turnKey is the context key of orders whose turn has come.
type turnKey struct{}

// turn is what is known of the order itself.
type turn struct {
	read  bool // its method is GET or HEAD
	marks bool // it has a header by which forward_auth tells what it asks about
}

// markHeader is set by forward_auth.
const markHeader = "X-Forwarded-Method"

// WithTurn marks the request of an order that has waited, with its own method and header: it leaves
// for no upstream before its gate has it. The site's routes may have changed since.
func WithTurn(ctx context.Context, method string, h http.Header) context.Context {
	return context.WithValue(ctx, turnKey{}, turn{isRead(method), h.Get(markHeader) != ""})
}

// asks reports whether a request only asks who the buyer is, as logins do: it reads, and has no body. If
// the order itself is such a request, it must be one of forward_auth, which says so.
func (t turn) asks(r *http.Request) bool {
	return r.ContentLength == 0 && isRead(r.Method) && (!t.read || !t.marks && r.Header.Get(markHeader) != "")
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// lostItsWay is the answer to an order that does not pass its gate. There is no client to read it.
func lostItsWay(r *http.Request) *http.Response {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return &http.Response{
		Status: "Misdirected Request", StatusCode: http.StatusMisdirectedRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header), Body: http.NoBody, Request: r,
	}
}

func cut(s string, most int) string { return s[:min(len(s), most)] }

// refusedExit returns the answer that replaces the upstream's.
func refusedExit(g *Gate, r *http.Request, no *sale.Refusal) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	status, h, body := g.Refuser.Response(r, no)
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// These are the optional interfaces that reverse_proxy looks for in transports. If the
// inner transport lacks one, the method returns what reverse_proxy then assumes.

// ProxyProtocolEnabled implements reverseproxy.ProxyProtocolTransport.
func (t *Exit) ProxyProtocolEnabled() bool {
	in, ok := t.inner.(reverseproxy.ProxyProtocolTransport)
	return ok && in.ProxyProtocolEnabled()
}

// RequiresContentLength implements reverseproxy.ContentLengthRequiredTransport.
func (t *Exit) RequiresContentLength() bool {
	in, ok := t.inner.(reverseproxy.ContentLengthRequiredTransport)
	return ok && in.RequiresContentLength()
}

// DefaultBufferSizes implements reverseproxy.BufferedTransport.
func (t *Exit) DefaultBufferSizes() (request, response int64) {
	if in, ok := t.inner.(reverseproxy.BufferedTransport); ok {
		return in.DefaultBufferSizes()
	}
	return 0, 0
}

// RequestHeaderOps implements reverseproxy.RequestHeaderOpsTransport.
func (t *Exit) RequestHeaderOps() *headers.HeaderOps {
	if in, ok := t.inner.(reverseproxy.RequestHeaderOpsTransport); ok {
		return in.RequestHeaderOps()
	}
	return nil
}

// OverrideHealthCheckScheme implements reverseproxy.HealthCheckSchemeOverriderTransport.
func (t *Exit) OverrideHealthCheckScheme(base *url.URL, port string) {
	if in, ok := t.inner.(reverseproxy.HealthCheckSchemeOverriderTransport); ok {
		in.OverrideHealthCheckScheme(base, port)
	}
}

// TLSEnabled implements reverseproxy.TLSTransport.
func (t *Exit) TLSEnabled() bool {
	in, ok := t.inner.(reverseproxy.TLSTransport)
	return ok && in.TLSEnabled()
}

// EnableTLS implements reverseproxy.TLSTransport.
func (t *Exit) EnableTLS(base *reverseproxy.TLSConfig) error {
	if in, ok := t.inner.(reverseproxy.TLSTransport); ok {
		return in.EnableTLS(base)
	}
	return errors.New("the transport has no TLS")
}

// EnableH2C implements reverseproxy.H2CTransport.
func (t *Exit) EnableH2C() error {
	if in, ok := t.inner.(reverseproxy.H2CTransport); ok {
		return in.EnableH2C()
	}
	return errors.New("the transport has no HTTP/2 without TLS")
}

// CloseIdleConnections is the optional method that net/http looks for in transports.
func (t *Exit) CloseIdleConnections() {
	if in, ok := t.inner.(interface{ CloseIdleConnections() }); ok {
		in.CloseIdleConnections()
	}
}

// Interface guards
var (
	_ caddy.Provisioner                                = (*Exit)(nil)
	_ http.RoundTripper                                = (*Exit)(nil)
	_ reverseproxy.ProxyProtocolTransport              = (*Exit)(nil)
	_ reverseproxy.ContentLengthRequiredTransport      = (*Exit)(nil)
	_ reverseproxy.BufferedTransport                   = (*Exit)(nil)
	_ reverseproxy.RequestHeaderOpsTransport           = (*Exit)(nil)
	_ reverseproxy.HealthCheckSchemeOverriderTransport = (*Exit)(nil)
	_ reverseproxy.TLSTransport                        = (*Exit)(nil)
	_ reverseproxy.H2CTransport                        = (*Exit)(nil)
)
