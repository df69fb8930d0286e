package fast

import (
	"net"
	"reflect"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// sharedConn returns the wrapped connection that Caddy's server reads from, and its TLS. It
// returns nil where an unknown layer, such as TLS of another wrapper, lies between the two: then
// nothing may be answered here.
func sharedConn(c net.Conn) (*fastpath.Conn, *fastpath.TLSConn) {
	const layers = 3 // of Caddy: for the state of TLS, and for HTTP/2's preface where a server must not speak both versions
	for range layers {
		switch conn := c.(type) {
		case *fastpath.Conn:
			return conn, nil
		case *fastpath.TLSConn:
			return conn.Conn, conn
		}
		v := reflect.ValueOf(c)
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct || v.Type().PkgPath() != reflect.TypeFor[caddyhttp.Server]().PkgPath() {
			return nil, nil
		}
		inner := v.FieldByName("Conn")
		if !inner.IsValid() || !inner.CanInterface() {
			return nil, nil
		}
		if c, _ = inner.Interface().(net.Conn); c == nil {
			return nil, nil
		}
	}
	return nil, nil
}
