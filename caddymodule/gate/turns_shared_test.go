package gate_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// openSharedCarts opens a site whose edge agrees with others on the turns of sessions, and
// returns its Redis.
func openSharedCarts(t *testing.T, shop *cartShop, more ...string) (*sitetest.Site, *redis.Client) {
	addr := shop.Listener.Addr().String()
	gate := strings.Replace(strings.Join(append(cartGate(shop), more...), "\n\t\t"), "one_at_a_time", "one_at_a_time shared", 1)
	s := sitetest.OpenCaddyfile(t, "stockgate_guard\n\tstockgate /shop* pay {\n\t\tjson_body method card\n\t\t"+gate+"\n\t}\n\treverse_proxy "+addr)
	c := redis.NewClient(&redis.Options{Addr: s.Redis})
	t.Cleanup(func() { c.Close() })
	return s, c
}

// leases returns the names that edges have.
func leases(t *testing.T, c *redis.Client) []string {
	t.Helper()
	keys, err := c.Keys(stocktest.Soon(t), "*:lease:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// A session is served by one edge at a time: requests wait while another edge has its lease, and
// go on when that is given up.
func TestSharedTurns(t *testing.T) {
	shop := newCartShop(t)
	s, c := openSharedCarts(t, shop)
	shop.put("ann", "few", 1)
	paying, let := make(chan struct{}), make(chan struct{})
	shop.paying = func(*http.Request) { paying <- struct{}{}; <-let }
	done := make(chan int, 2)
	pays := func() { done <- s.Send(as("ann", "/shop/pay", pay)).Status }
	go pays()
	<-paying
	names := leases(t, c)
	if len(names) != 1 || strings.Contains(names[0], "ann") {
		t.Fatalf("while the order is at the shop the leases are %v", names)
	}
	close(let)
	if status := <-done; status != 201 {
		t.Fatal(status)
	}
	s.Eventually("the lease is given up", func() (string, bool) {
		left := leases(t, c)
		return strings.Join(left, " "), len(left) == 0
	})
	// another edge has it
	c.Set(stocktest.Soon(t), names[0], "another edge", time.Hour)
	usual := timing.SessionWait.Set(10 * time.Millisecond)
	s.Send(as("ann", "/shop/add", `{"sku":"few","quantity":1}`)).Is(t, 409, "pending")
	timing.SessionWait.Set(usual)
	s.Send(as("bob", "/shop/add", `{"sku":"few","quantity":1}`)).Is(t, 200, "")
	go func() { done <- s.Send(as("ann", "/shop/add", `{"sku":"few","quantity":1}`)).Status }()
	c.Del(stocktest.Soon(t), names[0])
	if status := <-done; status != 200 {
		t.Errorf("when the other edge has given it up: %d", status)
	}
}

// Where another edge may have served the session too, an order that the shop does not have is
// not given up at once.
func TestSharedTurnLost(t *testing.T) {
	for name, c := range map[string]struct {
		lost bool
		cell string
	}{"held": {false, "3 3 0 0 0"}, "lost": {true, "3 2 0 1 0"}} {
		t.Run(name, func(t *testing.T) {
			shop := newCartShop(t)
			s, edges := openSharedCarts(t, shop, `outcome ask GET `+shop.URL+`/orders/{ref} {
				payments sync
			}`, "@sold {\n json cart.state paid\n }", "@not {\n json cart.state open\n }", "confirm @sold", "release @not", "hold_for 1h")
			shop.put("ann", "few", 1)
			shop.status = 402
			shop.paying = func(*http.Request) {
				if c.lost {
					edges.Set(stocktest.Soon(t), leases(t, edges)[0], "another edge", time.Second)
				}
			}
			s.Send(as("ann", "/shop/pay", pay)).Is(t, 402, "")
			if got := s.StockOf("few"); got != c.cell {
				t.Errorf("stock %s, want %s", got, c.cell)
			}
		})
	}
}
