package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// The stream tells what Redis has, cell by cell, after every kind of movement.
func TestStreamFollowsTheStock(t *testing.T) {
	s, shopper := open(t)
	next := listen(t, s, "/open/events")
	event, hello, _ := next()
	if event != "hello" || len(hello.Acts) != 0 {
		t.Errorf("%s %+v", event, hello)
	}
	is := func(want ...int64) func(news) bool {
		return func(n news) bool { return fmt.Sprint(n.Sale.Stock) == fmt.Sprint(want) }
	}
	until(t, next, "the sale is there", is(215, 215, 0, 0, 0))
	shopper.Hold("h", "plain", 3, time.Hour)
	n := until(t, next, "3 are held", is(215, 212, 3, 0, 0))
	n = until(t, next, "its age is told", func(n news) bool { return n.Sale.Questions != nil && len(n.Sale.Questions.Ages) == 1 })
	if age := n.Sale.Questions.Ages[0]; age.Holds != 1 || age.Units != 3 || age.Below == 0 {
		t.Errorf("the holds by age: %+v", age)
	}
	if len(n.Sale.Movers) != 1 || n.Sale.Movers[0].SKU != "plain" {
		t.Errorf("what moves: %+v", n.Sale.Movers)
	}
	shopper.Must(shopper.Doubt(t.Context(), "double11", "h", "timeout"))
	until(t, next, "3 are in doubt", is(215, 212, 0, 3, 0))
	shopper.Must(shopper.Confirm(t.Context(), "double11", "h", "shop", "x"))
	until(t, next, "3 are sold", is(215, 212, 0, 0, 3))
	shopper.Hold("g", "few", 1, time.Hour)
	shopper.Must(shopper.Release(t.Context(), "double11", "g", "shop", "x"))
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/items/few/stock", `{"id":"more","delta":10}`)
	until(t, next, "there are 10 more", is(225, 222, 0, 0, 3))
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", strings.Replace(sitetest.SaleFile, "{sku: few, stock: 3}", "{sku: few, stock: 3}\n  - {sku: new, stock: 9}", 1))
	until(t, next, "there is another item", is(234, 231, 0, 0, 3))
	n = until(t, next, "a point tells it", func(n news) bool {
		return len(n.Point) == 14 && n.Point[1] != nil && *n.Point[1] == 3 && *n.Point[4] == 231
	})
	if now := float64(time.Now().UnixMilli()); *n.Point[0] > now || *n.Point[0] < now-sitetest.Patience.Seconds()*1000 {
		t.Errorf("a point at %v", *n.Point[0])
	}
	if _, hello, _ := listen(t, s, "/open/events?sale=double11")(); len(hello.History) == 0 {
		t.Error("another viewer hears nothing of what was")
	}
}

// Items are found by a part of their name, and in any order.
func TestItems(t *testing.T) {
	s, shopper := open(t)
	shopper.Hold("h", "plain", 3, time.Hour)
	next := listen(t, s, "/open/events")
	until(t, next, "3 are held", func(n news) bool { return n.Sale.Stock[2] == 3 })
	find := func(query string) string {
		t.Helper()
		a := s.Get("/open/items?sale=double11" + query)
		var list struct {
			Items []struct {
				SKU, Region string
				Stock       [5]int64
			}
			Matches int
		}
		if err := json.Unmarshal([]byte(a.Body), &list); err != nil || a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		text := fmt.Sprint(list.Matches)
		for _, i := range list.Items {
			text += fmt.Sprint(" ", i.SKU, i.Region, i.Stock)
		}
		return text
	}
	for query, want := range map[string]string{
		"&limit=2":                "6 plain[100 97 3 0 0] few[3 3 0 0 0]",
		"&q=BEI":                  "1 twobeijing[40 40 0 0 0]",
		"&q=two&sort=available":   "2 twobeijing[40 40 0 0 0] twoshanghai[60 60 0 0 0]",
		"&sort=available&limit=1": "6 few[3 3 0 0 0]",
		"&sort=held&limit=1":      "6 plain[100 97 3 0 0]",
		"&q=none":                 "0",
		"&q=%2F":                  "1 a/b%c?d#e[5 5 0 0 0]",
	} {
		if got := find(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for _, bad := range []string{"sale=..", "sale=double11&sort=price", "sale=double11&limit=201", "sale=double11&limit=x", "sale=double11&q=" + strings.Repeat("x", 257)} {
		if a := s.Get("/open/items?" + bad); a.Status != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, a.Status)
		}
	}
	if a := s.Get("/open/items?sale=none"); a.Status != http.StatusNotFound {
		t.Errorf("an unknown sale: %d", a.Status)
	}
}

// A reload ends the streams at once, so that the old servers can stop; what was collected
// stays. Nothing is left running at the end.
func TestReloadEndsStreams(t *testing.T) {
	before := goleak.IgnoreCurrent()
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	s.Gates = []any{at("/open", page(object{"unprotected": true}))}
	s.Load(app)
	s.OpenSale()
	next := listen(t, s, "/open/events")
	until(t, next, "the sale is there", func(n news) bool { return n.Sale.ID == "double11" && n.Point != nil })
	s.Load(app)
	for ok := true; ok; {
		_, _, ok = next()
	}
	_, hello, _ := listen(t, s, "/open/events")()
	if len(hello.History) == 0 {
		t.Error("a reload has forgotten the past")
	}
	s.Gates = nil
	s.Load(nil)
	s.Eventually("nothing left", func() (string, bool) {
		err := goleak.Find(before, goleak.IgnoreAnyFunction("github.com/caddyserver/caddy/v2.replaceLocalAdminServer.func2"))
		return fmt.Sprint(err), err == nil || !strings.Contains(err.Error(), "dashboard")
	})
}
