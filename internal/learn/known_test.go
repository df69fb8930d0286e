package learn_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/learn"
)

// stored reads recordings of testdata, with texts replaced: pairs of an old and a new one.
func stored(t *testing.T, files []string, pairs ...string) ([]*learn.Recording, error) {
	t.Helper()
	var all []*learn.Recording
	for _, name := range files {
		raw, err := os.ReadFile(filepath.Join("testdata", name+".har"))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(pairs...).Replace(string(raw))
		if len(pairs) > 0 && text == string(raw) {
			t.Fatalf("%s has none of %q", name, pairs)
		}
		rec, err := learn.Read("buy.har", strings.NewReader(text))
		if err != nil {
			return nil, err
		}
		all = append(all, rec)
	}
	return all, nil
}

// TestKnownOnlyIfAllFits changes one thing in a recording of a known shop.
func TestKnownOnlyIfAllFits(t *testing.T) {
	for _, c := range []struct {
		name, file string
		pairs      []string
		known      bool
		question   string // a part of one
	}{
		{"Vendure", "vendure-buy", nil, true, "Is this Vendure 3.7?"},
		{"a plugin's request", "vendure-buy", []string{"setCustomerForOrder", "subscribeToNews"}, true, "of a plugin, or of another version: buy.har entry 5: POST /shop-api subscribeToNews"},
		{"a token in place of the cookie", "vendure-buy", []string{`"Cookie","value":"session=`, `"Authorization","value":"Bearer `}, true, "Is this Vendure 3.7?"},
		{"a name that looks random", "vendure-buy", []string{"setCustomerForOrder", "sub7scribe7To7News7X"}, true, "buy.har entry 5: POST /shop-api."},
		{"a coupon in place of a payment", "vendure-buy", []string{`($input: PaymentInput!) { addPaymentToOrder(input: $input)`, `($state: String!) { transitionOrderToState(state: $state)`,
			`\"input\":{\"method\":\"dummy\",\"metadata\":{}}`, `\"state\":\"PaymentSettled\"`, "addPaymentToOrder", "transitionOrderToState"}, true, "entry 12: POST /shop-api transitionOrderToState"},
		{"another host of the shop", "vendure-buy", []string{`slug name } } }\",\"variables\":{}}"},"url":"https://shop.`, `slug name } } }\",\"variables\":{}}"},"url":"https://api.`}, true, "The browser also calls api.example.com, past this site"},
		{"another path", "vendure-buy", []string{"/shop-api", "/api/shop"}, false, "its path is another one"},
		{"another cookie", "vendure-buy", []string{"session", "connect"}, false, "header Authorization, cookie session"},
		{"no SKU", "vendure-buy", []string{`\"sku\":`, `\"mark\":`}, false, "with their SKUs"},
		{"two SKUs of one id", "vendure-buy", []string{`{\"data\":{\"eligibleShippingMethods\":[{\"id\":\"1\",`, `{\"data\":{\"eligibleShippingMethods\":[{\"id\":\"1\",\"sku\":\"X-9\",`}, false, "with their SKUs"},
		{"an SKU that is the buyer's address", "vendure-buy", []string{`\"sku\":\"SNK-1\"`, `\"sku\":\"ada@shop.example\"`}, false, "with their SKUs"},
		{"an SKU that no file can have", "vendure-buy", []string{`\"sku\":\"SNK-1\"`, `\"sku\":\"{env.HOME}\"`}, false, "with their SKUs"},
		{"a door more", "vendure-buy", []string{"setOrderShippingAddress", "placeExpressOrder"}, false, "looks like an order too"},
		{"hashes", "vendure-buy", []string{`\"query\":\"query Collections { collections { items { id slug name } } }\"`, `\"extensions\":{\"persistedQuery\":{\"sha256Hash\":\"00\"}}`}, false, "sends the hash of a document"},
		{"Medusa", "medusa-buy", nil, true, "Is this Medusa 2.21?"},
		{"no key", "medusa-buy", []string{"x-publishable-api-key", "x-api"}, false, "header X-Publishable-Api-Key"},
		{"behind a prefix", "medusa-buy", []string{".com/store", ".com/api/store"}, false, "its path is another one"},
		{"a route of a plugin", "medusa-buy", []string{"/shipping-methods", "/gift-wrap"}, true, "buy.har entry 8: POST /store/carts/*/gift-wrap"},
		{"a route that orders", "medusa-buy", []string{"/store/payment-collections?", "/store/buy-now?"}, false, "POST /store/buy-now looks like an order too"},
	} {
		recs, err := stored(t, []string{c.file}, c.pairs...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		l, err := learn.Learn(recs, learn.Options{})
		if err != nil {
			if c.known || !strings.Contains(err.Error(), c.question) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if questions := l.QuestionsFile(nil); (l.Known() != "") != c.known || !strings.Contains(questions, c.question) {
			t.Errorf("%s: it is known as %q\n%s", c.name, l.Known(), questions)
		}
		if err := l.Leak(l.Caddyfile(learn.Addresses{}) + l.QuestionsFile(nil) + l.SaleFile(learn.Window{})); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestKnownShopWithoutSensitiveData leaves out what browsers leave out.
func TestKnownShopWithoutSensitiveData(t *testing.T) {
	recs, err := stored(t, []string{"vendure-buy"}, `"Cookie"`, `"X-None"`, `"Set-Cookie"`, `"X-None"`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := learn.Learn(recs, learn.Options{}); err == nil || !strings.Contains(err.Error(), "Export HAR (with sensitive data)") {
		t.Error(err)
	}
	if recs, err = stored(t, []string{"medusa-buy", "medusa-again", "medusa-refused"}); err != nil {
		t.Fatal(err)
	}
	l, err := learn.Learn(recs, learn.Options{}) // its guests have no cookies
	if err != nil || l.Known() != "Medusa 2.21" || len(l.Refused) != 1 {
		t.Error(l, err)
	}
}

// TestKnownShopAtHostileAddresses gives the host of a known shop other names.
func TestKnownShopAtHostileAddresses(t *testing.T) {
	for _, host := range []string{"127.0.0.1:3000", "localhost", "shop_1.test", "{env.HOME}", "a}b", "[::1]:80", "xn--80ak6aa92e.com", strings.Repeat("a", 300) + ".test"} {
		recs, err := stored(t, []string{"vendure-buy"}, "shop.example.com", host)
		if err != nil {
			t.Fatal(err)
		}
		l, err := learn.Learn(recs, learn.Options{})
		if err != nil {
			continue // no request has an address
		}
		for _, line := range strings.Split(l.Caddyfile(learn.Addresses{}), "\n") {
			if strings.HasPrefix(line, "{$SITE:") && !slices.Contains([]string{"{$SITE:http://:8080} {", "{$SITE:xn--80ak6aa92e.com} {", "{$SITE:" + strings.Repeat("a", 300) + ".test} {"}, line) {
				t.Errorf("%s: %s", host, line)
			}
		}
	}
}
