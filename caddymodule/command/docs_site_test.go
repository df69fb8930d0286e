package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	_ "github.com/stockgate/stockgate/caddymodule"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
	"github.com/stockgate/stockgate/internal/shop"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// durable is a redis-server as docs/install.md configures it: with another one the doctor finds
// an error. maxmemory-policy is noeviction by default.
func durable(t *testing.T) (*redistest.Server, map[string]any) {
	t.Helper()
	server, app := sitetest.Redis(t)
	for name, value := range map[string]string{"appendonly": "yes", "appendfsync": "always"} {
		if err := server.Client().ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return server, app
}

// docSite is a site as the pages have it: a gate before a shop, a ledger, and a sale that is open.
type docSite struct {
	redis   *redistest.Server
	shopper sitetest.Shopper
	orders  atomic.Pointer[shop.Shop]
	shop    string // its URL
	front   string // URL of the gate
	ledger  string // its file
}

// anotherShop gives the site a shop that has no orders.
func (w *docSite) anotherShop(t *testing.T) {
	t.Helper()
	orders, err := shop.New(shop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.orders.Store(orders)
	t.Cleanup(func() { orders.Close() })
}

// open loads and opens a sale.
func (d *doc) open(id string) {
	d.Helper()
	sitetest.Do[any](d.s, "PUT", "/stockgate/sales/"+id, fmt.Sprintf(docSale, id))
	sitetest.Do[any](d.s, "POST", "/stockgate/sales/"+id+"/open", "")
}

// docSale has one item, and not more than a crowd of a test takes.
const docSale = `
id: %s
starts_at: 2020-11-11T00:00:00+08:00
ends_at: 2090-11-12T00:00:00+08:00
timezone: Asia/Shanghai
items:
  - {sku: "20002001", stock: 100}
limits:
  - {per: buyer, every: sale, max: 100, count: units}
`

// site starts a site for the page, with sales of these ids.
func (d *doc) site(sales ...string) *docSite {
	d.Helper()
	server, app := durable(d.T)
	d.s = sitetest.Open(d.T, app)
	w := &docSite{redis: server, shopper: sitetest.NewShopper(d.T, server), ledger: filepath.Join(d.TempDir(), "ledger.db")}
	w.anotherShop(d.T)
	behind := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.orders.Load().ServeHTTP(rw, r) }))
	d.Cleanup(behind.Close)
	w.shop = behind.URL
	d.s.Loads++
	text := fmt.Sprintf(`{
	admin %s
	persist_config off
	auto_https off
	storage file_system %s
	log {
		output file %s
	}
	stockgate {
		redis %s {
			timeout 1m
		}
		ledger sqlite %s
	}
}
http:// {
	bind unix/%s
	@order {
		method POST
		path /api/order
	}
	stockgate_guard
	stockgate_status
	handle_path /stockgate/* {
		stockgate_api {
			key a-key-of-the-shop-that-is-long-enough
		}
	}
	stockgate @order main {
		buyer {header.X-User-Id}
		line {json.sku} {json.quantity}
		ref {json.order_no}
		max_in_flight 4096
		hold_for 10m
		@sold {
			status 200
			json code 0 200
		}
		confirm @sold 201
		in_doubt probe %s/orders/{id} {
			every 1h
			longest 1h
		}
	}
	reverse_proxy %s
}`, d.s.AdminAddress(), d.s.Path("storage"), d.s.Path("log"), server.Addr(), w.ledger, d.s.Socket("http"), w.shop, behind.Listener.Addr())
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err == nil {
		err = caddy.Load(config, true)
	}
	if err != nil {
		d.Fatal(err)
	}
	w.front = "http://" + d.s.Front()
	for _, id := range sales {
		d.open(id)
	}
	d.s.Eventually("ready", func() (string, bool) {
		a := d.s.Admin("GET", "/stockgate/health", "")
		return a.Body, a.Status == http.StatusOK
	})
	return w
}

// caughtUp waits until the ledger has every movement of the sale.
func caughtUp(t *testing.T, s *sitetest.Site, ledger string) {
	t.Helper()
	l, err := sqlite.Open(ledger)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := sitetest.Do[adminapi.JournalState](s, "GET", "/stockgate/sales/double11/journal", "").Last
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		at, err := l.Position(t.Context(), "double11")
		if err == nil && want > 0 && at.Seq >= want {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("the ledger does not follow: %+v of %d %v", at, want, err)
		}
	}
}
