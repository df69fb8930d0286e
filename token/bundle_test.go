package token_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/token"
)

// wine is a token of a carton, of a gift box and of single bottles.
func wine() token.Claims {
	c := claims()
	c.Lines = []token.Line{{SKU: "carton", Quantity: 2}, {SKU: "bottle", Quantity: 1}, {SKU: "gift", Quantity: 1}}
	c.Bundles = []token.Bundle{
		{SKU: "carton", Components: []token.Line{{SKU: "bottle", Quantity: 24}}},
		{SKU: "gift", Components: []token.Line{{SKU: "bottle", Quantity: 1}, {SKU: "glass", Quantity: 2, Region: "eu"}}},
	}
	return c
}

// A token of bundles has the lines as they were ordered, which shops compare, and what is held for them.
func TestBundles(t *testing.T) {
	key := mustKey(t, token.KindEd25519, vectorPEM)
	signed := mustSign(t, key, wine())
	const want = `"lines":[{"sku":"carton","qty":2},{"sku":"bottle","qty":1},{"sku":"gift","qty":1}],` +
		`"bundles":[{"sku":"carton","components":[{"sku":"bottle","qty":24}]},{"sku":"gift","components":[{"sku":"bottle","qty":1},{"sku":"glass","qty":2,"region":"eu"}]}]}`
	if body := decode(t, strings.Split(signed, ".")[1]); !strings.HasSuffix(body, want) {
		t.Errorf("claims %s\nwant … %s", body, want)
	}
	got, err := mustVerifier(t, token.Options{Keys: []token.Key{key}}).Verify(signed, token.Expect{
		Subject: "buyer-7", Lines: []token.Line{{SKU: "bottle", Quantity: 1}, {SKU: "gift", Quantity: 1, Region: "eu"}, {SKU: "carton", Quantity: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if held := got.Held(); !reflect.DeepEqual(held, []token.Line{{SKU: "bottle", Quantity: 26}, {SKU: "glass", Quantity: 2, Region: "eu"}}) {
		t.Errorf("it holds %v", held)
	}
	if c := claims(); !reflect.DeepEqual(c.Held(), c.Lines) {
		t.Errorf("without bundles it holds %v", c.Held())
	}
}

// What does not say of which units a line is, is no token.
func TestBundlesOfNoLine(t *testing.T) {
	key := mustKey(t, token.KindEd25519, vectorPEM)
	signer, err := token.NewSigner("", audience, key)
	if err != nil {
		t.Fatal(err)
	}
	v := mustVerifier(t, token.Options{Keys: []token.Key{key}})
	body := decode(t, strings.Split(mustSign(t, key, wine()), ".")[1])
	for name, c := range map[string]struct {
		change   func(*token.Claims)
		old, new string
	}{
		"of no line":        {func(c *token.Claims) { c.Bundles[0].SKU = "box" }, `"bundles":[{"sku":"carton"`, `"bundles":[{"sku":"box"`},
		"twice":             {func(c *token.Claims) { c.Bundles[0].SKU = "gift" }, `"bundles":[{"sku":"carton"`, `"bundles":[{"sku":"gift"`},
		"of two lines":      {func(c *token.Claims) { c.Lines[1].SKU = "carton" }, `{"sku":"bottle","qty":1},{"sku":"gift","qty":1}]`, `{"sku":"carton","qty":1},{"sku":"gift","qty":1}]`},
		"of nothing":        {func(c *token.Claims) { c.Bundles[0].Components = nil }, `[{"sku":"bottle","qty":24}]`, `[]`},
		"of no units":       {func(c *token.Claims) { c.Bundles[0].Components[0].Quantity = 0 }, `"qty":24`, `"qty":0`},
		"of a nameless one": {func(c *token.Claims) { c.Bundles[0].Components[0].SKU = "" }, `[{"sku":"bottle","qty":24}]`, `[{"sku":"","qty":24}]`},
	} {
		w := wine()
		c.change(&w)
		if _, err := signer.Sign(w); !errors.Is(err, token.ErrClaims) {
			t.Errorf("%s: signed, %v", name, err)
		}
		if !strings.Contains(body, c.old) {
			t.Fatalf("%s: %s is not in %s", name, c.old, body)
		}
		if _, err := v.Verify(rawEd25519(t, goodHeader, strings.Replace(body, c.old, c.new, 1)), token.Expect{AnySubject: true}); err == nil {
			t.Errorf("%s: verified", name)
		}
	}
}

// Components count towards the size of a token before the stock is held.
func TestBundlesFit(t *testing.T) {
	signer, err := token.NewSigner("", audience, mustKey(t, token.KindEd25519, vectorPEM))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	for n := 1; ; n++ {
		c := wine()
		c.Bundles[0].Components[0].SKU = strings.Repeat("x", n)
		fits := signer.Fits(c)
		c.IssuedAt, c.ExpiresAt = now, now+30
		if _, err := signer.Sign(c); fits && err != nil {
			t.Fatalf("%d: it was to fit, and: %v", n, err)
		} else if !fits {
			if n < 100 {
				t.Errorf("nothing fits")
			}
			return
		}
	}
}
