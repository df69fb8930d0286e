package fast_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// winnerSites have a gate that refuses in every way from memory.
const winnerSites = `
SITEPORT {
	stockgate /order {
		sale {header.Sale}
		buyer {header.X-User-Id}
		line {json.sku} {json.quantity}
		ref {json.order_no} shared
		rate {header.X-User-Id} 1 1h
		FAST
	}
	respond "shop" 201
}
`

// unread is a site whose edge does not read what other edges bind in its Redis.
type unread struct {
	*sitetest.FastSite
	proxy  *redistest.Proxy
	direct *reservation.Store // another edge's
}

func openUnread(t *testing.T, sites string) *unread { return openUnreadWith(t, false, "", sites) }

func openUnreadWith(t *testing.T, secure bool, servers, sites string) *unread {
	s := sitetest.OpenFastWith(t, secure, servers, sites)
	direct, err := reservation.Open(shard.Options{Addresses: []string{s.Redis}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { direct.Close() })
	u := &unread{s, redistest.NewProxy(t, s.Redis), direct}
	u.Redis = u.proxy.Addr()
	if err := u.LoadFast(servers, sites); err != nil {
		t.Fatal(err)
	}
	u.Refresh()
	return u
}

func (u *unread) ask(addr, buyer, sale, sku string, quantity int64, ref string) string {
	body := fmt.Sprintf(`{"sku":%q,"quantity":%d,"order_no":%q}`, sku, quantity, ref)
	return u.Raw(addr, fmt.Sprintf("POST /order HTTP/1.1\r\nHost: a\r\nX-User-Id: %s\r\nSale: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		buyer, sale, len(body), body), 1)
}

func reasonOf(answer string) string {
	_, rest, _ := strings.Cut(answer, "\r\nStockgate-Refusal: ")
	reason, _, _ := strings.Cut(rest, "\r\n")
	return reason
}

// binds lets another edge reserve under a ref, which this edge does not read.
func (u *unread) binds(sale_, sku, ref string, quantity int64) {
	u.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	version, _, _, err := u.direct.Journal().SaleDocument(ctx, sale_)
	if err != nil {
		u.T.Fatal(err)
	}
	sitetest.Until(u.T, "that this edge follows the sale", func() bool { return sitetest.Follows(sale_) })
	u.proxy.HoldReplies("XREAD")
	claim := &reservation.ReserveRequest{
		ID: "of " + ref, Sale: sale_, Version: version, Buyer: "hash", Lines: []sale.Line{{SKU: sku, Quantity: quantity}},
		HoldFor: time.Hour, Margin: time.Minute, Mode: record.ModeResponse, Ref: ref,
	}
	if _, no, err := u.direct.Reserve(ctx, claim); no != nil || err != nil {
		u.T.Fatal(no, err)
	}
	if err := u.proxy.WaitHeld(ctx); err != nil {
		u.T.Fatal(err)
	}
}

// A buyer to whom another edge has sold is told so by this edge, although it has not read of
// the sale yet: not that the item is sold out, nor anything else that it remembers.
func TestAWinnerHearsOfNothingElse(t *testing.T) {
	u := openUnread(t, winnerSites)
	none := func(string, string) {}
	for _, c := range []struct {
		sale, sku  string
		sold, asks int64
		otherwise  string // the answer to an attempt that repeats none
		before     func(addr, buyer string)
	}{
		{"double11", "few", 3, 3, "all_held", func(addr, _ string) { // this edge gets to know it
			u.ask(addr, "first "+addr, "double11", "few", 3, "")
		}},
		{"none", "bulk", 2, 1, "quantity", none},
		{"none", "bulk", 2, 2, "paused", func(string, string) {
			sitetest.Do[any](u.Site, http.MethodPost, "/stockgate/sales/none/pause", "")
		}},
	} {
		for name, addr := range map[string]string{"gate": u.Plain, "fast": u.Fast} {
			t.Run(c.otherwise+" "+name, func(t *testing.T) {
				sitetest.Do[any](u.Site, http.MethodPost, "/stockgate/sales/none/open", "")
				ref, buyer := "order-"+c.otherwise+"-"+name, "winner-"+c.otherwise+"-"+name
				u.binds(c.sale, c.sku, ref, c.sold)
				c.before(addr, buyer)
				answered := make(chan string, 1)
				go func() { answered <- reasonOf(u.ask(addr, buyer, c.sale, c.sku, c.asks, ref)) }()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				// by then an edge that does not wait has answered
				if err := u.proxy.WaitRequests(ctx, u.proxy.Requests("HMGET")+10, "HMGET"); err != nil {
					t.Fatal(err)
				}
				u.proxy.Heal()
				if got := <-answered; got != "duplicate" {
					t.Errorf("the winner hears %q, want duplicate", got)
				}
				if _, err := u.direct.Release(ctx, c.sale, "of "+ref, reservation.SourceShop, ""); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Nor is such a buyer refused as busy when as many clients as may are reading answers.
func TestAWinnerDoesNotHearBusy(t *testing.T) {
	over := make(chan struct{})
	shop := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream") // is passed on at once
		w.WriteHeader(http.StatusCreated)
		_ = http.NewResponseController(w).Flush()
		<-over // the gate reads on when its client has left
	})
	server := httptest.NewServer(shop)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	sites := strings.NewReplacer("FAST", "max_in_flight 1", `respond "shop" 201`, "reverse_proxy "+server.URL).Replace(winnerSites)
	u := openUnread(t, sites)
	for i := range 4 {
		conn := u.Open(u.Plain)
		body := fmt.Sprintf(`{"sku":"plain","quantity":1,"order_no":"reads-%d"}`, i)
		fmt.Fprintf(conn, "POST /order HTTP/1.1\r\nHost: a\r\nX-User-Id: reads-%d\r\nSale: double11\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", i, len(body), body)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatal(err, resp)
		}
	}
	if got := reasonOf(u.ask(u.Plain, "first", "double11", "plain", 1, "new")); got != "busy" {
		t.Errorf("a buyer without an order hears %q, want busy", got)
	}
	u.binds("double11", "plain", "bought", 1)
	answered := make(chan string, 1)
	go func() { answered <- reasonOf(u.ask(u.Plain, "winner", "double11", "plain", 1, "bought")) }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// by then an edge that does not wait has answered
	if err := u.proxy.WaitRequests(ctx, u.proxy.Requests("HMGET")+10, "HMGET"); err != nil {
		t.Fatal(err)
	}
	u.proxy.Heal()
	if got := <-answered; got != "duplicate" {
		t.Errorf("the winner hears %q, want duplicate", got)
	}
}

// An attempt that a rate of this edge refuses is answered from memory, also when it repeats a
// sold order: neither Redis nor the shop is asked.
func TestLocalRatesComeBeforeRepeats(t *testing.T) {
	u := openUnread(t, winnerSites)
	for name, addr := range map[string]string{"gate": u.Plain, "fast": u.Fast} {
		ref, buyer := "order-"+name, "winner-"+name
		if got := u.ask(addr, buyer, "double11", "plain", 1, ref); !strings.HasPrefix(got, "HTTP/1.1 201") {
			t.Fatalf("%s: %s", name, got)
		}
		before := u.FastAnswers()
		if got := reasonOf(u.ask(addr, buyer, "double11", "plain", 1, ref)); got != "rate_limited" {
			t.Errorf("%s: the winner hears %q", name, got)
		}
		if fast := u.FastAnswers() > before; fast != (name == "fast") {
			t.Errorf("%s: fast %t", name, fast)
		}
	}
	u.proxy.DropAll()
	for name, addr := range map[string]string{"gate": u.Plain, "fast": u.Fast} {
		if got := reasonOf(u.ask(addr, "winner-"+name, "double11", "plain", 1, "order-"+name)); got != "rate_limited" {
			t.Errorf("%s, without redis: the winner hears %q", name, got)
		}
	}
	u.proxy.Heal()
}
