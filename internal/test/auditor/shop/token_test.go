package shop

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// order sends an order with a token straight to the shop, and returns what the shop noted.
func order(t *testing.T, s *Shop, h *auditor.History, buyer string, tokens ...string) *auditor.Order {
	t.Helper()
	r, err := http.NewRequest("POST", "http://"+s.Addr()+"/api/order", strings.NewReader(`{"items":[{"sku":"7","quantity":2}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-User-Id", buyer)
	for _, token := range tokens {
		r.Header.Add("Stockgate-Token", token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return h.Orders[len(h.Orders)-1]
}

// The shop takes an order with a good token, and names what is wrong with any other.
func TestShopVerifiesTokens(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, foreign, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	}))
	defer edge.Close()
	h := new(auditor.History)
	s, err := Start(h)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Trust(edge.URL)

	part := base64.RawURLEncoding.EncodeToString
	sign := func(key ed25519.PrivateKey, header map[string]any, claims map[string]any) string {
		a, _ := json.Marshal(header)
		b, _ := json.Marshal(claims)
		text := part(a) + "." + part(b)
		return text + "." + part(ed25519.Sign(key, []byte(text)))
	}
	for i, test := range []struct {
		name, problem string
		key           ed25519.PrivateKey
		header        map[string]any
		claims        map[string]any
		buyer         string
	}{
		{name: "good"},
		{name: "of a foreign key", problem: "signature", key: foreign},
		{name: "of an unknown key", problem: "no edge publishes", header: map[string]any{"kid": "k2"}},
		{name: "without a signature", problem: `alg "none"`, header: map[string]any{"alg": "none"}},
		{name: "of another type", problem: "typ", header: map[string]any{"typ": "JWT"}},
		{name: "expired", problem: "expired", claims: map[string]any{"exp": time.Now().Unix()}},
		{name: "for another shop", problem: "for \"other\"", claims: map[string]any{"aud": "other"}},
		{name: "of another issuer", problem: "of \"other\"", claims: map[string]any{"iss": "other"}},
		{name: "without an id", problem: "names no reservation", claims: map[string]any{"jti": ""}},
		{name: "of another buyer", problem: `of buyer "ann"`, buyer: "bob"},
		{name: "of other lines", problem: "is about", claims: map[string]any{"lines": []auditor.Line{{SKU: "7", Qty: 1}}}},
		{name: "of another ref", problem: "ref", claims: map[string]any{"ref": "r"}},
	} {
		header := map[string]any{"typ": "stockgate+jwt", "alg": "EdDSA", "kid": "k1"}
		claims := map[string]any{"iss": "stockgate", "aud": "order-backend", "sub": "ann", "jti": fmt.Sprintf("id%d", i), "exp": time.Now().Add(time.Hour).Unix(),
			"sale": "s", "lines": []auditor.Line{{SKU: "7", Qty: 2}}}
		for k, v := range test.header {
			header[k] = v
		}
		for k, v := range test.claims {
			claims[k] = v
		}
		key, buyer := private, "ann"
		if test.key != nil {
			key = test.key
		}
		if test.buyer != "" {
			buyer = test.buyer
		}
		token := sign(key, header, claims)
		o := order(t, s, h, buyer, token)
		if test.problem == "" && (o.Problem != "" || !o.Taken) || !strings.Contains(o.Problem, test.problem) || o.Taken == (o.Problem != "") {
			t.Errorf("a token %s: taken %v, problem %q, want …%s…", test.name, o.Taken, o.Problem, test.problem)
		}
		if test.problem == "" {
			if again := order(t, s, h, buyer, token); !again.Again || again.Proof != o.Proof {
				t.Errorf("the same token again: %v, the first time %v", again, o)
			}
		}
	}
	for _, tokens := range [][]string{nil, {"a.b.c", "a.b.c"}, {"rubbish"}, {"!.!.!"}} {
		if o := order(t, s, h, "ann", tokens...); o.Problem == "" || o.Taken {
			t.Errorf("tokens %q: taken %v, problem %q", tokens, o.Taken, o.Problem)
		}
	}
}

// An order that breaks off is none: the shop notes that a part of it came.
func TestShopIsCutOff(t *testing.T) {
	h := new(auditor.History)
	s, err := Start(h)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "POST /api/order HTTP/1.1\r\nHost: shop.test\r\nX-Attempt: 4\r\nContent-Length: 60\r\n\r\n{\"items\":")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c); err != nil { // until the shop closes it
		t.Fatal(err)
	}
	if cut := h.CutOrders(); len(h.Orders) != 0 || len(cut) != 1 || cut[0].Attempt != "4" {
		t.Errorf("orders %v, cut off %v", h.Orders, cut)
	}
}
