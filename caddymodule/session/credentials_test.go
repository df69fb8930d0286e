package session_test

import (
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/session"
)

// A shop may name the cart in the path: then two requests about one cart wait for each other.
func TestCredentialInThePath(t *testing.T) {
	c, err := (&session.Options{Credentials: []string{"{path.2}"}}).Compile()
	if err != nil {
		t.Fatal(err)
	}
	keys := func(path string) []session.Key {
		return c.Keys(httptest.NewRequest("POST", path, nil), caddy.NewReplacer())
	}
	one := keys("/store/carts/cart_1/complete")
	if len(one) != 1 {
		t.Fatalf("%d keys", len(one))
	}
	if other := keys("/store/carts/%63art_1/line-items"); !slices.Equal(one, other) {
		t.Error("two requests about a cart have different credentials")
	}
	if other := keys("/store/carts/cart_2/complete"); slices.Equal(one, other) {
		t.Error("two carts have the same credential")
	}
	if none := keys("/store/carts"); len(none) != 0 {
		t.Error("a path without a cart has a credential")
	}
}
