package token_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/token"
)

// The bytes of a token are a contract with backends in other languages.
func TestTokenBytes(t *testing.T) {
	seg := strings.Split(mustSign(t, mustKey(t, token.KindEd25519, vectorPEM), claims()), ".")
	if got := decode(t, seg[0]); got != goodHeader {
		t.Errorf("header %s\nwant   %s", got, goodHeader)
	}
	const want = `{"iss":"stockgate","aud":"order-backend","sub":"buyer-7","jti":"019a7d3e-5b1c-7f6e-9d5a-3f0d6f6b2c11",` +
		`"iat":1790000000,"exp":1790000025,"ep":3,"sale":"double11","ref":"cart-9",` +
		`"lines":[{"sku":"20002001","qty":2},{"sku":"20002002","qty":1,"region":"beijing"}]}`
	if got := decode(t, seg[1]); got != want {
		t.Errorf("claims %s\nwant   %s", got, want)
	}
}

func TestRefIsLeftOutWhenThereIsNone(t *testing.T) {
	c := claims()
	c.Ref = ""
	signed := mustSign(t, mustKey(t, token.KindHMAC, secret), c)
	if body := decode(t, strings.Split(signed, ".")[1]); strings.Contains(body, `"ref"`) {
		t.Error(body)
	}
}

func TestTheSameClaimsGiveTheSameToken(t *testing.T) {
	for kind, material := range map[string]string{token.KindEd25519: vectorPEM, token.KindHMAC: secret} {
		key := mustKey(t, kind, material)
		first := mustSign(t, key, claims())
		if again := mustSign(t, key, claims()); again != first {
			t.Errorf("%s: two tokens for one reservation", kind)
		}
	}
}

// The largest token that is signed is one that is verified, too.
func TestSizeAtItsExactBound(t *testing.T) {
	for kind, material := range map[string]string{token.KindEd25519: vectorPEM, token.KindHMAC: secret} {
		key := mustKey(t, kind, material)
		v := mustVerifier(t, token.Options{Keys: []token.Key{key}})
		largest := 0
		for n := 2000; ; n++ {
			c := claims()
			c.Ref = strings.Repeat("r", n)
			signed, err := mustSigner(t, key).Sign(c)
			if err != nil {
				if !errors.Is(err, token.ErrTooLarge) {
					t.Fatal(err)
				}
				break
			}
			largest = len(signed)
			if _, err := v.Verify(signed, token.Expect{AnySubject: true}); err != nil {
				t.Fatalf("%s: %d bytes were signed, but: %v", kind, largest, err)
			}
		}
		if largest < token.MaxSize-1 || largest > token.MaxSize {
			t.Errorf("%s: the largest token has %d bytes, the bound is %d", kind, largest, token.MaxSize)
		}
	}
}

func TestFiftyLongLinesAreTooLarge(t *testing.T) {
	c := claims()
	c.Lines = nil
	for i := range sale.MaxLines {
		c.Lines = append(c.Lines, sale.Line{SKU: fmt.Sprintf("%0128d", i), Quantity: 1})
	}
	_, err := mustSigner(t, mustKey(t, token.KindEd25519, vectorPEM)).Sign(c)
	if !errors.Is(err, token.ErrTooLarge) || !strings.Contains(err.Error(), "50 lines") {
		t.Error(err)
	}
}

func TestSignRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*token.Claims){
		"no subject":         func(c *token.Claims) { c.Subject = "" },
		"subject not UTF-8":  func(c *token.Claims) { c.Subject = "\xff" },
		"no id":              func(c *token.Claims) { c.ID = "" },
		"no sale":            func(c *token.Claims) { c.Sale = "" },
		"ref not UTF-8":      func(c *token.Claims) { c.Ref = "\xff" },
		"exp is iat":         func(c *token.Claims) { c.ExpiresAt = c.IssuedAt },
		"no iat":             func(c *token.Claims) { c.IssuedAt = -1 },
		"negative epoch":     func(c *token.Claims) { c.Epoch = -1 },
		"no lines":           func(c *token.Claims) { c.Lines = nil },
		"line without SKU":   func(c *token.Claims) { c.Lines[0].SKU = "" },
		"SKU not UTF-8":      func(c *token.Claims) { c.Lines[0].SKU = "\xff" },
		"region not UTF-8":   func(c *token.Claims) { c.Lines[0].Region = "\xff" },
		"quantity 0":         func(c *token.Claims) { c.Lines[0].Quantity = 0 },
		"quantity below 0":   func(c *token.Claims) { c.Lines[0].Quantity = -1 },
		"quantity too large": func(c *token.Claims) { c.Lines[0].Quantity = sale.MaxUnits + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			c := claims()
			spoil(&c)
			if signed, err := mustSigner(t, mustKey(t, token.KindHMAC, secret)).Sign(c); !errors.Is(err, token.ErrClaims) {
				t.Errorf("%q, %v", signed, err)
			}
		})
	}
}

func TestNewSignerRefuses(t *testing.T) {
	key := mustKey(t, token.KindHMAC, secret)
	if _, err := token.NewSigner("", "", key); !errors.Is(err, token.ErrClaims) {
		t.Errorf("no audience: %v", err)
	}
	if _, err := token.NewSigner("\xff", audience, key); !errors.Is(err, token.ErrClaims) {
		t.Errorf("issuer not UTF-8: %v", err)
	}
	if _, err := token.NewSigner("", audience, token.Key{}); !errors.Is(err, token.ErrKey) {
		t.Errorf("zero key: %v", err)
	}
}

func TestSignAllocatesLittle(t *testing.T) {
	s := mustSigner(t, mustKey(t, token.KindEd25519, vectorPEM))
	c := claims()
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := s.Sign(c); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 8 {
		t.Errorf("%v allocations a token", allocs)
	}
}

func BenchmarkSign(b *testing.B) {
	for kind, material := range map[string]string{token.KindEd25519: vectorPEM, token.KindHMAC: secret} {
		b.Run(kind, func(b *testing.B) {
			s, c := mustSigner(b, mustKey(b, kind, material)), claims()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Sign(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	for kind, material := range map[string]string{token.KindEd25519: vectorPEM, token.KindHMAC: secret} {
		b.Run(kind, func(b *testing.B) {
			key := mustKey(b, kind, material)
			v, signed := mustVerifier(b, token.Options{Keys: []token.Key{key}}), mustSign(b, key, claims())
			expect := token.Expect{Subject: "buyer-7", Lines: claims().Lines}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(signed, expect); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
