package fast

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// connWatcher is a listener wrapper that wraps connections like Listener, and tells which of
// them sharedConn finds where Caddy's server reports a state.
type connWatcher struct{}

// watched is a connection as sharedConn finds it, and its type at Caddy's server.
type watched struct {
	found *fastpath.Conn
	kind  string
}

var (
	watchedConns     = make(chan watched, 1)
	watchedListeners = make(chan net.Addr, 1)
)

func (connWatcher) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.listeners.stockgate_test", New: func() caddy.Module { return new(connWatcher) }}
}

func (connWatcher) Provision(ctx caddy.Context) error {
	ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server).RegisterConnState(func(c net.Conn, s http.ConnState) {
		if s == http.StateNew {
			found, _ := sharedConn(c)
			watchedConns <- watched{found, fmt.Sprintf("%T", c)}
		}
	})
	return nil
}

func (connWatcher) WrapListener(ln net.Listener) net.Listener {
	watchedListeners <- ln.Addr()
	return &sharedListener{ln, new(Listener)}
}

// Caddy's server reports a connection as it is, or wraps it to look for HTTP/2's preface:
// sharedConn finds it in both. With another Caddy there would be no fast refusals where a server
// speaks HTTP/1.1 only, and no message about it.
func TestSharedConn(t *testing.T) {
	caddy.RegisterModule(connWatcher{})
	for protocols, wraps := range map[string]bool{`["h1","h2c"]`: false, `["h1"]`: true} {
		err := caddy.Load(fmt.Appendf(nil, `{
			"admin": {"disabled": true, "config": {"persist": false}},
			"apps": {"http": {"servers": {"s": {
				"listen": ["127.0.0.1:0"], "protocols": %s, "automatic_https": {"disable": true},
				"listener_wrappers": [{"wrapper": "stockgate_test"}]
			}}}}
		}`, protocols), true)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", (<-watchedListeners).String())
		if err != nil {
			t.Fatal(err)
		}
		w := <-watchedConns
		if w.found == nil {
			t.Errorf("%s: Caddy's server has a connection of type %s, in which the wrapped one is not found", protocols, w.kind)
		}
		if (w.kind != "*fastpath.Conn") != wraps {
			t.Errorf("%s: Caddy's server has a connection of type %s: this case no longer shows what it is for", protocols, w.kind)
		}
		c.Close()
		if err := caddy.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if conn, _ := sharedConn(struct{ net.Conn }{}); conn != nil {
		t.Errorf("an unknown layer has %v", conn)
	}
}
