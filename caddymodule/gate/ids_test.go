package gate_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/sale"
)

// Whichever name of an item an order has, its stock is that of the item: no name lets units by.
func TestItemsByOtherNames(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, `
	stockgate /api/order {
		buyer {header.X-User-Id}
		lines {json.items} id n
		other_items pass
	}
	reverse_proxy `+shop.Addr())
	file := strings.Replace(sitetest.SaleFile, "{sku: plain, stock: 100}", `{sku: plain, ids: ["1", "v-1"], stock: 4}`, 1)
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", file)
	order := func(items string) sitetest.Answer {
		return s.Send(keyed("ann", "", `{"items":[`+items+`]}`))
	}
	order(`{"id":1,"n":1},{"id":"plain","n":1},{"id":"v-1","n":1}`).Is(t, 201, "")
	got := tokensOf(shop, t)
	if want := []sale.Line{{SKU: "plain", Quantity: 3}}; len(got) != 1 || !reflect.DeepEqual(got[0].Lines, want) {
		t.Errorf("the shop got %+v", got)
	}
	for _, id := range []string{`"1"`, `"01"`, `"V-1"`, `"plain"`} {
		if a := order(`{"id":` + id + `,"n":2}`); a.Status < 400 {
			t.Errorf("%s: %d %s", id, a.Status, a.Body)
		}
	}
	order(`{"id":"1","n":1}`).Is(t, 201, "")
	order(`{"id":"v-1","n":1}`).Is(t, 409, "sold_out")
	if got := s.StockOf("plain"); got != "4 0 0 0 4" {
		t.Errorf("stock %s", got)
	}
	shop.Take()
	order(`{"id":"2","n":1}`).Is(t, 201, "")
	if got := shop.Take(); len(got) != 1 || got[0].Header.Get("Stockgate-Token") != "" {
		t.Errorf("another item: %+v", got)
	}
}
