package gate_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/token"
)

// wine is a sale with bundles.
const wine = `
id: wine
starts_at: 2020-11-11T00:00:00+08:00
ends_at: 2090-11-12T00:00:00+08:00
items:
  - {sku: bottle, stock: 40}
  - {sku: glass, stock: 3}
  - {sku: carton, ids: [c12], components: [{sku: bottle, units: 12}]}
  - {sku: gift, components: [{sku: bottle}, {sku: glass, units: 2}]}
limits:
  - {per: buyer, every: sale, count: units, max: 1, sku: carton}
  - {per: buyer, every: sale, count: units, max: 15, sku: bottle}
`

// openWine sells it by a gate whose orders have items with sku and n.
func openWine(t *testing.T) (*sitetest.Site, *sitetest.Backend) {
	t.Helper()
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, `stockgate_guard
	@order path /api/order
	stockgate @order checkout {
		buyer {header.X-User-Id}
		lines {json.items} sku n
	}
	handle_path /stock/* {
		stockgate_status
	}
	reverse_proxy `+shop.Addr())
	sitetest.Do[any](s, "PUT", "/stockgate/sales/wine", wine)
	sitetest.Do[any](s, "POST", "/stockgate/sales/wine/open", "")
	s.Refresh()
	return s, shop
}

// cart is an order of a buyer: "sku n sku n".
func cart(buyer, items string) *http.Request {
	words := strings.Fields(items)
	rows := []string{}
	for i := 0; i < len(words); i += 2 {
		rows = append(rows, fmt.Sprintf(`{"sku":%q,"n":%s}`, words[i], words[i+1]))
	}
	return sitetest.WithBody(sitetest.NewOrder("X-User-Id", buyer), `{"items":[`+strings.Join(rows, ",")+`]}`)
}

// claimsOf are the claims of the token that the shop got with its only request.
func claimsOf(t *testing.T, shop *sitetest.Backend) (c token.Claims) {
	t.Helper()
	got := shop.Take()
	if len(got) != 1 {
		t.Fatalf("the shop got %v", got)
	}
	raw, err := sitetest.B64.DecodeString(strings.Split(got[0].Header.Get("Stockgate-Token")+"..", ".")[1])
	if err != nil || json.Unmarshal(raw, &c) != nil {
		t.Fatalf("no token: %v", got)
	}
	return c
}

// An order of a bundle takes all of its components or none, its token names both, limits count both, and
// it comes back by its components, or as the bundle.
func TestBundlesAreSold(t *testing.T) {
	s, shop := openWine(t)
	stock := func(bottle, glass string) {
		t.Helper()
		b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/wine", "")
		if got := b.Cell("bottle", "") + ", " + b.Cell("glass", ""); got != bottle+", "+glass || !b.Balanced {
			t.Errorf("the stock is %s, want %s, %s", got, bottle, glass)
		}
	}
	sold := func(buyer, items, lines, bundles string) string {
		t.Helper()
		s.Send(cart(buyer, items)).Is(t, 201, "")
		c := claimsOf(t, shop)
		if got := fmt.Sprint(c.Lines, c.Bundles); got != lines+" "+bundles {
			t.Errorf("%s: the token has %s, want %s %s", items, got, lines, bundles)
		}
		return c.ID
	}
	ann := sold("ann", "c12 1 bottle 2", "[{carton 1 } {bottle 2 }]", "[{carton [{bottle 12 }]}]")
	stock("40 26 0 0 14", "3 3 0 0 0")
	gift := sold("bob", "gift 1", "[{gift 1 }]", "[{gift [{bottle 1 } {glass 2 }]}]")
	stock("40 25 0 0 15", "3 1 0 0 2")
	sold("bob", "bottle 1", "[{bottle 1 }]", "[]")
	stock("40 24 0 0 16", "3 1 0 0 2")

	s.Send(cart("cem", "gift 1")).Is(t, 409, "sold_out")        // of two glasses there is one
	s.Send(cart("ann", "carton 1")).Is(t, 403, "limit_reached") // one carton for each buyer
	s.Send(cart("ann", "bottle 2")).Is(t, 403, "limit_reached") // 14 of 15 bottles
	s.Send(cart("dan", "carton 2")).Is(t, 403, "limit_reached")
	s.Send(cart("dan", "carton 1 bottle 4")).Is(t, 403, "limit_reached")
	stock("40 24 0 0 16", "3 1 0 0 2")

	s.OK("reservation", "return", ann, "bottle=3", "--id", "r1")
	stock("40 27 0 0 13", "3 1 0 0 2")
	s.Send(cart("ann", "carton 1")).Is(t, 403, "limit_reached") // her carton is not back
	s.OK("reservation", "return", ann, "bottle=11", "--id", "r2")
	stock("40 38 0 0 2", "3 1 0 0 2")
	s.OK("reservation", "return", gift, "gift=1", "--id", "r3")
	stock("40 39 0 0 1", "3 3 0 0 0")
	if a := s.Run("reservation", "return", gift, "gift=1", "--id", "r4"); a.Status == 0 || !strings.Contains(a.Errors, "1 units of bottle are to be returned, but the order has none, or all of them were returned before") {
		t.Errorf("a gift came back twice: %+v", a)
	}
	sold("ann", "carton 1", "[{carton 1 }]", "[{carton [{bottle 12 }]}]")
	stock("40 27 0 0 13", "3 3 0 0 0")

	shown := sitetest.Do[adminapi.SaleShown](s, "GET", "/stockgate/sales/wine", "")
	if got := fmt.Sprint(shown.Bundles); got != "[{carton  3 2 [{bottle 12 }]} {gift  1 1 [{bottle 1 } {glass 2 }]}]" {
		t.Errorf("its bundles: %s", got)
	}
	if out := s.OK("sale", "show", "wine"); !strings.Contains(out, "12×bottle") || !strings.Contains(out, "1×bottle 2×glass") {
		t.Errorf("sale show says\n%s", out)
	}
	if a := s.Admin("POST", "/stockgate/sales/wine/items/carton/stock", `{"id":"x","delta":1}`); !strings.Contains(a.Body, "carton is a bundle and has no stock of its own: add units of bottle") {
		t.Errorf("stock was added to a bundle: %d %s", a.Status, a.Body)
	}
	for item, want := range map[string]string{"carton": "on_sale", "c12": "on_sale", "gift": "on_sale", "glass": "on_sale"} {
		s.Eventually(want, func() (string, bool) {
			a := s.Get("/stock/sales/wine/items/" + item)
			return item + " " + a.Body, strings.Contains(a.Body, `"state":"`+want+`"`)
		})
	}
}
