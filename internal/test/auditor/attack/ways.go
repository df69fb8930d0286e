package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

var waysPast = scenario{
	name: "ways-past", short: true,
	about: "A shop with one script reads its route from the query as PHP, OpenCart and Express do, takes every method, and has a second door: spellings of the route, queries that cannot be parsed, OPTIONS and spellings of the closed door bring no order without a token",
	run: func(a *attack) {
		var orders, asked atomic.Int64
		lenient := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if isOrder(r) && r.Header.Get("Stockgate-Token") == "" {
				orders.Add(1)
			}
		}))
		a.cleanup = append(a.cleanup, lenient.Close)
		port, err := rig.FreePort()
		a.must(err)
		a.stage(1, rig.Site{Others: fmt.Sprintf(laxSite, port, lenient.Listener.Addr())})
		a.sell("ways", one(1000), "")
		for _, target := range spellings() {
			before := orders.Load()
			status := a.send(port, target)
			if orders.Load() > before {
				a.violated(auditor.ValidToken, "%s came to the shop as an order without a token (%d)", target, status)
			}
			a.count("ways tried", 1)
		}
		for _, target := range []string{"POST /index.php?route=checkout/cart", "GET /index.php?route=product/list&x=%zz", "POST /index.php", "GET /api/orders-of-others"} {
			before := asked.Load()
			if status := a.send(port, target); asked.Load() != before+1 {
				a.violated(auditor.FailClosed, "%s is no order, and was answered with %d", target, status)
			}
		}
		a.settle()
	},
}

// laxSite is a second site of the edge, before a shop that verifies nothing.
const laxSite = `http://:%d {
	bind 127.0.0.1
	@order {
		method POST
		query  route=checkout/confirm
	}
	stockgate_guard {
		close /api/orders
	}
	stockgate @order lax {
		buyer {header.X-User-Id}
		line  {json.sku}
	}
	stockgate /buy* open {
		buyer {header.X-User-Id}
		line  {query.sku}
	}
	reverse_proxy %s
}`

// spellings are requests that some server takes for an order.
func spellings() (all []string) {
	names := []string{"route", "Route", "+route", "%20route", "route%00", "route%00x", "route[]", "route[a]", "%72oute"}
	values := []string{"checkout/confirm", "Checkout/Confirm", "checkout//confirm", "checkout/confirm/", "/checkout/confirm", "checkout%2Fconfirm", "+checkout/confirm", "checkout/con-firm"}
	around := []string{"%s", "%s&x=%%zz", "x=%%&%s", "x=a;b&%s", "%s&x=a;b", "route=x&%s", "&&%s"}
	for _, name := range names {
		for _, value := range values {
			for _, where := range around {
				all = append(all, "POST /index.php?"+fmt.Sprintf(where, name+"="+value))
			}
		}
	}
	for _, door := range []string{"/api/orders", "/api/orders/", "/API/Orders", "/api//orders", "/api/./orders", "/x/../api/orders", "/api/orders;x=y", "/api%2forders", "/index.php/api/orders"} {
		all = append(all, "POST "+door, "PUT "+door)
	}
	return append(all, "OPTIONS /buy?sku=none", "OPTIONS /buy/?+sku=none", "OPTIONS /buy?sku[]=none&x=%zz")
}

// isOrder reads a request as a shop that takes what it gets.
func isOrder(r *http.Request) bool {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	for _, pair := range strings.FieldsFunc(query, func(c rune) bool { return c == '&' || c == ';' }) {
		name, value, _ := strings.Cut(pair, "=")
		name, _, _ = strings.Cut(lax(name), "\x00")
		name, _, _ = strings.Cut(strings.TrimSpace(name), "[")
		value = strings.Trim(strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(lax(value)), "-", ""), "//", "/"), "/")
		if r.Method == http.MethodPost && strings.EqualFold(name, "route") && strings.EqualFold(value, "checkout/confirm") || strings.HasPrefix(path, "/buy") && name == "sku" {
			return true
		}
	}
	path, _, _ = strings.Cut(strings.ToLower(lax(path)), ";")
	path = strings.NewReplacer("//", "/", "/./", "/", "/x/..", "", "/index.php/", "/").Replace(path)
	return strings.TrimSuffix(path, "/") == "/api/orders"
}

// lax decodes what it can.
func lax(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		var c byte
		if n, _ := fmt.Sscanf(s[i:], "%%%02x", &c); n == 1 && i+2 < len(s) {
			out.WriteByte(c)
			i += 2
		} else if s[i] == '+' {
			out.WriteByte(' ')
		} else {
			out.WriteByte(s[i])
		}
	}
	return out.String()
}

// send sends a request as it is written, with an order for its body unless it is OPTIONS, and returns the status
// of the answer.
func (a *attack) send(port int, target string) int {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Minute)
	a.must(err)
	defer conn.Close()
	body := `{"sku":"none"}` // what comes to the gate reserves nothing
	if strings.HasPrefix(target, "OPTIONS") {
		body = ""
	}
	_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: shop\r\nX-User-Id: u-%x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", target, a.counts["ways tried"], len(body), body)
	a.must(err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	a.must(err)
	answer.Body.Close()
	return answer.StatusCode
}
