//go:build !race

package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

const (
	// flooders send floodOf requests together, each with a name that was never seen.
	flooders, floodOf = 8, 2_000
	// floodBytes is how much an edge may grow by in a flood: an entry of a map for each of
	// its names would take more.
	floodBytes = floodOf * 80
	// floodRounds is after how many floods an edge has grown to what it has from then on.
	floodRounds = 5
	// floodShared is how many buckets the shared rate may have, coarseShared how many coarse
	// ones it has beside them.
	floodShared, coarseShared = 500, 4096
)

// flooder is a client with one connection, so that none ends while memory is measured.
type flooder struct {
	net.Conn
	answers *bufio.Reader
}

func crowdOf(s *sitetest.Site) (all []flooder) {
	s.T.Helper()
	for range flooders {
		c, err := net.Dial("unix", s.Socket("http"))
		if err != nil {
			s.T.Fatal(err)
		}
		s.T.Cleanup(func() { c.Close() })
		all = append(all, flooder{c, bufio.NewReader(c)})
	}
	return all
}

// flood sends requests that have a number in them, and wants answers of these statuses.
func flood(s *sitetest.Site, crowd []flooder, from int, request func(n int) string, statuses ...int) {
	s.T.Helper()
	var all sync.WaitGroup
	for i, c := range crowd {
		all.Go(func() {
			for n := from + i; n < from+floodOf; n += len(crowd) {
				_, err := io.WriteString(c, request(n))
				if err != nil {
					s.T.Error(err)
					return
				}
				a, err := http.ReadResponse(c.answers, nil)
				if err == nil {
					_, err = io.Copy(io.Discard, a.Body)
				}
				if err != nil || !slices.Contains(statuses, a.StatusCode) {
					s.T.Errorf("request %d: %+v, %v", n, a, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// live is what the process has on its heap, without garbage and pools.
func live() int64 {
	edge := app.Active().Runtime()
	for l := range edge.Catalogue().All {
		edge.Leases().Deleted(l.Sale.ID) // what it remembers is bounded: package fence tests that
	}
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// inRedis counts the keys in Redis, and the fields of all hashes.
func inRedis(s *sitetest.Site, c *redis.Client) (keys, fields int64) {
	s.T.Helper()
	all, err := c.Keys(s.T.Context(), "*").Result()
	if err != nil {
		s.T.Fatal(err)
	}
	for _, key := range all {
		if n, err := c.HLen(s.T.Context(), key).Result(); err == nil {
			fields += n
		}
	}
	return int64(len(all)), fields
}

// Whatever clients choose, in a flood of names that were never seen: an edge does not grow
// with their number, and Redis by no more than each kind's bound. docs/redis.md#memory has the bounds. The race detector
// would add memory of its own; the packages of gates, status, rates and edges have crowds with it.
func TestFloodsOfNames(t *testing.T) {
	server, with := sitetest.Redis(t)
	s := sitetest.Open(t, with)
	s.OpenSale()
	sitetest.Do[any](s, "PUT", "/stockgate/sales/gone", "id: gone\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems: [{sku: gone, stock: 0}]\n")
	sitetest.Do[any](s, "POST", "/stockgate/sales/gone/open", "")
	s.Redis = with["redis"].(map[string]any)["addresses"].([]string)[0]
	gates := ""
	for name, rate := range map[string]string{
		"order": "release 4xx", "local": "rate {header.X-Key} 5 1h keys 1000", "shared": fmt.Sprintf("rate {header.X-Key} 5 1h shared keys %d", floodShared),
	} {
		gates += fmt.Sprintf(`@%s {
		method POST
		path /api/%[1]s
	}
	stockgate @%[1]s %[1]s {
		buyer {header.X-Buyer}
		line {json.sku}
		ref {json.order_no}
		idempotency {header.Idempotency-Key}
		%s
	}
	`, name, rate)
	}
	err := s.LoadCaddyfile("stockgate_status\n\tstockgate_guard\n\t" + gates + `respond "no" 409`)
	if err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	client := server.Client()

	post := func(to, sku string, n int, header ...string) string {
		body := fmt.Sprintf(`{"sku":%q,"order_no":"order-%d"}`, sku, n)
		return fmt.Sprintf("POST /api/%s HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", to, len(body), strings.Join(header, ""), body)
	}
	field := func(name string, n int) string { return fmt.Sprintf("%s: %s-of-the-flood-%d\r\n", name, name, n) }
	floods := []struct {
		name     string
		request  func(n int) string
		statuses []int
		keys     int64 // that Redis may have more
		fields   int64 // of hashes
	}{
		{"status queries", func(n int) string {
			return fmt.Sprintf("GET /sales/sale%d/items/item%d?region=r%d HTTP/1.1\r\nHost: h\r\n\r\n", n, n, n)
		}, []int{404}, 0, 0},
		{"status queries of an item", func(n int) string {
			return fmt.Sprintf("GET /sales/gone/items/gone?q=%d HTTP/1.1\r\nHost: h\r\n\r\n", n)
		}, []int{200}, 0, 0},
		{"SKUs", func(n int) string { return post("order", fmt.Sprint("item", n), n, "X-Buyer: b\r\n") }, []int{404}, 0, 0},
		{"buyers, keys and refs", func(n int) string { return post("order", "gone", n, field("X-Buyer", n), field("Idempotency-Key", n)) }, []int{409}, 0, 0},
		{"keys of a rate", func(n int) string { return post("local", "gone", n, field("X-Buyer", n), field("X-Key", n)) }, []int{409}, 0, 0},
		{"keys of a shared rate", func(n int) string { return post("shared", "gone", n, field("X-Buyer", n), field("X-Key", n)) }, []int{409, 429}, floodShared + coarseShared + 1, 0},
		{"orders that the shop refuses", func(n int) string { return post("order", "plain", n, field("X-Buyer", n), field("Idempotency-Key", n)) }, []int{409}, 6, floodOf},
	}
	// what an edge allocates when it begins to follow a sale is not of the floods, nor is its lease
	for _, id := range []string{"double11", "gone"} {
		if err := app.Active().Runtime().Leases().Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	sitetest.Until(t, "that this edge follows the sales", func() bool { return sitetest.Follows("double11") && sitetest.Follows("gone") })
	next, crowd := 0, crowdOf(s)
	for _, f := range floods {
		s.Eventually("the gate knows the sales", func() (string, bool) {
			got := s.Get("/sales/gone/items/gone").Body
			return got, strings.Contains(got, "sold_out")
		})
		for round := 0; ; round++ { // pools, tables and buckets are there after the first, on a busy machine after a few
			keys, fields := inRedis(s, client)
			before := live()
			flood(s, crowd, next, f.request, f.statuses...)
			next += floodOf
			grown := live() - before
			newKeys, newFields := inRedis(s, client)
			t.Logf("%s %d: the edge has grown by %d bytes, Redis by %d keys and %d fields", f.name, round, grown, newKeys-keys, newFields-fields)
			if newKeys-keys > f.keys || newFields-fields > f.fields {
				t.Errorf("%s: Redis has %d keys and %d fields more", f.name, newKeys-keys, newFields-fields)
			}
			if round > 0 && grown <= floodBytes {
				break
			}
			if round == floodRounds { // it grows with every name
				t.Errorf("%s: the edge has grown by %d bytes again, %d for each", f.name, grown, grown/floodOf)
				break
			}
		}
	}
}
