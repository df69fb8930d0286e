package route_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/route"
	"github.com/stockgate/stockgate/internal/test/draw"
)

// tricks are paths that some server takes for the gated one.
var tricks = []string{
	"/api/order", "/api/order/", "/API/Order", "/api//order", "//api/order", "//x/api/order", "/api/./order", "/x/../api/order", "/x/..;/api/order",
	"/api/order;x=y", "/api;a=b/order", "/api/order;/../x", "/api/order%23/../x", "/api/order%3fx", "/api/order%00.png", "/api/order%0a", "/api%2forder",
	"/api%252forder", "/api%25252forder", "/%61pi/order", "/x/%2e%2e/api/order", "/a%2fb/%2e%2e/api/order", `/api\order`, "/api%5corder", `/\x/api/order`,
	"/index.php/api/order", "/INDEX.PHP/api/order", "/index.ph%70/api/order", "/a/b.php/api/order/", "/x%2f..%2fapi/order", "/api/order%3bx=y", "/api/order%2f",
	"/x/..%5capi/order", "/api/order;%2f..", "/.;/api/order", "/api/order%253bx", "/api/%6frder", "/x;/../api/order",
}

// FuzzReadings compares the readings with servers that are written on their own: what
// any of them takes for the gated route has a reading that says so, or is refused; and
// what has no odd shape is read alike by all.
func FuzzReadings(f *testing.F) {
	for _, path := range tricks {
		f.Add(path)
	}
	f.Add("/wp-json/wp/v2/posts/%e6%97%a5")
	f.Add(strings.Repeat("/a.php/..;/%252e", 40))
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") || len(path) > 4096 {
			return
		}
		if err := compare(path); err != nil {
			t.Error(err)
		}
	})
}

// compare says where servers and readings differ about a path.
func compare(path string) error {
	if _, _, _, why := route.Check("POST", path); why != "" {
		return nil // refused whatever the routes are
	}
	asked, _, _ := strings.Cut(path, "?") // what follows is the query
	shape := route.ShapeOf(asked)
	all, complete := route.Readings(asked)
	found := slices.ContainsFunc(all, func(p string) bool { return strings.EqualFold(p, gated) })
	for name, takes := range servers {
		if !takes(asked) {
			continue
		}
		if !found && complete {
			return fmt.Errorf("%s takes %q for %s, and no reading says so: %q", name, asked, gated, all)
		}
		if shape == 0 && asked != gated {
			return fmt.Errorf("%s takes %q for %s, and a scan finds nothing odd about it", name, asked, gated)
		}
	}
	return nil
}

// TestServersAgree composes tricks at random, which a fuzzer seldom hits.
func TestServersAgree(t *testing.T) {
	seed := draw.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for range draw.Times(10_000, 300_000) {
		path := gated
		for range 1 + r.IntN(4) {
			path = mutate(r, path)
		}
		if err := compare(path); err != nil {
			t.Fatal(err)
		}
	}
}

// mutate changes a path as an attacker would.
func mutate(r *rand.Rand, path string) string {
	at := r.IntN(len(path) + 1)
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	switch r.IntN(6) {
	case 0: // escape a byte
		if at == len(path) {
			at--
		}
		return path[:at] + fmt.Sprintf(pick("%%%02x", "%%%02X"), path[at]) + path[at+1:]
	case 1: // put something before it
		return pick("/x/..", "/x/..;a", "/.", "//h", "/index.php", "/;a", "/a%2fb/%2e%2e", `\h`, "/x%5c..", "/%2e%2e") + path
	case 2:
		return path + pick("/", ";x=y", "%23x", "%3fx", "%00", "%0a", "/.", "/x/..", "%2f", ";/x/..", "%3bx")
	case 3: // into it
		return path[:at] + pick("/", "/./", ";a", "%2f", `\`, "//", "/x/../", "%5c") + path[at:]
	case 4:
		return strings.ReplaceAll(path, "/", pick("//", `\`, "%2f", "/./", ";a/"))
	default:
		return strings.ToUpper(path[:at]) + path[at:]
	}
}
