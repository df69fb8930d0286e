package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// A reload changes such an option while an order waits: the order is sent once, with what was
// reserved for it, or it is skipped and that is said, or released.
func TestQueueReloadOfOptionsThatDiffer(t *testing.T) {
	for name, c := range differences {
		t.Run(name, func(t *testing.T) {
			shop := newSlowShop(t)
			const queue = "queue {\nat_once 1\nwait 5m\n}"
			base, other := c.site(shop.Addr(), false, queue), c.site(shop.Addr(), true, queue)
			s := sitetest.OpenCaddyfile(t, base)
			first := s.BeginOrder(c.order("u0", false), shop.working)
			r := c.order("u1", false)
			r.Header.Set("Prefer", "respond-async")
			a := s.Send(r)
			a.Is(t, 202, "")
			at := a.Header.Get("Location")
			reload(s, other)
			shop.done <- struct{}{}
			(<-first).Is(t, 201, "")
			sold, plain := 2, 0
			switch c.becomes {
			case "skipped":
				s.Eventually("an order that is skipped", func() (string, bool) {
					q := queueShown(s)
					return fmt.Sprintf("%+v", q), q.Skipped == 1
				})
				reload(s, base)
			case "released":
				sold = 1
				s.Eventually("its release", func() (string, bool) { got := getAt(s, at).Body; return got, strings.Contains(got, `"released"`) })
				if len(s.Logged("an order that waited does not reach its gate any more, because another handler answers it or breaks it off: its stock is released")) == 0 {
					t.Error("the log does not say it")
				}
			}
			if c.becomes != "released" {
				select {
				case got := <-shop.working:
					if got != "u1" {
						t.Fatalf("the shop works on the order of %s", got)
					}
				case <-stocktest.Soon(t).Done():
					t.Fatalf("the order waits on: %+v", queueShown(s))
				}
				shop.done <- struct{}{}
				s.Eventually("the answer", func() (string, bool) { a := getAt(s, at); return a.Body, a.Status == 201 })
			}
			if c.few == 0 {
				plain = sold
			}
			for sku, want := range map[string]string{"few": fmt.Sprintf("3 %d 0 0 %d", 3-sold*c.few, sold*c.few), "plain": fmt.Sprintf("100 %d 0 0 %d", 100-plain, plain)} {
				s.Eventually(sku, func() (string, bool) { got := s.StockOf(sku); return got, got == want })
			}
			if ids, bare := reservations(t, shop.Take()); len(ids) != sold || bare > 0 || sold == 2 && ids[0] == ids[1] {
				t.Errorf("the shop got the reservations %v, and %d requests without a token", ids, bare)
			}
		})
	}
}
