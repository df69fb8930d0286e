package fast_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/lua"
)

// TestFastCrowdWaitsOutside lets a crowd come while the first attempt asks Redis. As many go on to
// the server as the next calls take. The others wait at their connections, and hear there that
// nothing is left.
func TestFastCrowdWaitsOutside(t *testing.T) {
	u := openUnread(t, `
SITEPORT {
	stockgate /order {
		sale {header.Sale}
		buyer {header.X-User-Id}
		line {json.sku} {json.quantity}
		max_in_flight 10000
		FAST
	}
	respond "shop" 201
}
`)
	sitetest.Until(t, "that the edge follows the sale", func() bool { return sitetest.Follows("double11") })
	const stock, crowd = 3, combine.Crowded + 2*combine.MaxTogether
	calls := app.Active().Runtime().Store.Calls
	order := func(i int) *sitetest.RawConn {
		c := u.Open(u.Fast)
		t.Cleanup(func() { c.Close() })
		body := `{"sku":"few","quantity":1}`
		if _, err := fmt.Fprintf(c, "POST /order HTTP/1.1\r\nHost: a\r\nX-User-Id: buyer-%d\r\nSale: double11\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", i, len(body), body); err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := u.FastAnswers()
	u.proxy.HoldReplies("EVALSHA " + lua.Redis().Of(lua.Reserve).SHA)
	buyers := []*sitetest.RawConn{order(0)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := u.proxy.WaitHeld(ctx); err != nil {
		t.Fatal(err)
	}
	sitetest.Until(t, "that the first attempt is under way", func() bool { return calls.Load().Sending > 0 && calls.Load().Waiting == 0 })
	for i := range crowd {
		buyers = append(buyers, order(i+1))
	}
	sitetest.Until(t, "that all wait", func() bool { return calls.Load().Waiting == crowd })
	// some may go on at the same moment
	if inside := calls.Waiting(); inside < combine.Crowded || inside > combine.Crowded+combine.MaxTogether {
		t.Errorf("%d wait in the server for Redis, want %d", inside, combine.Crowded)
	}
	u.proxy.Heal()
	sold := 0
	for i, c := range buyers {
		switch answer := c.Answers(1); {
		case strings.HasPrefix(answer, "HTTP/1.1 201"):
			sold++
		case reasonOf(answer) != "sold_out" && reasonOf(answer) != "all_held":
			t.Errorf("buyer %d hears %q", i, answer)
		}
	}
	if sold != stock {
		t.Errorf("%d were sold, want %d", sold, stock)
	}
	if u.FastAnswers() == before {
		t.Error("those who waited outside were not refused there")
	}
	// a connection that has waited is as any other
	last := buyers[len(buyers)-1]
	if _, err := io.WriteString(last, "GET /other HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := last.Answers(1); !strings.HasPrefix(got, "HTTP/1.1 201") {
		t.Errorf("the next request gets %q", got)
	}
}
