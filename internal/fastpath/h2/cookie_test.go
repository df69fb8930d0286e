package h2_test

import (
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/stockgate/stockgate/internal/fastpath/h2"
)

// A cookie is put together once, of however many crumbs: each may be a byte on the wire.
func TestCookieOfManyCrumbs(t *testing.T) {
	allocations := func(crumbs int) float64 {
		fields := []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "shop.example.com"}, {Name: ":path", Value: "/"}}
		var all []string
		for i := range crumbs {
			all = append(all, strings.Repeat("a", i%50))
			fields = append(fields, hpack.HeaderField{Name: "cookie", Value: all[i]})
		}
		c := new(h2.Conn)
		n := testing.AllocsPerRun(10, func() {
			if !c.Lay(fields) {
				t.Fatal("the request is left to the server")
			}
		})
		got := make(map[string]string)
		c.Fields(func(name, value string) bool { got[name] = value; return true })
		if want := strings.Join(all, "; "); len(got) != 1 || got["cookie"] != want {
			t.Errorf("the fields are %q, want the cookie %q", got, want)
		}
		return n
	}
	few := allocations(50)
	if many := allocations(5000); many > few {
		t.Errorf("5,000 crumbs take %v allocations, 50 take %v", many, few)
	}
}
