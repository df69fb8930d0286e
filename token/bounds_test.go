package token_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/token"
)

// Numbers come back as they were signed, the least and the largest ones too.
func TestNumbersSurvive(t *testing.T) {
	v := mustVerifier(t, token.Options{Secret: secret, Now: at(0, 0)})
	for _, c := range []struct{ iat, exp, epoch, qty int64 }{
		{0, 1, 0, 1},
		{1, 2, 1, 10},
		{issued, expires, 1_790_000_000_123, 9_876_543_210},
		{math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64, sale.MaxUnits},
	} {
		want := claims()
		want.IssuedAt, want.ExpiresAt, want.Epoch, want.Lines[0].Quantity = c.iat, c.exp, c.epoch, c.qty
		got, err := v.Verify(mustSign(t, mustKey(t, token.KindHMAC, secret), want), token.Expect{AnySubject: true})
		if got == nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		want.Issuer, want.Audience = token.DefaultIssuer, audience
		if fmt.Sprint(*got) != fmt.Sprint(want) {
			t.Errorf("got  %+v\nwant %+v", *got, want)
		}
	}
}

// Members that this version does not know may nest so deep and no deeper.
func TestUnknownMembersNest(t *testing.T) {
	v := mustVerifier(t, token.Options{Keys: []token.Key{mustKey(t, token.KindEd25519, vectorPEM)}})
	body := payload(t)
	for open, closing := range map[string]string{"[": "]", `{"a":`: "}", `[{"a":`: "}]"} {
		for levels, good := range map[int]bool{14: true, 15: true, 16: false, 17: false} {
			each := strings.Count(open, "[") + strings.Count(open, "{")
			nested := strings.Repeat(open, levels/each) + strings.Repeat("[", levels%each) + "1" + strings.Repeat("]", levels%each) + strings.Repeat(closing, levels/each)
			for where, signed := range map[string]string{
				"header": rawEd25519(t, `{"x":`+nested+`,`+goodHeader[1:], body),
				"claims": rawEd25519(t, goodHeader, `{"x":`+nested+`,`+body[1:]),
				"line":   rawEd25519(t, goodHeader, strings.Replace(body, `"qty":2`, `"qty":2,"x":`+nested, 1)),
			} {
				if _, err := v.Verify(signed, token.Expect{AnySubject: true}); good && err != nil || !good && !errors.Is(err, token.ErrMalformed) {
					t.Errorf("%s, %d levels of %s: %v", where, levels, open, err)
				}
			}
		}
	}
}

// Lines that are not lines are refused, whatever they are.
func TestLinesOfAnotherKind(t *testing.T) {
	v := mustVerifier(t, token.Options{Keys: []token.Key{mustKey(t, token.KindEd25519, vectorPEM)}})
	body := payload(t)
	line := `{"sku":"20002001","qty":2}`
	if !strings.Contains(body, line) {
		t.Fatal(body)
	}
	front, _, _ := strings.Cut(body, `"lines":`)
	for _, lines := range []string{
		line, `{"a":` + line + `}`, `"` + "a" + `"`, `1`, `null`, `[[` + line + `]]`, `["a"]`, `[null]`, `[1]`, `[` + line + `,null]`,
		`[["sku","20002001","qty",2]]`, `[{"sku":["a"],"qty":2}]`, `[{"sku":"a","qty":[2]}]`, `[{"sku":"a","qty":{}}]`, `[` + line, `[` + line + `}`,
	} {
		for _, end := range []string{"}", "", "]"} {
			_, err := v.Verify(rawEd25519(t, goodHeader, front+`"lines":`+lines+end), token.Expect{AnySubject: true})
			if !errors.Is(err, token.ErrMalformed) {
				t.Errorf("%s%s: %v", lines, end, err)
			}
		}
	}
	if _, err := v.Verify(rawEd25519(t, goodHeader, front+`"lines":[`+line+`]}`), token.Expect{AnySubject: true}); err != nil {
		t.Error(err)
	}
}

// What a token says fills no error message.
func TestErrorsAreShort(t *testing.T) {
	v := mustVerifier(t, token.Options{Secret: secret})
	for n, want := range map[int]string{64: strings.Repeat("k", 64) + `"`, 65: strings.Repeat("k", 64) + `…"`, 3000: strings.Repeat("k", 64) + `…"`} {
		header := `{"alg":"EdDSA","typ":"stockgate+jwt","kid":"` + strings.Repeat("k", n) + `"}`
		_, err := v.Verify(encode(header)+"."+encode("{}")+".", token.Expect{AnySubject: true})
		if !errors.Is(err, token.ErrUnknownKey) || !strings.Contains(err.Error(), `"`+want) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// A verifier takes the largest leeway, and without a clock it has this machine's.
func TestLargestLeewayOnThisClock(t *testing.T) {
	v, err := token.NewVerifier(token.Options{Audience: audience, Secret: secret, Leeway: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for ends, want := range map[time.Duration]error{time.Hour: nil, -time.Hour: token.ErrExpired} {
		c := claims()
		c.IssuedAt, c.ExpiresAt = 1, time.Now().Add(ends).Unix()
		if _, err := v.Verify(mustSign(t, mustKey(t, token.KindHMAC, secret), c), token.Expect{AnySubject: true}); !errors.Is(err, want) {
			t.Errorf("it ends in %v: %v", ends, err)
		}
	}
}
