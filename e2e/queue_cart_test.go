package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// cartKeeper is a shop that knows what each buyer has in the cart. Its other requests go to another shop.
type cartKeeper struct {
	http.Handler
	looking chan struct{} // a question about a cart stands here, if holds
	goOn    chan struct{} // closed: it goes on

	mu    sync.Mutex
	holds bool
	units int // in each cart
}

func (c *cartKeeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/cart" {
		c.Handler.ServeHTTP(w, r)
		return
	}
	c.mu.Lock()
	holds := c.holds
	c.mu.Unlock()
	if holds {
		c.looking <- struct{}{}
		<-c.goOn
	}
	c.mu.Lock()
	units := c.units
	c.mu.Unlock()
	fmt.Fprintf(w, `{"id":"cart-of-%s","items":[{"sku":"7","quantity":%d}]}`, r.Header.Get("X-User-Id"), units)
}

func (c *cartKeeper) set(holds bool, units int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds, c.units = holds, units
}

// An edge that is killed while the cart of an order that has waited is looked up, before the order is sent, when it is noted as
// sent, or when the shop has it, sells no unit twice and loses none. Another edge looks the cart up again.
func TestKilledEdgeOfCarts(t *testing.T) {
	t.Parallel()
	const send = "EVALSHA send"
	for _, step := range []struct {
		name       string
		looking    bool // it dies while the shop looks for the cart
		changed    bool // the cart is another one afterwards
		before     bool // the order stands in the shop
		hold       func(*redistest.Proxy)
		afterwards func(*redistest.Proxy)
		stock      [4]int64 // available, held, in doubt, confirmed
		place      string   // what the buyer hears there in the end
		orders     int      // that the shop has
	}{
		{name: "the cart is looked up", looking: true, stock: [4]int64{1, 0, 0, 1}, place: "201 ", orders: 1},
		{name: "the cart is looked up, and changes", looking: true, changed: true, stock: [4]int64{2, 0, 0, 0}, place: `200 {"state":"released","reason":"cart_changed"}`},
		{name: "the send is lost", hold: func(p *redistest.Proxy) { p.HoldRequests(send) }, afterwards: (*redistest.Proxy).DropAll,
			stock: [4]int64{1, 0, 0, 1}, place: "201 ", orders: 1},
		{name: "noted as sent, not sent", hold: func(p *redistest.Proxy) { p.HoldReplies(send) }, afterwards: (*redistest.Proxy).DropAll,
			stock: [4]int64{2, 0, 0, 0}, place: `200 {"state":"released"}`},
		{name: "the shop has it", before: true, stock: [4]int64{1, 0, 0, 1}, place: `200 {"state":"confirmed"`, orders: 1},
	} {
		t.Run(step.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := redistest.NewProxy(t, server.Addr())
			dies, lives := newEdge(t, ""), newEdge(t, "")
			lives.storage = dies.storage
			s, behind := startShop(t, lives)
			stands := &station{shop: s, there: make(chan string, 1), goOn: make(chan struct{})}
			carts := &cartKeeper{Handler: stands, looking: make(chan struct{}, 1), goOn: make(chan struct{}), units: 1}
			goOn := sync.OnceFunc(func() { close(stands.goOn); close(carts.goOn) })
			addr := serve(t, carts)
			t.Cleanup(goOn) // before the shop closes
			same := site{
				redis: redisAt(proxy.Addr()), shop: addr, gate: soonOver + "\nqueue {\nat_once 1\n}",
				source: "buyer {header.X-User-Id}\nlookup GET http://" + addr + "/cart {\ntimeout 10s\n}\nlines {lookup.items} sku quantity\nref {lookup.id}",
			}
			dies.start(same)
			dies.sell("flash", `  - {sku: "7", stock: 2}`)
			dies.must("POST", "sales/flash/queue/pause", "", nil)
			o := one("a", "7", 1, "")
			o.header = http.Header{"Prefer": {"respond-async"}, "Authorization": {"Bearer a"}}
			r := dies.buy(o)
			if r.status != http.StatusAccepted {
				t.Fatal(r)
			}

			carts.set(step.looking, 1)
			stands.before.Store(step.before)
			if step.hold != nil {
				step.hold(proxy)
			}
			dies.must("POST", "sales/flash/queue/resume", "", nil)
			switch {
			case step.looking:
				await(t, "the shop looks for the cart", carts.looking)
			case step.before:
				await(t, "the shop has the order", stands.there)
			default:
				untilHeld(t, proxy)
			}
			dies.kill()
			if step.afterwards != nil {
				step.afterwards(proxy)
			}
			units := 1
			if step.changed {
				units = 2
			}
			carts.set(false, units)
			stands.before.Store(false)
			same.redis = redisAt(server.Addr())
			lives.start(same) // the shop fetches its keys
			goOn()
			if step.before { // else the probe may ask before the shop has it
				eventually(t, "the shop takes the order", func() bool {
					orders, err := s.Orders(t.Context())
					return err == nil && len(orders) == 1
				})
			}
			same.gate += probing(behind)
			lives.mustReload(same)
			lives.untilSelling("flash")
			lives.untilExpected("flash", step.stock[0], step.stock[1], step.stock[2], step.stock[3])
			eventually(t, "the buyer hears how it ended", func() bool {
				status, _, body := lives.get(r.header.Get("Location"))
				said := fmt.Sprint(status, " ", body)
				if status != http.StatusAccepted && !strings.HasPrefix(said, step.place) {
					t.Fatalf("the place says %s", said)
				}
				return status != http.StatusAccepted
			})
			if orders, err := s.Orders(t.Context()); err != nil || len(orders) != step.orders {
				t.Errorf("the shop has %+v, %v", orders, err)
			}
			audit(t, lives, "flash", s, nil)
		})
	}
}
