// Package fast is the listener wrapper stockgate. It answers, at the connection, requests that
// gates refuse from memory. It asks a gate through one method, Gate.Foresee.
package fast

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/internal/accesslog"
	"github.com/stockgate/stockgate/internal/fastpath"
	"github.com/stockgate/stockgate/internal/fastpath/h2"
)

func init() { caddy.RegisterModule(new(Listener)) }

// Listener answers, at the connection, requests that gates with fast_refusals refuse from
// memory, before Caddy's HTTP server reads them: with the same bytes, at many times the
// speed. It takes no arguments: hosts and matchers are those of the gates.
//
// It answers HTTP/1.1 and HTTP/2, with and without TLS. It leaves HTTP/3, and every request that
// it is not sure about, to Caddy. A wrapper for the PROXY protocol belongs before it, and before
// the wrapper tls.
type Listener struct {
	app    *app.App
	log    *zap.Logger
	server *caddyhttp.Server
	access *accesslog.Log
	fast   fastpath.Server
	plan   *RoutePlan // nil: there is nothing to answer
	once   sync.Once
}

// CaddyModule returns the Caddy module information.
func (*Listener) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.listeners.stockgate", New: func() caddy.Module { return new(Listener) }}
}

// Provision finds the app and the server.
func (l *Listener) Provision(ctx caddy.Context) error {
	loaded, err := ctx.AppIfConfigured("stockgate")
	if err != nil {
		return errors.New("the listener wrapper stockgate is there, and no redis is configured: write `stockgate { redis 127.0.0.1:6379 }` in the global options")
	}
	l.app, l.log = loaded.(*app.App), ctx.Logger()
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return errors.New("the listener wrapper stockgate is for HTTP servers")
	}
	l.server, l.access = server, accesslog.New(ctx, server)
	if !l.app.AddListener(server.Name(), l) {
		return errors.New("the listener wrapper stockgate is given twice")
	}
	server.RegisterConnState(l.follow)
	server.RegisterConnContext(withContext)
	server.RegisterOnShutdown(l.fast.Stop)
	return nil
}

// Addresses are those at which the server listens.
func (l *Listener) Addresses() []string { return l.server.Listen }

// WrapListener wraps the connections that ln accepts. Caddy calls it when the server starts
// and all its routes are ready.
func (l *Listener) WrapListener(ln net.Listener) net.Listener {
	l.once.Do(l.prepare)
	if l.plan == nil {
		return ln
	}
	return &sharedListener{ln, l}
}

// prepare compiles the plan.
func (l *Listener) prepare() {
	if why := Unsuited(l.server); why != "" {
		l.log.Warn("no fast refusals on this server: " + why)
		return
	}
	plan := Compile(l.server)
	for _, g := range judge.Of(l.app).List() {
		if g.Server() == l.server && g.FastRefusals != nil && !plan.Reaches(g) {
			l.log.Warn("no fast refusals of this gate: " + plan.Obstacle(g))
		}
	}
	if len(plan.judges) == 0 {
		return
	}
	s := l.server
	plan.access = l.access
	l.plan = plan
	l.fast.Judge = plan
	l.fast.HandshakeFailed = l.handshakeFailed
	l.fast.MaxHead = s.MaxHeaderBytes
	l.fast.HTTP2 = (&h2.Server{Fast: &l.fast}).Share
	l.fast.Timeouts = fastpath.Timeouts{
		Header: time.Duration(s.ReadHeaderTimeout), Request: time.Duration(s.ReadTimeout), Idle: time.Duration(s.IdleTimeout),
		Write: time.Duration(s.WriteTimeout), Response: time.Duration(s.WriteTimeout),
	}
	if s.WriteTimeout <= 0 {
		l.fast.Write = time.Duration(s.WriteIdleTimeout)
	}
}

// Unsuited says why a server's answers cannot be written here; empty: they can.
func Unsuited(s *caddyhttp.Server) string {
	if len(s.ExpectedUnderscoreHeaders)+len(s.ExpectedDotHeaders) > 0 {
		return "it expects header names with underscores or dots"
	}
	if _, known := altSvc(s); !known {
		return "it announces HTTP/3 on ports that are not known before it starts, or on several"
	}
	return ""
}

// StopAnswering leaves all further requests to Caddy's server.
func (l *Listener) StopAnswering() { l.fast.Stop() }

// follow tells a connection what Caddy's server does with it.
func (l *Listener) follow(c net.Conn, s http.ConnState) {
	if conn, _ := sharedConn(c); conn != nil {
		conn.Follow(s)
	}
}

// withContext gives a connection the context of its TLS handshake.
func withContext(ctx context.Context, c net.Conn) context.Context {
	if _, encrypted := sharedConn(c); encrypted != nil {
		encrypted.SetContext(ctx)
	}
	return ctx
}

// handshakeFailed logs what net/http logs.
func (l *Listener) handshakeFailed(c net.Conn, reason string) {
	if entry := caddy.Log().Named("http.stdlib").Check(zap.DebugLevel, "http: TLS handshake error"); entry != nil {
		entry.Write(zap.Stringer("remote_addr", c.RemoteAddr()), zap.String("reason", reason))
	}
}

// sharedListener accepts connections and wraps them.
type sharedListener struct {
	net.Listener
	l *Listener
}

// Accept does not wrap connections that another wrapper has decrypted: how they handshake is not
// known here.
func (f *sharedListener) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if encrypted, ok := c.(*tls.Conn); ok {
		return f.l.fast.WrapTLS(encrypted), nil
	}
	if _, encrypted := c.(interface{ ConnectionState() tls.ConnectionState }); encrypted {
		return c, nil
	}
	return f.l.fast.Wrap(c), nil
}

// UnmarshalCaddyfile reads the wrapper. Syntax:
//
//	stockgate
func (*Listener) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the wrapper's name
	if d.NextArg() {
		return d.Errf("the listener wrapper stockgate takes no arguments, found %q: hosts and matchers are those of the gates with fast_refusals", d.Val())
	}
	if d.NextBlock(d.Nesting()) {
		return d.Errf("the listener wrapper stockgate takes no block")
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner     = (*Listener)(nil)
	_ caddy.ListenerWrapper = (*Listener)(nil)
	_ caddyfile.Unmarshaler = (*Listener)(nil)
)
