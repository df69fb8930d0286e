package gate_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/sale"
)

// openPaymentPages opens a site where buyers arrange a payment, and complete the order when they
// have paid.
func openPaymentPages(t *testing.T, answer http.HandlerFunc) (*sitetest.Backend, *sitetest.Site) {
	shop := sitetest.NewBackend(t, answer)
	gate := func(path, name, more string) string {
		return `stockgate ` + path + ` ` + name + ` {
		buyer {header.X-User-Id}
		lines {json.items} sku n
		ref   {json.cart}
		` + more + `
	}
	`
	}
	return shop, sitetest.OpenCaddyfile(t, "route {\n"+gate("/arrange", "arrange", "outcome backend\nhold_for 15m")+gate("/pay", "pay", "continue")+"reverse_proxy "+shop.Addr()+"\n}")
}

func buyAt(s *sitetest.Site, path, buyer, items string) sitetest.Answer {
	r := keyed(buyer, "", `{"cart":"C-1","items":[`+items+`]}`)
	r.URL.Path = path
	return s.Send(r)
}

// A buyer who changes the cart before the payment gets another hold in the place of the first,
// and pays for that. What the new cart lacks stays held as long as the first token is good.
func TestAnotherCart(t *testing.T) {
	shop, s := openPaymentPages(t, sitetest.Created)
	first := buyAt(s, "/arrange", "ann", `{"sku":"few","n":2}`)
	first.Is(t, 201, "")
	buyAt(s, "/arrange", "ann", `{"sku":"few","n":2}`).Is(t, 409, "duplicate")
	buyAt(s, "/arrange", "ann", `{"sku":"few","n":4}`).Is(t, 409, "sold_out")
	if got := s.StockOf("few"); got != "3 1 2 0 0" {
		t.Errorf("a refusal has changed the stock: %s", got)
	}
	// all three, of which two are its own
	buyAt(s, "/arrange", "bob", `{"sku":"few","n":1}`).Is(t, 201, "")
	buyAt(s, "/arrange", "ann", `{"sku":"few","n":3}`).Is(t, 409, "all_held")
	second := buyAt(s, "/arrange", "ann", `{"sku":"few","n":1},{"sku":"plain","n":5}`)
	second.Is(t, 201, "")
	if got := s.StockOf("few") + " " + s.StockOf("plain"); got != "3 0 3 0 0 100 95 5 0 0" {
		t.Errorf("stock %s", got)
	}
	buyAt(s, "/arrange", "cid", `{"sku":"few","n":1}`).Is(t, 409, "all_held")
	shop.Take()
	paid := buyAt(s, "/pay", "ann", `{"sku":"few","n":1},{"sku":"plain","n":5}`)
	paid.Is(t, 201, "")
	got := tokensOf(shop, t)
	want := []sale.Line{{SKU: "few", Quantity: 1}, {SKU: "plain", Quantity: 5}}
	if len(got) != 1 || got[0].Ref != "C-1" || got[0].Jti != paid.Header.Get("Stockgate-Reservation") || !reflect.DeepEqual(got[0].Lines, want) {
		t.Errorf("the shop got %+v", got)
	}
	if got := s.StockOf("few") + " " + s.StockOf("plain"); got != "3 0 2 0 1 100 95 0 0 5" {
		t.Errorf("stock %s", got)
	}
	buyAt(s, "/arrange", "ann", `{"sku":"few","n":1}`).Is(t, 409, "already_ordered")
	// without a hold the gate reserves as ever
	buyAt(s, "/pay", "dan", `{"sku":"plain","n":1}`).Is(t, 201, "")
	if got := s.StockOf("plain"); got != "100 94 0 0 6" {
		t.Errorf("stock %s", got)
	}
}

// A hold is swapped in its own sale only: where another sale sells the items now, the attempt is a
// new one.
func TestAnotherCartInAnotherSale(t *testing.T) {
	_, s := openPaymentPages(t, sitetest.Created)
	buyAt(s, "/arrange", "ann", `{"sku":"few","n":1}`).Is(t, 201, "")
	file := strings.NewReplacer("id: double11", "id: second").Replace(sitetest.SaleFile)
	sitetest.Do[any](s, "PUT", "/stockgate/sales/second", file)
	sitetest.Do[any](s, "POST", "/stockgate/sales/second/open", "")
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/pause", "")
	buyAt(s, "/arrange", "ann", `{"sku":"few","n":2}`).Is(t, 201, "")
	second := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/second", "").Cell("few", "")
	if got := s.StockOf("few") + " " + second; got != "3 2 1 0 0 3 1 2 0 0" {
		t.Errorf("stock %s", got)
	}
}

// The shop sells with the first token after all: the units come from the holds that were made in
// its place.
func TestAnotherCartAndTheFirstToken(t *testing.T) {
	_, s := openPaymentPages(t, sitetest.Created)
	first := buyAt(s, "/arrange", "ann", `{"sku":"few","n":3}`)
	buyAt(s, "/arrange", "ann", `{"sku":"few","n":1}`).Is(t, 201, "")
	if got := s.StockOf("few"); got != "3 0 3 0 0" {
		t.Errorf("stock %s", got)
	}
	sitetest.Do[any](s, "POST", "/stockgate/reservations/"+first.Header.Get("Stockgate-Reservation")+"/confirm", "")
	if got := s.StockOf("few"); got != "3 0 0 0 3" {
		t.Errorf("stock %s", got)
	}
	buyAt(s, "/pay", "ann", `{"sku":"few","n":1}`).Is(t, 409, "already_ordered")
}

// Nothing is swapped while a request of the hold is at the shop.
func TestAnotherCartAtTheShop(t *testing.T) {
	working, let := make(chan string, 4), make(chan struct{})
	_, s := openPaymentPages(t, func(w http.ResponseWriter, _ *http.Request) {
		working <- ""
		<-let
		w.WriteHeader(201)
	})
	r := keyed("ann", "", `{"cart":"C-1","items":[{"sku":"few","n":1}]}`)
	r.URL.Path = "/arrange"
	arranging := s.BeginOrder(r, working)
	buyAt(s, "/arrange", "ann", `{"sku":"few","n":2}`).Is(t, 409, "pending")
	buyAt(s, "/pay", "ann", `{"sku":"few","n":3}`).Is(t, 409, "pending")
	buyAt(s, "/pay", "ann", `{"sku":"few","n":1}`).Is(t, 409, "duplicate")
	close(let)
	(<-arranging).Is(t, 201, "")
	buyAt(s, "/pay", "ann", `{"sku":"few","n":2}`).Is(t, 201, "")
	if got := s.StockOf("few"); got != "3 1 0 0 2" {
		t.Errorf("stock %s", got)
	}
}

// A hold that took the place of another one ends without an order: its request was never sent, or the
// payment was declined. What the first token names stays held, and the buyer comes again.
func TestAnotherCartThatIsNotPaid(t *testing.T) {
	for name, c := range map[string]struct {
		pay    http.HandlerFunc // nil: there is no server
		status int
	}{
		"never sent": {nil, 502},
		"declined":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(402) }, 402},
	} {
		t.Run(name, func(t *testing.T) {
			nowhere := sitetest.NewBackend(t, c.pay)
			if c.pay == nil {
				nowhere.Close()
			}
			shop := sitetest.NewBackend(t, sitetest.Created)
			gate := func(path, name, more string) string {
				return "stockgate " + path + "* " + name + " {\nbuyer {header.X-User-Id}\nlines {json.items} sku n\nref {json.cart}\n" + more + "\n}\n"
			}
			s := sitetest.OpenCaddyfile(t, "route {\n"+gate("/arrange", "arrange", "outcome backend\nhold_for 15m")+gate("/pay", "pay", "continue")+
				"reverse_proxy /pay/there "+nowhere.Addr()+"\nreverse_proxy "+shop.Addr()+"\n}")
			first := buyAt(s, "/arrange", "ann", `{"sku":"few","n":2}`)
			first.Is(t, 201, "")
			buyAt(s, "/pay/there", "ann", `{"sku":"few","n":1},{"sku":"plain","n":5}`).Is(t, c.status, "")
			if got := s.StockOf("few") + " " + s.StockOf("plain"); got != "3 1 2 0 0 100 100 0 0 0" {
				t.Errorf("stock %s", got)
			}
			buyAt(s, "/arrange", "bob", `{"sku":"few","n":2}`).Is(t, 409, "all_held")
			buyAt(s, "/pay/there", "ann", `{"sku":"few","n":3}`).Is(t, c.status, "") // all, of which two are its own
			buyAt(s, "/arrange", "ann", `{"sku":"few","n":1}`).Is(t, 201, "")
			buyAt(s, "/pay", "ann", `{"sku":"few","n":1}`).Is(t, 201, "")
			if got := s.StockOf("few"); got != "3 1 1 0 1" { // the first token is still good
				t.Errorf("stock %s", got)
			}
		})
	}
}
