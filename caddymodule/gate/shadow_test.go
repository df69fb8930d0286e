package gate_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

const orderRoute = `@order {
		method POST
		path /api/order
	}
	`

// shadowGate is a gate with these options, before a shop.
func shadowGate(shop string, options ...string) string {
	return orderRoute + "stockgate @order {\n\t\tbuyer {header.X-Buyer}\n\t\tline {json.sku}\n\t\t" + strings.Join(options, "\n\t\t") + "\n\t}\n\treverse_proxy " + shop
}

// shadowed returns how often attempts had an outcome in shadow, and a function that waits until
// they have had it so often more.
func shadowed(s *sitetest.Site, outcome, reason, saleID string) (wait func(more int)) {
	return counted(s, fmt.Sprintf("stockgate_shadow_total{outcome=%q,reason=%q,sale=%q}", outcome, reason, saleID))
}

func counted(s *sitetest.Site, series string) (wait func(more int)) {
	s.T.Helper()
	before, _ := strconv.Atoi(s.Scrape()[series])
	return func(more int) {
		s.T.Helper()
		s.UntilScraped(map[string]string{series: strconv.Itoa(before + more)})
	}
}

// wireShop is a shop that keeps what arrives, byte for byte.
type wireShop struct {
	net.Listener
	mu  sync.Mutex
	got []string
}

func newWireShop(t *testing.T) *wireShop {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	shop := &wireShop{Listener: l}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { shop.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	return shop
}

// serve answers one request, and closes the connection: what was read is exactly one request.
func (s *wireShop) serve(c net.Conn) {
	defer c.Close()
	var wire bytes.Buffer
	r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, &wire)))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	s.got = append(s.got, wire.String())
	s.mu.Unlock()
	answer := `{"code":0,"order":"` + r.Header.Get("X-Buyer") + `"}`
	fmt.Fprintf(c, "HTTP/1.1 201 Created\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nSet-Cookie: a=b\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(answer), answer)
}

func (s *wireShop) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	return got
}

// rawly sends bytes to the site, and returns the bytes of the answer.
func rawly(s *sitetest.Site, request string) string {
	s.T.Helper()
	c, err := net.Dial("unix", s.Socket("http"))
	if err != nil {
		s.T.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		s.T.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		s.T.Fatal(err)
	}
	return string(answer)
}

// What a gate in shadow forwards and answers is byte for byte what a site without it does: also
// what a live gate would refuse, and what it would strip.
func TestShadowForwardsAsItIs(t *testing.T) {
	shop := newWireShop(t)
	requests := []string{
		"Content-Type: application/json\r\nX-Buyer: ann\r\nContent-Length: 15\r\n\r\n" + `{"sku":"plain"}`,
		"Content-Type: application/json\r\nX-Buyer: ann\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"sku\r\na\r\n\":\"plain\"}\r\n0\r\n\r\n",
		"Content-Type: application/json\r\nX-Buyer: ann\r\nStockgate-Token: forged\r\nX-HTTP-Method-Override: PUT\r\nAccept-Encoding: gzip\r\nContent-Length: 15\r\n\r\n" + `{"sku":"plain"}`,
		"Content-Type: application/json\r\nContent-Length: 3\r\n\r\n{{{",
		"Content-Type: application/json\r\nX-Buyer: ann\r\nContent-Length: 70000\r\n\r\n" + strings.Repeat(" ", 70_000),
		"X-Buyer: ann\r\n\r\n",
	}
	s := sitetest.OpenCaddyfile(t, orderRoute+"reverse_proxy "+shop.Addr().String())
	var without, with, bare, shadow []string
	each := func() (answers []string) {
		for _, r := range requests {
			answers = append(answers, rawly(s, "POST /api/order?x=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"+r))
		}
		return answers
	}
	bare, without = each(), shop.take()
	if err := s.LoadCaddyfile(shadowGate(shop.Addr().String(), "shadow", "@sold {\n\t\t\tjson code 0\n\t\t}", "confirm @sold")); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	sold, refused := shadowed(s, "confirmed", "", "double11"), shadowed(s, "sold_past", "body_too_large", "")
	shadow, with = each(), shop.take()
	for i := range requests {
		if with[i] != without[i] {
			t.Errorf("%d: the shop got\n%.600q\nwithout the gate\n%.600q", i, with[i], without[i])
		}
		if shadow[i] != bare[i] {
			t.Errorf("%d: the answer is\n%q\nwithout the gate\n%q", i, shadow[i], bare[i])
		}
	}
	sold(3)
	refused(1)
	if len(s.Logged("this gate is in shadow: it refuses nothing and holds no stock, and only counts what it would have done; remove `shadow` before the sale that it is to protect")) != 1 {
		t.Error("the log does not say once that the gate is in shadow")
	}
}

// shardKeys is what a server has of the sale's stock, limits, holds and journal.
func shardKeys(t *testing.T, c *redis.Client) string {
	var lines []string
	for _, name := range []string{"cells", "limits", "records", "bindings", "unpaid", "adjustments", "returns"} {
		lines = append(lines, fmt.Sprint(name, c.HGetAll(t.Context(), "stockgate:{double11.0}:"+name).Val()))
	}
	for _, name := range []string{"deadlines", "in_doubt", "unbacked", "tombstones"} {
		lines = append(lines, fmt.Sprint(name, c.ZRangeWithScores(t.Context(), "stockgate:{double11.0}:"+name, 0, -1).Val()))
	}
	return strings.Join(append(lines, fmt.Sprint(c.XRange(t.Context(), "stockgate:{double11.0}:journal", "-", "+").Val())), "\n")
}

// A gate in shadow counts an order that others wait for as a live gate refuses it, and leaves the list as it is.
func TestShadowCountsWhoOvertakes(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, strings.Replace(waitingSite(shop.Addr(), ""), "stockgate @order main", `stockgate /trial trial {
		buyer {header.X-User-Id}
		line {json.sku}
		shadow
	}
	stockgate @order main`, 1))
	fileSays(s, "waitlist: {offer: 10m}")
	orders(s, "ann", `{"sku":"few","quantity":3}`).Is(t, http.StatusCreated, "")
	ben, _ := enters(s, "ben", `{"sku":"few"}`)
	ben.hears("waiting")
	past := shadowed(s, "sold_past", "not_your_turn", "double11")
	r := sitetest.WithBody(sitetest.NewOrder("X-User-Id", "dan"), `{"sku":"few"}`)
	r.URL.Path = "/trial"
	s.Send(r).Is(t, http.StatusCreated, "")
	past(1)
	if told := ben.hears("waiting"); told.Place != 1 {
		t.Errorf("the person who waits is told %+v", told)
	}
}

// A gate in shadow refuses nothing, and says what it would have refused, by reason, and where the
// shop sold all the same. In Redis only its own counters change.
func TestShadowSaysWhatItWouldRefuse(t *testing.T) {
	var mu sync.Mutex
	status := http.StatusCreated
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.WriteHeader(status)
	})
	s := sitetest.OpenCaddyfile(t, shadowGate(shop.Addr(), "shadow"))
	client := redis.NewClient(&redis.Options{Addr: s.Redis})
	defer client.Close()
	before := shardKeys(t, client)
	send := func(buyer, sku string) {
		t.Helper()
		r := sitetest.WithBody(sitetest.NewOrder("X-Buyer", buyer), `{"sku":"`+sku+`"}`)
		if a := s.Send(r); a.Status != status || a.Header.Get("Stockgate-Refusal") != "" || a.Header.Get("Stockgate-Reservation") != "" {
			t.Errorf("%s: the answer is %d %v, not the shop's alone", buyer, a.Status, a.Header)
		}
	}
	sold, past := shadowed(s, "confirmed", "", "double11"), shadowed(s, "sold_past", "sold_out", "double11")
	for i := range 5 {
		send(fmt.Sprint("buyer-", i), "few")
	}
	sold(3)
	past(2)
	mu.Lock()
	status = http.StatusNotFound
	mu.Unlock()
	released, refused := shadowed(s, "released", "", "double11"), shadowed(s, "would_refuse", "sold_out", "double11")
	nobuyer, unknown := shadowed(s, "would_refuse", "no_buyer", ""), shadowed(s, "would_refuse", "unknown_item", "")
	send("late", "few")
	send("ann", "plain")
	send("", "plain")
	send("ann", "nothing")
	refused(1)
	released(1)
	nobuyer(1)
	unknown(1)
	if after := shardKeys(t, client); after != before {
		t.Errorf("the sale has changed:\n%s\nwas\n%s", after, before)
	}
	shown := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	want := []reservation.ShadowCell{{SKU: "few", ShadowUnits: reservation.ShadowUnits{Sold: 3, Past: 2}}}
	if !slices.Equal(shown.Shadow, want) || shown.Cell("few", "") != "3 3 0 0 0" {
		t.Errorf("the sale has %+v in shadow and few %s", shown.Shadow, shown.Cell("few", ""))
	}
	for _, got := range shop.Take() {
		if got.Header.Get("Stockgate-Token") != "" {
			t.Error("the shop got a token")
		}
	}
	if out := s.Run("doctor").Out; !strings.Contains(out, "is in shadow and refuses nothing, and double11 sells now") {
		t.Errorf("the doctor says nothing of shadow: %s", out)
	}
	if out := s.OK("sale", "show", "double11"); !strings.Contains(out, "sold by the shop in shadow") {
		t.Errorf("sale show says nothing of shadow: %s", out)
	}
	defer func() {
		if out := s.OK("sale", "forget-shadow", "double11"); !strings.Contains(out, "forgotten") || len(sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "").Shadow) != 0 {
			t.Errorf("what was sold in shadow is not forgotten: %s", out)
		}
	}()
	if report := s.Admin("GET", "/stockgate/sales/double11/report", "").Body; !strings.Contains(report, "would have been refused, and the shop sold it: sold_out") {
		t.Error("the report says nothing of shadow")
	}
}

// Redis may hold its reply, or be gone: the request is answered all the same.
func TestShadowNeverWaitsForRedis(t *testing.T) {
	server, app := sitetest.Redis(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s := sitetest.Open(t, app)
	s.OpenSale()
	shop := sitetest.NewBackend(t, sitetest.Created)
	s.Redis = proxy.Addr()
	if err := s.LoadCaddyfile(shadowGate(shop.Addr(), "shadow")); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	sold := shadowed(s, "confirmed", "", "double11")
	proxy.HoldReplies("EVALSHA stockgate:{double11.0}:shadow")
	if a := s.Send(sitetest.NewOrder("X-Buyer", "ann")); a.Status != http.StatusCreated {
		t.Fatalf("%d while Redis holds its reply", a.Status)
	}
	if err := proxy.WaitHeld(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := s.Send(sitetest.NewOrder("X-Buyer", "bob")); a.Status != http.StatusCreated {
		t.Fatalf("%d behind a held reply", a.Status)
	}
	proxy.ReleaseReplies()
	sold(2)
	skipped := counted(s, `stockgate_shadow_skipped_total{why="redis"}`)
	proxy.DropAll()
	if a := s.Send(sitetest.NewOrder("X-Buyer", "cid")); a.Status != http.StatusCreated {
		t.Fatalf("%d without Redis", a.Status)
	}
	skipped(1)
}

// A reload from shadow to live: the order under way ends as it began, and the next one is
// reserved. What was sold in shadow is not in the stock. Beyond its bound, requests are not
// watched, and forwarded all the same.
func TestShadowToLive(t *testing.T) {
	under, release := make(chan struct{}, 8), make(chan struct{})
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Wait") != "" {
			under <- struct{}{}
			<-release
		}
		w.WriteHeader(http.StatusCreated)
	})
	s := sitetest.OpenCaddyfile(t, shadowGate(shop.Addr(), "shadow", "max_in_flight 1"))
	sold, busy := shadowed(s, "confirmed", "", "double11"), counted(s, `stockgate_shadow_skipped_total{why="busy"}`)
	client := s.Client()
	var waiting sync.WaitGroup
	for i := range 5 { // four are watched for one slot
		waiting.Go(func() {
			resp, err := client.Do(sitetest.NewOrder("X-Buyer", fmt.Sprint("ann-", i), "X-Wait", "1"))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusCreated || resp.Header.Get("Stockgate-Reservation") != "" {
				t.Errorf("an order that began in shadow got %d %v", resp.StatusCode, resp.Header)
			}
		})
		<-under
	}
	busy(1)
	if err := s.LoadCaddyfile(shadowGate(shop.Addr(), "max_in_flight 1")); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	if a := s.Send(sitetest.NewOrder("X-Buyer", "bob")); a.Status != http.StatusCreated || a.Header.Get("Stockgate-Reservation") == "" {
		t.Errorf("a live order got %d %v", a.Status, a.Header)
	}
	close(release)
	waiting.Wait()
	sold(4)
	shown := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	want := []reservation.ShadowCell{{SKU: "plain", ShadowUnits: reservation.ShadowUnits{Sold: 4}}}
	if !slices.Equal(shown.Shadow, want) || shown.Cell("plain", "") != "100 99 0 0 1" {
		t.Errorf("the sale has %+v in shadow and plain %s", shown.Shadow, shown.Cell("plain", ""))
	}
}

// A rate and a limit in shadow let a live gate sell, and say what they would have refused.
func TestRateAndLimitInShadow(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, shadowGate(shop.Addr(), "rate {header.X-Buyer} 1 1h shadow", "rate constant 1 2h shared shadow"))
	file := sitetest.SaleFile + "limits:\n  - {per: buyer, every: sale, max: 1, count: orders, shadow: true}\n"
	if a := s.Admin("PUT", "/stockgate/sales/double11", file); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	s.Refresh()
	rated, past := shadowed(s, "would_refuse", "rate_limited", ""), shadowed(s, "sold_past", "limit_reached", "double11")
	for range 3 {
		if a := s.Send(sitetest.NewOrder("X-Buyer", "ann")); a.Status != http.StatusCreated || a.Header.Get("Stockgate-Reservation") == "" || a.Header.Get("RateLimit") != "" {
			t.Errorf("%d %v", a.Status, a.Header)
		}
	}
	rated(2 + 2)
	past(2)
	if got := s.StockOf("plain"); got != "100 97 0 0 3" {
		t.Errorf("plain is %s", got)
	}
	if out := s.OK("sale", "show", "double11"); !strings.Contains(out, "in shadow: refuses nothing") {
		t.Errorf("sale show: %s", out)
	}
}

// A guard refuses what could get around a live gate. For a gate in shadow it refuses nothing:
// neither before the routes nor where a request leaves.
func TestGuardBeforeAGateInShadow(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	site := func(option string) string {
		return orderRoute + "route {\n\t\tstockgate_guard\n\t\tstockgate @order {\n\t\t\tbuyer {header.X-Buyer}\n\t\t\tline {json.sku}\n\t\t\talso_query s\n\t\t\t" + option +
			"\n\t\t}\n\t\trewrite /other /api/order\n\t\treverse_proxy " + shop.Addr() + "\n\t}"
	}
	s := sitetest.OpenCaddyfile(t, site("shadow"))
	around := func(want int) {
		t.Helper()
		for _, path := range []string{"/other", "/index.php?s=/api/order"} {
			r := sitetest.NewOrder("X-Buyer", "ann")
			r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
			if a := s.Send(r); a.Status != want {
				t.Errorf("%s: %d, want %d", path, a.Status, want)
			}
		}
	}
	around(http.StatusCreated)
	if err := s.LoadCaddyfile(site("hold_for 30s")); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	around(http.StatusBadRequest)
}
