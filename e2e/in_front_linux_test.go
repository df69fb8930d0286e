package e2e_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// proxyAddress is from where nginx connects to edges, and originSecret what it presents to them.
const (
	proxyAddress = "127.0.0.2"
	originSecret = "8d1f5c0a97b24e36"
)

// front is nginx before two edges, with the configurations of docs/in-front.md.
type front struct {
	t             *testing.T
	addr          string
	first, second *edge
	shop          *recorder
}

// frontOptions are what a test wants of a front.
type frontOptions struct {
	http   string // more of nginx's http block
	rate   string // of an address, in the place of the page's
	atOnce string // orders at the shop, in the place of the page's
}

// startFront starts it, with no deadline that a slow machine could miss.
func startFront(t *testing.T, s *recorder, o frontOptions) *front {
	t.Helper()
	page := pageOf(t, "in-front.md")
	f := &front{t: t, addr: freeAddr(t), first: newEdge(t, ""), second: newEdge(t, ""), shop: s}
	f.second.storage = f.first.storage
	redis, shop := redistest.Start(t).Addr(), serve(t, s)
	caddyfile := changed(t, blockOf(t, page, "caddyfile"), "redis 10.0.7.20:6379", "redis "+redisAt(redis),
		"10.0.7.5", proxyAddress, "bind 10.0.7.11", "bind 127.0.0.1", "10.0.7.30:3000", shop, "rate {client_ip} 30 1m", "rate {client_ip} "+cmp.Or(o.rate, "1000 24h"),
		"at_once 20", "at_once "+cmp.Or(o.atOnce, "20"), "wait 25s", "wait 5m", "forward_timeout 20s", "hold_for 10m")
	for _, e := range []*edge{f.first, f.second} {
		f.startEdge(e, caddyfile)
	}
	f.startNginx(blockOf(t, page, "nginx"), o.http)
	for id, item := range map[string]string{"flash": `  - {sku: "7", stock: 100, max: 5}`, "gone": `  - {sku: "gone", stock: 0}`} {
		f.first.sell(id, item)
		f.second.untilSelling(id)
	}
	return f
}

// startEdge starts an edge with the page's Caddyfile; the test asks it as nginx does.
func (f *front) startEdge(e *edge, caddyfile string) {
	f.t.Helper()
	_, port, _ := net.SplitHostPort(e.addr)
	own := fmt.Sprintf("{\n\tadmin unix/%s\n\tstorage file_system %s\n\tpersist_config off\n", e.admin, e.storage)
	text := own + strings.TrimPrefix(strings.ReplaceAll(caddyfile, ":8080", ":"+port), "{\n")
	file := filepath.Join(e.dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	e.env = []string{"ORIGIN_SECRET=" + originSecret, "LOGIN_SECRET=" + loginSecret}
	e.url = "http://shop.example.com:" + port
	e.buyers = &http.Client{Transport: withHeader{f.via(proxyAddress, e.addr), "X-Origin-Secret", originSecret}}
	e.startFile(file)
}

// startNginx starts nginx with the page's configuration in one of its own.
func (f *front) startNginx(conf, inHTTP string) {
	f.t.Helper()
	dir := f.first.dir
	pair := f.first.certificate()
	f.write(filepath.Join(dir, "origin-secret"), fmt.Sprintf("proxy_set_header X-Origin-Secret %q;\n", originSecret))
	conf = changed(f.t, conf, "listen 443", "listen "+f.addr, "10.0.7.11:8080", f.first.addr, "10.0.7.12:8080", f.second.addr,
		"/etc/nginx/shop.pem", pair[0], "/etc/nginx/shop.key", pair[1], "/etc/nginx/origin-secret", filepath.Join(dir, "origin-secret"),
		"/var/cache/nginx/shop", filepath.Join(dir, "cache"))
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	file := filepath.Join(dir, "nginx.conf")
	f.write(file, fmt.Sprintf(`%s
daemon off;
master_process off;
pid nginx.pid;
error_log stderr warn;
events { worker_connections 512; }
http {
	access_log off;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	proxy_bind %s;
	%s
	%s
}
`, user, proxyAddress, inHTTP, conf))
	binary, err := exec.LookPath("nginx")
	if err != nil {
		binary = "/usr/sbin/nginx"
	}
	runProgram(f.t, exec.Command(binary, "-p", dir+"/", "-c", file, "-e", "stderr"), f.addr)
}

func (f *front) write(file, text string) {
	f.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// client is a buyer at an address of this machine, who speaks to nginx.
func (f *front) client(address string) *edge {
	return &edge{t: f.t, url: "https://shop.example.com", buyers: &http.Client{Timeout: 5 * patience, Transport: f.via(address, f.addr)}}
}

// via connects to one address from another, whatever the URL names.
func (f *front) via(from, to string) *http.Transport {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", to) },
	}
	f.t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// withHeader sets a header of each request.
type withHeader struct {
	*http.Transport
	name, value string
}

func (w withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(w.name, w.value)
	return w.Transport.RoundTrip(r)
}

// A client behind nginx is known by its own address, whatever it sends in X-Forwarded-For, and
// one that goes around nginx is refused.
func TestInFrontKnowsClients(t *testing.T) {
	t.Parallel()
	f := startFront(t, new(recorder), frontOptions{rate: "6 24h shared"})
	ann, bob := f.client("127.0.0.3"), f.client("127.0.0.4")
	claiming := func(n int) order {
		o := signed(fmt.Sprint("buyer-", n), "7")
		o.header.Set("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", n))
		o.header.Set("X-Origin-Secret", "mine")
		return o
	}
	for n := range 6 {
		ann.mustBuy(claiming(n), 201, "")
	}
	for n := range 2 {
		ann.mustBuy(claiming(10+n), 429, "rate_limited")
	}
	bob.mustBuy(claiming(0), 201, "")
	for _, r := range f.shop.requests() {
		from := strings.Split(r.header.Get("X-Forwarded-For"), ", ")
		if len(from) != 3 || from[1] != "127.0.0.3" && from[1] != "127.0.0.4" || from[2] != proxyAddress || r.header.Get("X-Origin-Secret") != "" {
			t.Errorf("the shop got %v", r.header)
		}
	}

	before := len(f.shop.requests())
	for name, secret := range map[string][]string{"none": nil, "another": {"guessed"}, "empty": {""}, "two": {"guessed", "other"}} {
		direct := &edge{t: t, url: f.first.url, buyers: &http.Client{Transport: f.via("127.0.0.5", f.first.addr)}}
		o := signed("eve", "7")
		o.header["X-Origin-Secret"] = secret
		o.header.Set("X-Forwarded-For", "127.0.0.4")
		direct.mustBuy(o, 403, "")
		o.path = "/browse"
		if r := direct.buy(o); r.status != 403 {
			t.Errorf("directly, secret %s: %v", name, r)
		}
	}
	if n := len(f.shop.requests()); n != before {
		t.Errorf("%d direct requests came to the shop", n-before)
	}
	f.first.expect("flash", 93, 0, 0, 7)
}

// nginx changes neither method nor target nor body of a request.
func TestInFrontChangesNothing(t *testing.T) {
	t.Parallel()
	f := startFront(t, new(recorder), frontOptions{})
	buyer := f.client("127.0.0.3")
	for _, test := range []struct{ method, target, body string }{
		{"GET", "/p/a%2Fb//c;v=1?x=%7e&y=a+b&&z", ""},
		{"HEAD", "/p/%E4%B8%AD", ""},
		{"POST", "/browse", "{ \"a\" :\r\n 1}"},
		{"PUT", "/browse/../docs/1", "\x00\xff"},
		{"PATCH", "/docs/1", "x=1&x=2"},
		{"DELETE", "/docs/1?all", ""},
		{"PROPFIND", "/docs/", "<a/>"},
		{"POST", "/api/order", `{ "quantity" : "1", "sku":7 }`},
	} {
		f.shop.forget()
		r, err := http.NewRequest(test.method, "https://shop.example.com/", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Opaque = "//shop.example.com" + test.target
		r.Header = signed("ann", "7").header
		r.Header.Set("Content-Type", "application/json")
		answer, err := buyer.buyers.Do(r)
		if err != nil {
			t.Fatalf("%v: %v", test, err)
		}
		answer.Body.Close()
		got := f.shop.requests()
		if answer.StatusCode != 201 || answer.ProtoMajor != 2 || len(got) != 1 {
			t.Errorf("%v: %s %s, the shop got %v", test, answer.Proto, answer.Status, got)
		} else if got[0].method != test.method || got[0].uri != test.target || got[0].body != test.body || got[0].host != "shop.example.com" {
			t.Errorf("%q came as %q %q %q %q", test, got[0].method, got[0].uri, got[0].body, got[0].host)
		}
	}
}

// A cache that stores whatever may be stored stores no refusal and no place in the line.
func TestInFrontStoresNoRefusal(t *testing.T) {
	t.Parallel()
	s := newSlowShop(t)
	f := startFront(t, s.recorder, frontOptions{atOnce: "1", http: `proxy_cache shop;
	proxy_cache_methods GET HEAD POST;
	proxy_cache_key $request_method$request_uri;
	proxy_cache_valid 200 202 400 401 403 404 409 410 413 422 425 429 503 10m;
	add_header X-Cache $upstream_cache_status always;`})
	buyer := f.client("127.0.0.3")
	ask := func(o order, status int, reason, stored string) result {
		t.Helper()
		r := buyer.mustBuy(o, status, reason)
		if got := r.header.Get("X-Cache"); got != stored {
			t.Errorf("%v: the cache says %q, want %q", r, got, stored)
		}
		if stored == "MISS" && status >= 202 && r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v: Cache-Control %q", r, r.header["Cache-Control"])
		}
		return r
	}
	busy := buyer.goBuy(signed("busy", "7"))
	await(t, "the shop has an order", s.working)
	waiting := signed("async", "7")
	waiting.header.Set("Prefer", "respond-async")
	place := ask(waiting, 202, "", "MISS").header.Get("Location")
	for reason, o := range map[string]order{
		"no_buyer": one("", "7", 1, ""), "unknown_item": signed("ann", "none"), "sold_out": signed("ann", "gone"),
		"quantity": signedIn(one("", "7", 9999, ""), loginSecret, `{"sub":"ann"}`), "malformed": signedIn(order{body: `{"sku":"7","SKU":"8"}`}, loginSecret, `{"sub":"ann"}`),
		"duplicate": signed("busy", "7"),
	} {
		status := map[string]int{"no_buyer": 401, "unknown_item": 404, "quantity": 400, "malformed": 400}[reason]
		for range 2 {
			ask(o, cmp.Or(status, 409), reason, "MISS")
		}
	}
	around := signed("ann", "7")
	around.path = "/api/order;x"
	for range 2 {
		ask(around, 400, "malformed", "MISS")
	}
	get := func(path, want string) {
		t.Helper()
		r, err := buyer.buyers.Get(buyer.url + path)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
		if got := r.Header.Get("X-Cache"); got != want {
			t.Errorf("GET %s: %s, the cache says %q, want %q", path, r.Status, got, want)
		}
	}
	for range 2 {
		get(place, "MISS")
	}
	get("/browse", "MISS") // what the cache may store it stores
	get("/browse", "HIT")
	s.answer <- http.StatusCreated
	if r := await(t, "the first order", busy); r.status != http.StatusCreated {
		t.Errorf("%v", r)
	}
	await(t, "the shop has the order that waited", s.working) // sent without its request, and so without nginx
	s.answer <- http.StatusCreated
	f.first.untilExpected("flash", 98, 0, 0, 2)
}

// An order that waits keeps its request open through nginx. One whose edge dies while the shop
// has it goes to no other edge; one that its edge has not got does.
func TestInFrontSendsNoOrderTwice(t *testing.T) {
	t.Parallel()
	s := newSlowShop(t)
	f := startFront(t, s.recorder, frontOptions{atOnce: "2"})
	buyer := f.client("127.0.0.3")
	var all []<-chan result
	for n := range 3 {
		all = append(all, buyer.goBuy(signed(fmt.Sprint("buyer-", n), "7")))
	}
	f.first.untilExpected("flash", 97, 3, 0, 0)
	for range 3 {
		await(t, "the shop has an order", s.working)
		s.answer <- http.StatusCreated
	}
	for _, done := range all {
		if r := await(t, "an answer", done); r.status != http.StatusCreated {
			t.Errorf("%v", r)
		}
	}

	lost := buyer.goBuy(signed("lost", "7"))
	await(t, "the shop has the order", s.working)
	dying, other := f.first, f.second
	if other.goroutines("gate/order.(*Taker).Sell") > 0 {
		dying, other = other, dying
	}
	dying.kill()
	if r := await(t, "the answer of nginx", lost); r.status != http.StatusBadGateway {
		t.Errorf("the order of the dead edge: %v", r)
	}
	s.answer <- http.StatusCreated
	for n := range 2 { // in turn, one of them would go to the dead edge
		done := buyer.goBuy(signed(fmt.Sprint("next-", n), "7"))
		await(t, "the shop has the order", s.working)
		s.answer <- http.StatusCreated
		if r := await(t, "an answer", done); r.status != http.StatusCreated {
			t.Errorf("after an edge has died: %v", r)
		}
	}
	other.untilExpected("flash", 94, 1, 0, 5)
	if n := s.orders(); n != 6 {
		t.Errorf("the shop got %d orders of 6", n)
	}
}

// nginx waits for longer than an order may take.
func TestInFrontWaitsLongEnough(t *testing.T) {
	page := pageOf(t, "in-front.md")
	if read, order := spanIn(t, page, "proxy_read_timeout "), spanIn(t, page, "\twait ")+spanIn(t, page, "\tforward_timeout "); read <= order {
		t.Errorf("nginx waits for %v, an order may take %v", read, order)
	}
}
