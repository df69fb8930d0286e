package fast_test

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/internal/fastpath"
)

// endless is a connection on which the same request comes again and again.
type endless struct {
	net.Conn
	request []byte
	left    int
	written int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	e.left--
	return copy(p, e.request), nil
}

func (e *endless) Write(p []byte) (int, error) {
	e.written++
	return len(p), nil
}

func (*endless) SetReadDeadline(time.Time) error  { return nil }
func (*endless) SetWriteDeadline(time.Time) error { return nil }
func (*endless) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 1} }
func (*endless) Close() error                     { return nil }

// accepted is a listener that accepts one connection again and again.
type accepted struct {
	net.Listener
	conn net.Conn
}

func (a accepted) Accept() (net.Conn, error) { return a.conn, nil }

// refuses returns how many times the wrapper answers a request, up to a bound.
func refuses(t *testing.T, request string, times int) (int, error) {
	e := &endless{request: []byte(request), left: times}
	wrapped, err := fastListener(accepted{conn: e}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := wrapped.(*fastpath.Conn)
	c.Follow(http.StateNew)
	_, err = c.Read(make([]byte, 14))
	c.Follow(http.StateClosed)
	if err != io.EOF {
		return 0, err
	}
	return e.written, nil
}

const benchSites = `
SITEshop.example.comPORT {
	@post {
		method POST
		path /api/order
	}
	@get {
		method GET
		path /buy
	}
	stockgate_guard
	stockgate @post post {
		sale {query.sale}
		buyer {header.X-User-Id}
		line {json.sku} {json.quantity}
		FAST
	}
	stockgate @get get {
		buyer {header.X-User-Id}
		line {query.sku} {query.quantity}
		FAST
	}
	stockgate /rated rated {
		buyer {header.X-User-Id}
		line {query.sku}
		rate {header.X-User-Id} 1 24h
		rate {client_ip} 1000000 1ms
		FAST
	}
	stockgate /asked asked {
		buyer {header.X-User-Id}
		line {query.sku}
		challenge pow {
			above 1 1h
		}
		FAST
	}
	respond 201
}
`

// common are headers that browsers and balancers send.
const common = "Host: shop.example.com\r\nUser-Agent: wrk\r\nAccept: */*\r\nX-Forwarded-For: 203.0.113.9\r\nX-User-Id: u-1000\r\n"

var benchRequests = map[string]string{
	"post sold out":    "POST /api/order HTTP/1.1\r\n" + common + "Content-Type: application/json\r\nContent-Length: 28\r\n\r\n" + `{"sku":"out","quantity":"1"}`,
	"post not started": "POST /api/order HTTP/1.1\r\n" + common + "Content-Type: application/json\r\nContent-Length: 29\r\n\r\n" + `{"sku":"soon","quantity":"1"}`,
	"get sold out":     "GET /buy?sku=out&quantity=1 HTTP/1.1\r\n" + common + "\r\n",
	"get not started":  "GET /buy?sku=soon&quantity=1 HTTP/1.1\r\n" + common + "\r\n",
	"lower case":       "GET /buy?sku=out HTTP/1.1\r\nhost: shop.example.com\r\nx-user-id: u-1000\r\naccept: */*\r\n\r\n",
	"challenged":       "GET /asked?sku=out HTTP/1.1\r\n" + common + "\r\n",
	"unsolved":         "GET /asked?sku=out HTTP/1.1\r\n" + common + "Challenge-Solution: 1.29922822.12.m3dcvjboznogLx4-19Bj_w.1.2.3.4\r\n\r\n",
	"rate limited":     "GET /rated?sku=out HTTP/1.1\r\n" + common + "\r\n",
}

// fastListener wraps ln as the running configuration's only wrapper does; ln itself: it answers nothing.
func fastListener(ln net.Listener) net.Listener {
	for _, l := range app.Active().Listeners() {
		ln = l.(caddy.ListenerWrapper).WrapListener(ln)
	}
	return ln
}
