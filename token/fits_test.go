package token_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/token"
)

// Fits never promises a token that Sign refuses, and refuses few that it would make.
func TestFits(t *testing.T) {
	t.Parallel()
	signer, err := token.NewSigner("", "order-backend", mustKey(t, token.KindHMAC, secret))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	for letter, long := range map[string]func(*token.Claims) *string{
		"x":      func(c *token.Claims) *string { return &c.Subject },
		`"`:      func(c *token.Claims) *string { return &c.Sale },
		"\x01":   func(c *token.Claims) *string { return &c.Ref },
		"é":      func(c *token.Claims) *string { return &c.Lines[1].SKU },
		"\u2028": func(c *token.Claims) *string { return &c.Lines[0].Region },
	} {
		fits, refused := 0, 0
		for n := 0; refused < 300; n++ {
			asked := token.Claims{
				Subject: "u", Sale: "double11", Ref: "cart-1",
				Lines: []token.Line{{SKU: "20002001", Quantity: 2, Region: "beijing"}, {SKU: `a"b&c`, Quantity: 10000}},
			}
			if n > 0 {
				*long(&asked) = strings.Repeat(letter, n)
			}
			said := signer.Fits(asked)
			full := asked
			full.ID, full.IssuedAt, full.ExpiresAt, full.Epoch = "01981b6e-0000-7000-8000-000000000000", now, now+30, time.Now().UnixMilli()
			signed, err := signer.Sign(full)
			switch {
			case err != nil && !errors.Is(err, token.ErrTooLarge):
				t.Fatal(err)
			case said && err != nil:
				t.Fatalf("%d times %q: it was to fit, and: %v", n, letter, err)
			case said:
				fits++
			case err == nil && len(signed) < token.MaxSize-64:
				t.Fatalf("%d times %q: refused, and the token has %d bytes", n, letter, len(signed))
			default:
				refused++
			}
		}
		if fits == 0 || refused == 0 {
			t.Errorf("%q: %d fit, %d do not: the test tests nothing", letter, fits, refused)
		}
	}
}

func TestFitsAllocatesNothing(t *testing.T) {
	signer, err := token.NewSigner("", "order-backend", mustKey(t, token.KindHMAC, secret))
	if err != nil {
		t.Fatal(err)
	}
	small := token.Claims{Subject: "u42", Sale: "double11", Lines: []token.Line{{SKU: "20002001", Quantity: 2}}}
	if n := testing.AllocsPerRun(100, func() { signer.Fits(small) }); n != 0 {
		t.Errorf("%v allocations to see that a small order fits", n)
	}
}
