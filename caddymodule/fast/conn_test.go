package fast_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// shopSites lead to a shop that tells who it was asked by.
func shopSites(shop string) string {
	return `
SITEshop.example.comPORT {
	stockgate_guard
	stockgate /buy* shop {
		buyer {header.X-User-Id}
		line {query.sku}
		rate {query.key} 3 24h
		FAST
	}
	reverse_proxy ` + shop + `
}
`
}

func buy(sku, buyer, key string) string {
	return fmt.Sprintf("GET /buy?sku=%s&key=%s HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: %s\r\n\r\n", sku, key, buyer)
}

// first is the first line of each answer.
func first(answers string) (lines []string) {
	for line := range strings.Lines(answers) {
		if strings.HasPrefix(line, "HTTP/1.1 ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestOneConnection mixes refused, accepted and foreign requests on connections, one
// after the other and all at once: each is answered once, in its order.
func TestOneConnection(t *testing.T) {
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body)
	})
	for _, protocols := range []string{"", "protocols h1"} {
		s := sitetest.OpenFast(t, protocols, shopSites(shop.Addr()))
		const refused, accepted, foreign, posted = "HTTP/1.1 409 Conflict", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK"
		var requests, want []string
		for i := range 20 {
			hidden := buy("soon", "smuggled", "x")
			requests = append(requests, buy("soon", "u", fmt.Sprint("k", i)), buy("plain", fmt.Sprint("u", i, protocols), fmt.Sprint("k", i)),
				"GET /page HTTP/1.1\r\nHost: shop.example.com\r\n\r\n",
				fmt.Sprintf("POST /page HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: %d\r\n\r\n%s", len(hidden), hidden))
			want = append(want, refused, accepted, foreign, posted)
		}
		check := func(how string, c *sitetest.RawConn) {
			t.Helper()
			answers := c.Answers(len(want))
			if got := first(answers); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s: got %q", how, got)
			}
			if got := shop.Take(); len(got) != 60 {
				t.Errorf("%s: the shop got %d requests", how, len(got))
			}
		}
		before := s.FastAnswers()
		c := s.Open(s.Fast)
		_, _ = io.WriteString(c, strings.Join(requests, ""))
		check("pipelined", c)
		if got := s.FastAnswers() - before; got != 20 {
			t.Errorf("%d were answered by the wrapper, want 20", got)
		}
		for i := range requests { // others may buy no more from here
			requests[i] = strings.NewReplacer("sku=plain", "sku=two", "&key=k", "&key=l").Replace(requests[i])
			if want[i] == accepted && strings.Contains(requests[i], "sku=two") {
				want[i] = "HTTP/1.1 404 Not Found" // it has regions
			}
		}
		c = s.Open(s.Fast)
		var answers strings.Builder
		for _, request := range requests {
			_, _ = io.WriteString(c, request)
			answers.WriteString(c.Answers(1))
		}
		if got := first(answers.String()); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("one by one: got %q", got)
		}
		shop.Take()
		if err := caddy.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFastRatesCountOnce sends attempts that the wrapper refuses, that it lets through
// and that a rate refuses: each counts once.
func TestFastRatesCountOnce(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenFast(t, "", shopSites(shop.Addr()))
	ask := func(sku, key string) (status string, fast bool) {
		before := s.FastAnswers()
		answer := s.Raw(s.Fast, buy(sku, "u"+key+sku, key), 1)
		return first(answer)[0][len("HTTP/1.1 "):], s.FastAnswers() > before
	}
	for i, c := range []struct {
		sku, key, status string
		fast             bool
	}{
		{"soon", "a", "409 Conflict", true},
		{"plain", "a", "201 Created", false},
		{"soon", "a", "409 Conflict", true},
		{"soon", "a", "429 Too Many Requests", true},
		{"plain", "a", "429 Too Many Requests", true},
		{"plain", "b", "201 Created", false},
		{"few", "b", "201 Created", false},
		{"nope", "b", "404 Not Found", true},
		{"two", "b", "429 Too Many Requests", true},
	} {
		if status, fast := ask(c.sku, c.key); status != c.status || fast != c.fast {
			t.Errorf("%d: %s %s: %s, fast %t; want %s, %t", i, c.sku, c.key, status, fast, c.status, c.fast)
		}
	}
	// the bytes of a rate's refusal
	for range 4 {
		s.Raw(s.Plain, buy("soon", "u", "c"), 1)
	}
	if answer, fast := s.Same(buy("soon", "u", "c")); !fast || !strings.Contains(answer, `Ratelimit: "shop-1";r=0;t=`) {
		t.Errorf("fast %t: %s", fast, answer)
	}
}

// addressSites count by the client's address.
const addressSites = `
SITEshop.example.comPORT {
	stockgate /buy ip {
		buyer {header.X-User-Id}
		line {query.sku}
		identity ip {client_ip}
		rate {client_ip} 1 24h
		FAST
	}
	respond 201
}
`

// TestFastClientIP has balancers in front that send the client's address.
func TestFastClientIP(t *testing.T) {
	ask := func(s *sitetest.FastSite, addr, before, from string) string {
		return first(s.Raw(addr, before+"GET /buy?sku=soon HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u\r\n"+from+"\r\n", 1))[0]
	}
	t.Run("trusted proxies", func(t *testing.T) {
		s := sitetest.OpenFast(t, "trusted_proxies static 127.0.0.0/8\nclient_ip_headers X-Real-IP X-Forwarded-For", addressSites)
		for i := range 3 {
			from := fmt.Sprintf("X-Forwarded-For: 192.0.2.%d\r\n", i)
			if got := ask(s, s.Fast, "", from); !strings.Contains(got, "409") {
				t.Errorf("%s: %s", from, got)
			}
			if got := ask(s, s.Plain, "", from); !strings.Contains(got, "429") {
				t.Errorf("%s, again: %s", from, got)
			}
		}
		if s.FastAnswers() == 0 {
			t.Error("the wrapper has answered nothing")
		}
	})
	t.Run("no trusted proxy", func(t *testing.T) {
		s := sitetest.OpenFast(t, "", addressSites)
		if got := ask(s, s.Plain, "", "X-Forwarded-For: 192.0.2.1\r\n"); !strings.Contains(got, "409") {
			t.Error(got)
		}
		if got := ask(s, s.Fast, "", "X-Forwarded-For: 192.0.2.2\r\n"); !strings.Contains(got, "429") {
			t.Error(got)
		}
	})
	t.Run("PROXY protocol", func(t *testing.T) {
		s := sitetest.OpenFast(t, "", addressSites)
		s.Move()
		// Caddy's own wrapper before ours
		sites := strings.NewReplacer("SITE", "http://", "PORT", ":"+portOf(s.Fast), "FAST", "fast_refusals").Replace(addressSites)
		if err := s.LoadText("servers {\nlistener_wrappers {\nproxy_protocol {\nallow 127.0.0.0/8\n}\nstockgate\n}\n}\n", sites); err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{"192.0.2.71", "192.0.2.72"} {
			proxy := "PROXY TCP4 " + from + " 192.0.2.1 1000 80\r\n"
			before := s.FastAnswers()
			if got := ask(s, s.Fast, proxy, ""); !strings.Contains(got, "409") || s.FastAnswers() == before {
				t.Errorf("%s: %s", from, got)
			}
			if got := ask(s, s.Fast, proxy, ""); !strings.Contains(got, "429") {
				t.Errorf("%s, again: %s", from, got)
			}
		}
	})
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// TestFastReload loads another configuration while connections are open: none of them
// gets an answer of the old gate again.
func TestFastReload(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	sites := shopSites(shop.Addr())
	s := sitetest.OpenFast(t, "", sites)
	idle, busy := s.Open(s.Fast), s.Open(s.Fast)
	for _, c := range []*sitetest.RawConn{idle, busy} {
		_, _ = io.WriteString(c, buy("soon", "u", "r"))
		if got := first(c.Answers(1)); got[0] != "HTTP/1.1 409 Conflict" {
			t.Fatal(got)
		}
	}
	_, _ = io.WriteString(busy, "GET /buy?sku=soon&key=r HTTP/1.1\r\nHost: shop") // half of a head
	before := app.Active()
	if err := s.LoadFastAt("", strings.Replace(sites, "FAST", "FAST\nrefuse not_started 200 later", 1), portOf(s.Fast), portOf(s.Plain)); err != nil {
		t.Fatal(err)
	}
	if app.Active() == before {
		t.Fatal("nothing was loaded")
	}
	if rest, err := io.ReadAll(idle); len(rest) > 0 || err != nil {
		t.Errorf("the idle connection got %q, %v; want its end", rest, err)
	}
	_, _ = io.WriteString(busy, ".example.com\r\nX-User-Id: u\r\n\r\n")
	if rest, _ := io.ReadAll(busy); bytes.Contains(rest, []byte("409")) {
		t.Errorf("the old gate says %q", rest)
	}
	got := ""
	sitetest.Until(t, "an answer", func() bool { // a server that is about to stop may take a connection, and drop it
		conn, err := net.Dial("tcp", s.Fast)
		if err != nil {
			return false
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		c := &sitetest.RawConn{T: t, Conn: conn}
		c.R = bufio.NewReader(conn)
		_, _ = io.WriteString(c, buy("soon", "u", "s"))
		got = c.Answers(1)
		return got != ""
	})
	if !strings.HasSuffix(got, "later") {
		t.Errorf("the new gate says %q", got)
	}
}

// TestFastUnderLoad reloads and refuses at once, for the race detector: every answer is
// whole, and of one of the two configurations.
func TestFastUnderLoad(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	sites := shopSites(shop.Addr())
	s := sitetest.OpenFast(t, "", sites)
	addr, stop := s.Fast, make(chan struct{})
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				c, err := net.Dial("tcp", addr)
				if err != nil {
					continue
				}
				r := &sitetest.RawConn{T: t, Conn: c}
				r.R = bufio.NewReader(c)
				for range 50 {
					if _, err := io.WriteString(c, buy("soon", "u", fmt.Sprint(i, n))+buy("nope", "u", fmt.Sprint(i, n))); err != nil {
						break
					}
					got := r.Answers(2)
					if bad := strings.ReplaceAll(got, "HTTP/1.1 4", ""); strings.Contains(bad, "HTTP/1.1") {
						t.Errorf("got %q", got)
					}
				}
				_ = c.Close()
			}
		})
	}
	for range 5 {
		if err := s.LoadFastAt("", sites, portOf(s.Fast), portOf(s.Plain)); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	clients.Wait()
}

// TestFastWinnerRetries buys the only unit with an idempotency key. Later buyers are told that
// it is sold out, and the winner gets their own answer, whatever the wrapper remembers.
func TestFastWinnerRetries(t *testing.T) {
	s := sitetest.OpenFast(t, "", `
SITEsell.example.comPORT {
	stockgate /buy sell {
		buyer {header.X-User-Id}
		line {query.sku}
		idempotency {header.Idempotency-Key}
		FAST
	}
	respond 201
}
`)
	ask := func(buyer, key string) (answer string, fast bool) {
		before := s.FastAnswers()
		answer = s.Raw(s.Fast, "GET /buy?sku=out HTTP/1.1\r\nHost: sell.example.com\r\nX-User-Id: "+buyer+"\r\nIdempotency-Key: "+key+"\r\n\r\n", 1)
		return answer, s.FastAnswers() > before
	}
	if got, _ := ask("winner", "k1"); !strings.HasPrefix(got, "HTTP/1.1 201") {
		t.Fatal(got)
	}
	for range 3 {
		s.SellOut()
		if got, fast := ask("winner", "k1"); fast || !strings.Contains(got, "Stockgate-Replayed: true") {
			t.Errorf("the winner hears, fast %t: %s", fast, got)
		}
		if got, _ := ask("winner", "k2"); !strings.Contains(got, "sold_out") {
			t.Errorf("the winner with another key gets: %s", got)
		}
		if got, _ := ask("other", "k1"); !strings.Contains(got, "sold_out") {
			t.Errorf("another buyer gets: %s", got)
		}
	}
	if s.FastAnswers() == 0 {
		t.Error("the wrapper has answered nothing")
	}
}
