package gate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/token"
)

// Of buyers who want cartons, bottles and gifts at the same time none gets a part of a bundle.
func TestBundlesInACrowd(t *testing.T) {
	s, shop := openWine(t)
	var buyers sync.WaitGroup
	for i := range 30 {
		for j, items := range []string{"carton 1", "bottle 5", "gift 1"} {
			buyers.Go(func() { s.Send(cart(fmt.Sprintf("b%d-%d", i, j), items)) })
		}
	}
	buyers.Wait()
	units := map[string]int64{}
	for _, got := range shop.Take() {
		raw, _ := sitetest.B64.DecodeString(strings.Split(got.Header.Get("Stockgate-Token")+"..", ".")[1])
		var c token.Claims
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		for _, l := range c.Held() {
			units[l.SKU] += l.Quantity
		}
		var order struct{ Items []struct{ SKU string } }
		if err := json.Unmarshal([]byte(got.Body), &order); err != nil || order.Items[0].SKU != c.Lines[0].SKU {
			t.Errorf("the order %s got a token of %v", got.Body, c.Lines)
		}
	}
	b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/wine", "")
	for _, c := range b.Items {
		if c.Confirmed != units[c.SKU] || c.Held != 0 || c.Available < 0 || !b.Balanced {
			t.Errorf("of %s the shop has orders of %d, and the stock is %+v", c.SKU, units[c.SKU], c)
		}
		if c.SKU == "bottle" && c.Available >= 5 || c.SKU == "glass" && c.Available >= 2 {
			t.Errorf("buyers went away, and %+v", c)
		}
	}
}
