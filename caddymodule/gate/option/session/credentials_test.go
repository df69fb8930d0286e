package session_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
)

// A shop may name the cart in the path: then two requests about one cart wait for each other.
func TestCredentialInThePath(t *testing.T) {
	c, err := (&session.Options{Credentials: []string{"{path.2}"}}).Compile()
	if err != nil {
		t.Fatal(err)
	}
	keys := func(path string) []session.Key {
		keys, err := c.Keys(httptest.NewRequest("POST", path, nil), caddy.NewReplacer())
		if err != nil {
			t.Fatal(err)
		}
		return keys
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

// Servers read an id in several forms as the same one.
func TestCredentialIsAnID(t *testing.T) {
	c, err := (&session.Options{Credentials: []string{"{path.1}", "{cookie.cart}", "{header.Authorization}"}}).Compile()
	if err != nil {
		t.Fatal(err)
	}
	keys := func(id string) (all []session.Key) {
		r := httptest.NewRequest("POST", "/carts/"+id+"/complete", nil)
		r.Header.Set("Cookie", "cart="+id)
		r.Header.Set("Authorization", "Bearer "+id)
		all, err := c.Keys(r, caddy.NewReplacer())
		if err != nil || len(all) != 3 {
			t.Fatal(id, all, err)
		}
		return all
	}
	const id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	for _, same := range [][]string{
		{id, "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "6ba7b8109dad11d180b400c04fd430c8", "6BA7B8109dad11d180b400c04fd430c8", "urn:uuid:" + id, "URN:UUID:" + id, "%7B" + id + "%7D", "%7b" + strings.ToUpper(id) + "%7d"},
		{"7", "07", "0007", "%307"}, {"0", "00"},
	} {
		for _, other := range same[1:] {
			if !slices.Equal(keys(same[0]), keys(other)) {
				t.Errorf("%s is another session than %s", other, same[0])
			}
		}
	}
	for _, other := range [][2]string{{id, "6ba7b810-9dad-11d1-80b4-00c04fd430c9"}, {"7", "70"}, {"7", "0x7"}, {"cart_07", "cart_7"}, {"0", "x"}} {
		if slices.Equal(keys(other[0]), keys(other[1])) {
			t.Errorf("%s and %s are one session", other[0], other[1])
		}
	}
}

// However a client spells a credential, it is the same to a request that waits for it.
func TestCredentialInAnySpelling(t *testing.T) {
	c, err := (&session.Options{Credentials: []string{"{cookie.my_session}", "{header.Authorization}", "{path.2}"}}).Compile()
	if err != nil {
		t.Fatal(err)
	}
	keys := func(path string, header ...string) ([]session.Key, error) {
		r := httptest.NewRequest("POST", path, nil)
		r.Header.Add(header[0], header[1])
		return c.Keys(r, caddy.NewReplacer())
	}
	for header, test := range map[string]struct{ plain, odd []string }{
		"Cookie": {[]string{"my_session=aB+c"}, []string{
			"my_session=aB+c" + strings.Repeat(";", 4000), "my_session=aB+c\xa0", "my_session=\xa0aB+c", "my_session=aB%2Bc", "my_session=%61B%252Bc", `my_session="aB+c"`, "my.session=aB+c",
			"my[session=aB+c", "my session =aB+c", "%6dy_session=aB+c", "x=1,my_session=aB+c", "my_session=aB+c,x=1", `x="; my_session=aB+c`, "my_session=aB+c; x=\x7f\x80", "my_session=ab+C",
		}},
		"Authorization": {[]string{"Bearer t.o-k"}, []string{"bearer t.o-k", "Bearer\tt.o-k", "Bearer  t.o-k ", "Bearer t.o-k\xa0", "Bearer\xa0t.o-k", "Bearer\u00a0t.o-k", "Bearer t.o-k\ufeff"}},
	} {
		want, err := keys("/carts", header, test.plain[0])
		if err != nil || len(want) != 1 {
			t.Fatal(want, err)
		}
		for _, odd := range test.odd {
			if got, err := keys("/carts", header, odd); err != nil || !slices.Contains(got, want[0]) {
				t.Errorf("%s: %q is another session, error %v", header, odd, err)
			}
		}
		for _, other := range []string{"my_session=aB-c", "my_session.sig=aB+c", "session=aB+c", "Bearer t.o.k"} {
			if got, err := keys("/carts", header, other); err != nil || slices.Contains(got, want[0]) {
				t.Errorf("%s: %q is the same session, error %v", header, other, err)
			}
		}
	}
	one, err := keys("/a/b/cart_1", "X", "1")
	if err != nil || len(one) != 1 {
		t.Fatal(one, err)
	}
	for _, path := range []string{"/a//b/cart_1", "/a/b/x/../cart_1", "/a/b/cart_1;x=1", `/a/b\cart_1`, "/a/b/%2e/cart_1", "/a/b%2fcart_1", "/a/b/%63art_1", "/a/b/CART_1", "/a/b/%2563art_1"} {
		if got, err := keys(path, "X", "1"); err != nil || !slices.Contains(got, one[0]) {
			t.Errorf("%s: servers may find the cart in it, error %v", path, err)
		}
	}
	if _, err := keys(strings.Repeat("/a.php/..;%252e", 60), "X", "1"); err == nil {
		t.Error("a path that has any number of readings passes")
	}
	if _, err := keys("/carts", "Cookie", `my_session="\141B+c"`); err == nil {
		t.Error("a backslash passes")
	}
	many := ""
	for n := range 40 {
		many += fmt.Sprintf("my_session=%d;", n)
	}
	if _, err := keys("/carts", "Cookie", many); err == nil {
		t.Error("any number of credentials passes")
	}
}

// The id of a cart is the same one in any form, as a credential of the request is; and none of these is its
// credential.
func TestCredentialInTheCart(t *testing.T) {
	c, err := (&session.Options{Credentials: []string{"{cookie.lookup.cart.id}", "{lookup.cart.id}"}}).Compile()
	if err != nil {
		t.Fatal(err)
	}
	key := func(id string) []session.Key { return c.CartKeys(map[string]string{"cart.id": id}) }
	const id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	for _, same := range [][]string{{id, strings.ToUpper(id), strings.ReplaceAll(id, "-", "")}, {"7", "007", `"7"`}} {
		for _, other := range same[1:] {
			if !slices.Equal(key(same[0]), key(other)) {
				t.Errorf("%s and %s are two carts", same[0], other)
			}
		}
	}
	if len(key("")) != 0 || len(key(" ")) != 0 || slices.Equal(key("7"), key("8")) || slices.Equal(key("7"), c.CartKeys(map[string]string{"id": "7"})) {
		t.Error("carts are not told apart")
	}
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set("Cookie", "lookup.cart.id=7")
	if keys, err := c.Keys(r, caddy.NewReplacer()); err != nil || len(keys) != 1 || slices.Equal(keys, key("7")) {
		t.Errorf("a request names a cart: %v, %v", keys, err)
	}
	if len(c.Looked()) != 1 || !c.InRequest() {
		t.Errorf("looked up: %q", c.Looked())
	}
}
