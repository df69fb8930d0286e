package e2e_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/token"
)

// loginSecret signs the bearer tokens of the shop's login.
const loginSecret = "fedcba9876543210fedcba9876543210"

// signedIn is an order with the shop's own bearer token, whose claims are JSON.
func signedIn(o order, secret, claims string) order {
	encode := base64.RawURLEncoding.EncodeToString
	message := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(message))
	o.header = http.Header{"Authorization": {"Bearer " + message + "." + encode(mac.Sum(nil))}}
	return o
}

// The buyer whom the shop's token names is the one whom lists and limits know and
// whom the reservation is for; what else a client says of himself is nothing.
func TestBuyerOfTheShopsToken(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{
		shop:   serve(t, s),
		app:    listFile(t, "bad", "buyer:mallory\nphone:+1 555 0100\n"),
		source: "jwt hmac " + loginSecret + "\nbuyer {jwt.sub}\nidentity phone {jwt.contact.phone}\nline {json.sku} {json.quantity}",
		gate:   "deny bad",
	})
	e.sellLimited("flash", `  - {sku: "7", stock: 10}`, "  - {per: [buyer, phone], every: sale, max: 1, count: orders}\nmissing: skip")
	bid := one("ann", "7", 1, "") // a header that says ann is on all of them
	as := func(claims string) order { return signedIn(bid, loginSecret, claims) }

	e.mustBuy(bid, 401, "no_buyer")
	e.mustBuy(signedIn(bid, strings.ToUpper(loginSecret), `{"sub":"ann"}`), 401, "no_buyer")
	e.mustBuy(as(`{"sub":"mallory"}`), 403, "denied")
	e.mustBuy(as(`{"sub":"bob","contact":{"phone":"+1-555-0100"}}`), 403, "denied")
	if n := s.orders(); n != 0 {
		t.Fatalf("the shop got %d orders", n)
	}
	e.mustBuy(as(`{"sub":"bob","contact":{"phone":"111"}}`), 201, "")
	e.mustBuy(as(`{"sub":"bob","session":2}`), 403, "limit_reached")
	e.mustBuy(as(`{"sub":"cat","contact":{"phone":111}}`), 403, "limit_reached")
	e.mustBuy(as(`{"sub":"cat"}`), 201, "")

	remote, err := token.NewRemoteKeys(token.RemoteOptions{URL: e.url + "/.well-known/jwks.json", Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := token.NewVerifier(token.Options{Remote: remote, Audience: "order-backend"})
	if err != nil {
		t.Fatal(err)
	}
	var subjects []string
	for _, r := range s.requests() {
		if r.header.Get(token.Header) == "" {
			continue
		}
		claims, err := verifier.Verify(r.header.Get(token.Header), token.Expect{AnySubject: true})
		if err != nil {
			t.Fatal(err)
		}
		subjects = append(subjects, claims.Subject)
		if r.header.Get("Authorization") == "" {
			t.Error("the shop does not get its own token")
		}
	}
	if fmt.Sprint(subjects) != "[bob cat]" {
		t.Errorf("the reservations are for %v", subjects)
	}
	e.expect("flash", 8, 0, 0, 2)
}
