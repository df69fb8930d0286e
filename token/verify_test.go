package token_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/token"
)

func TestASignedTokenVerifies(t *testing.T) {
	for _, kind := range []struct{ kind, material, alg string }{
		{token.KindEd25519, vectorPEM, token.EdDSA},
		{token.KindHMAC, secret, token.HS256},
	} {
		t.Run(kind.kind, func(t *testing.T) {
			key := mustKey(t, kind.kind, kind.material)
			if key.Alg() != kind.alg {
				t.Errorf("alg %s, want %s", key.Alg(), kind.alg)
			}
			signed := mustSign(t, key, claims())
			got, err := mustVerifier(t, token.Options{Keys: []token.Key{key}}).
				Verify(signed, token.Expect{Subject: "buyer-7", Lines: claims().Lines})
			if err != nil {
				t.Fatal(err)
			}
			want := claims()
			want.Issuer, want.Audience = token.DefaultIssuer, audience
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("got  %+v\nwant %+v", *got, want)
			}
		})
	}
}

func TestClaimsOfAnyTextSurvive(t *testing.T) {
	key := mustKey(t, token.KindHMAC, secret)
	v := mustVerifier(t, token.Options{Secret: secret})
	for _, text := range []string{"a", `"`, `\`, "\x00", "\x7f", "<&>", "购买者", "\u2028", strings.Repeat("x", 500)} {
		c := claims()
		c.Subject, c.Ref = text, text
		got, err := v.Verify(mustSign(t, key, c), token.Expect{Subject: text})
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got.Ref != text {
			t.Errorf("ref %q came back as %q", text, got.Ref)
		}
	}
}

// Each of these is one good token with one thing wrong.
func TestRejections(t *testing.T) {
	key := mustKey(t, token.KindEd25519, vectorPEM)
	good := mustSign(t, key, claims())
	body := payload(t)
	public := publicKey(t)
	seg := strings.Split(good, ".")
	other, _, err := token.GenerateEd25519()
	if err != nil {
		t.Fatal(err)
	}
	header := func(h string) string { return rawEd25519(t, h, body) }
	payload := func(from, to string) string {
		if !strings.Contains(body, from) {
			t.Fatalf("%s does not contain %s", body, from)
		}
		return rawEd25519(t, goodHeader, strings.Replace(body, from, to, 1))
	}
	noneHeader := `{"alg":"none","kid":"` + vectorKID + `","typ":"stockgate+jwt"}`
	macHeader := `{"alg":"HS256","kid":"` + vectorKID + `","typ":"stockgate+jwt"}`

	for name, c := range map[string]struct {
		token string
		want  error
	}{
		"empty":                     {"", token.ErrMalformed},
		"two parts":                 {seg[0] + "." + seg[1], token.ErrMalformed},
		"four parts":                {good + ".", token.ErrMalformed},
		"too long":                  {strings.Repeat("a", token.MaxSize+1), token.ErrMalformed},
		"not base64url":             {seg[0] + "." + seg[1] + ".+/+/", token.ErrMalformed},
		"padded":                    {good + "==", token.ErrMalformed},
		"line end in the signature": {good[:len(good)-4] + "\n" + good[len(good)-4:], token.ErrMalformed},
		"space before":              {" " + good, token.ErrMalformed},
		"another spelling":          {good[:len(good)-1] + nextLetter(good), token.ErrMalformed},

		"header tampered":    {encode(strings.Replace(goodHeader, "}", ` }`, 1)) + "." + seg[1] + "." + seg[2], token.ErrSignature},
		"claims tampered":    {seg[0] + "." + encode(strings.Replace(body, `"qty":2`, `"qty":9`, 1)) + "." + seg[2], token.ErrSignature},
		"signature tampered": {seg[0] + "." + seg[1] + "." + flip(seg[2]), token.ErrSignature},
		"signature empty":    {seg[0] + "." + seg[1] + ".", token.ErrSignature},
		"signature short":    {seg[0] + "." + seg[1] + "." + seg[2][:40], token.ErrSignature},

		"alg none":                      {encode(noneHeader) + "." + seg[1] + ".", token.ErrAlgorithm},
		"alg none, signed":              {header(noneHeader), token.ErrAlgorithm},
		"alg None":                      {header(strings.Replace(noneHeader, "none", "None", 1)), token.ErrAlgorithm},
		"alg RS256":                     {header(strings.Replace(goodHeader, "EdDSA", "RS256", 1)), token.ErrAlgorithm},
		"HS256 with the public key":     {rawHMAC(public, macHeader, body), token.ErrAlgorithm},
		"HS256 with the public PEM":     {rawHMAC(publicPEM(t, public), macHeader, body), token.ErrAlgorithm},
		"HS256 with the public key JWK": {rawHMAC(publicJWK(t, key), macHeader, body), token.ErrAlgorithm},

		"typ JWT":          {header(strings.Replace(goodHeader, "stockgate+jwt", "JWT", 1)), token.ErrType},
		"typ in caps":      {header(strings.Replace(goodHeader, "stockgate+jwt", "STOCKGATE+JWT", 1)), token.ErrType},
		"no typ":           {header(`{"alg":"EdDSA","kid":"` + vectorKID + `"}`), token.ErrMalformed},
		"no alg":           {header(`{"kid":"` + vectorKID + `","typ":"stockgate+jwt"}`), token.ErrMalformed},
		"no kid":           {header(`{"alg":"EdDSA","typ":"stockgate+jwt"}`), token.ErrMalformed},
		"kid a number":     {header(`{"alg":"EdDSA","typ":"stockgate+jwt","kid":1}`), token.ErrMalformed},
		"crit":             {header(`{"crit":["b64"],"b64":false,` + goodHeader[1:]), token.ErrMalformed},
		"crit empty":       {header(`{"crit":[],` + goodHeader[1:]), token.ErrMalformed},
		"alg twice":        {header(`{"alg":"none",` + goodHeader[1:]), token.ErrMalformed},
		"alg escaped":      {header(`{"\u0061lg":"none",` + goodHeader[1:]), token.ErrMalformed},
		"header array":     {header(`[]`), token.ErrMalformed},
		"header deep":      {header(`{"x":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + "," + goodHeader[1:]), token.ErrMalformed},
		"header + more":    {header(goodHeader + "{}"), token.ErrMalformed},
		"header not UTF-8": {header(`{"x":"` + "\xff" + `",` + goodHeader[1:]), token.ErrMalformed},

		"unknown key":       {mustSign(t, other, claims()), token.ErrUnknownKey},
		"kid of the other":  {header(strings.Replace(goodHeader, vectorKID, other.KID(), 1)), token.ErrUnknownKey},
		"jwk in the header": {header(strings.Replace(`{"jwk":`+string(publicJWK(t, key))+`,`+goodHeader[1:], `"kid":"`+vectorKID+`","typ"`, `"kid":"mine","typ"`, 1)), token.ErrUnknownKey},

		"issuer":             {payload(`"iss":"stockgate"`, `"iss":"stockgate2"`), token.ErrIssuer},
		"issuer missing":     {payload(`"iss":"stockgate",`, ``), token.ErrMalformed},
		"audience":           {payload(`"aud":"order-backend"`, `"aud":"other"`), token.ErrAudience},
		"audience missing":   {payload(`"aud":"order-backend",`, ``), token.ErrMalformed},
		"audience a list":    {payload(`"aud":"order-backend"`, `"aud":["order-backend"]`), token.ErrMalformed},
		"subject missing":    {payload(`"sub":"buyer-7",`, ``), token.ErrMalformed},
		"subject empty":      {payload(`"sub":"buyer-7"`, `"sub":""`), token.ErrMalformed},
		"subject null":       {payload(`"sub":"buyer-7"`, `"sub":null`), token.ErrMalformed},
		"subject in capital": {payload(`"sub":`, `"Sub":`), token.ErrMalformed},
		"jti missing":        {payload(`"jti":"019a7d3e-5b1c-7f6e-9d5a-3f0d6f6b2c11",`, ``), token.ErrMalformed},
		"iat missing":        {payload(`"iat":1790000000,`, ``), token.ErrMalformed},
		"exp missing":        {payload(`"exp":1790000025,`, ``), token.ErrMalformed},
		"exp a string":       {payload(`"exp":1790000025`, `"exp":"1790000025"`), token.ErrMalformed},
		"exp with exponent":  {payload(`"exp":1790000025`, `"exp":1e300`), token.ErrMalformed},
		"exp a fraction":     {payload(`"exp":1790000025`, `"exp":1790000025.5`), token.ErrMalformed},
		"exp before iat":     {payload(`"exp":1790000025`, `"exp":1790000000`), token.ErrMalformed},
		"ep missing":         {payload(`"ep":3,`, ``), token.ErrMalformed},
		"ep negative":        {payload(`"ep":3`, `"ep":-3`), token.ErrMalformed},
		"sale missing":       {payload(`"sale":"double11",`, ``), token.ErrMalformed},
		"lines missing":      {payload(`,"lines":[`, `,"x":[`), token.ErrMalformed},
		"lines empty":        {payload(`"lines":[`, `"lines":[],"x":[`), token.ErrMalformed},
		"qty 0":              {payload(`"qty":2`, `"qty":0`), token.ErrMalformed},
		"qty negative":       {payload(`"qty":2`, `"qty":-2`), token.ErrMalformed},
		"qty beyond int64":   {payload(`"qty":2`, `"qty":9223372036854775808`), token.ErrMalformed},
		"qty huge":           {payload(`"qty":2`, `"qty":9223372036854775807`), token.ErrMalformed},
		"qty missing":        {payload(`,"qty":2`, ``), token.ErrMalformed},
		"sku missing":        {payload(`"sku":"20002001",`, ``), token.ErrMalformed},
		"qty twice":          {payload(`"qty":2`, `"qty":2,"qty":9`), token.ErrMalformed},
		"exp twice":          {payload(`"exp":1790000025`, `"exp":1790000025,"exp":1890000025`), token.ErrMalformed},
		"unknown twice":      {payload(`"ep":3`, `"ep":3,"x":{"y":1,"y":2}`), token.ErrMalformed},
		"claims + more":      {rawEd25519(t, goodHeader, body+"1"), token.ErrMalformed},
		"claims truncated":   {rawEd25519(t, goodHeader, body[:len(body)-1]), token.ErrMalformed},
		"claims null":        {rawEd25519(t, goodHeader, "null"), token.ErrMalformed},
		"claims not UTF-8":   {payload(`buyer-7`, "buyer-\xff"), token.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			v := mustVerifier(t, token.Options{Keys: []token.Key{key}})
			got, err := v.Verify(c.token, token.Expect{AnySubject: true})
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if got != nil {
				t.Errorf("claims of a token that is not genuine: %+v", got)
			}
		})
	}
}

// The table above means something only if an unspoilt token passes by the same way.
func TestUnknownMembersPass(t *testing.T) {
	body := strings.Replace(payload(t), `"ep":3`, `"ep":3,"later":{"a":[1,{"b":null}]}`, 1)
	header := `{"x":[{}],` + goodHeader[1:]
	v := mustVerifier(t, token.Options{Keys: []token.Key{mustKey(t, token.KindEd25519, vectorPEM)}})
	if _, err := v.Verify(rawEd25519(t, header, body), token.Expect{AnySubject: true}); err != nil {
		t.Fatal(err)
	}
}

func TestSizeThatIsRead(t *testing.T) {
	header := strings.Replace(strings.Replace(goodHeader, vectorKID, mustKey(t, token.KindHMAC, secret).KID(), 1), "EdDSA", "HS256", 1)
	v := mustVerifier(t, token.Options{Secret: secret})
	body, seen := payload(t), 0
	for pad := range 3000 {
		signed := rawHMAC([]byte(secret), header, body[:1]+strings.Repeat(" ", pad)+body[1:])
		if len(signed) < token.MaxSize-1 || len(signed) > token.MaxSize+2 {
			continue
		}
		seen++
		_, err := v.Verify(signed, token.Expect{AnySubject: true})
		if fits := len(signed) <= token.MaxSize; fits != (err == nil) || !fits && !errors.Is(err, token.ErrMalformed) {
			t.Errorf("%d bytes: %v", len(signed), err)
		}
	}
	if seen < 2 {
		t.Errorf("%d tokens around the bound", seen)
	}
}

func TestEveryByteCounts(t *testing.T) {
	key := mustKey(t, token.KindEd25519, vectorPEM)
	good := mustSign(t, key, claims())
	v := mustVerifier(t, token.Options{Keys: []token.Key{key}})
	for i := range len(good) {
		for _, by := range []byte{'A', 'B', '.', 'z', '-'} {
			if good[i] == by {
				continue
			}
			if _, err := v.Verify(good[:i]+string(by)+good[i+1:], token.Expect{AnySubject: true}); err == nil {
				t.Fatalf("byte %d changed from %c to %c: accepted", i, good[i], by)
			}
		}
	}
}

func TestSecretsAreNotMixedUp(t *testing.T) {
	signed := mustSign(t, mustKey(t, token.KindHMAC, secret), claims())
	v := mustVerifier(t, token.Options{Secret: strings.Repeat("x", 32)})
	if _, err := v.Verify(signed, token.Expect{AnySubject: true}); !errors.Is(err, token.ErrUnknownKey) {
		t.Errorf("another secret: %v", err)
	}
	forged := rawHMAC([]byte(strings.Repeat("x", 32)), decode(t, strings.Split(signed, ".")[0]), payload(t))
	v = mustVerifier(t, token.Options{Secret: secret})
	if _, err := v.Verify(forged, token.Expect{AnySubject: true}); !errors.Is(err, token.ErrSignature) {
		t.Errorf("right kid, wrong secret: %v", err)
	}
	// The other direction of confusion: a key pair's signature under the secret's kid.
	header := strings.Replace(goodHeader, vectorKID, mustKey(t, token.KindHMAC, secret).KID(), 1)
	if _, err := v.Verify(rawEd25519(t, header, payload(t)), token.Expect{AnySubject: true}); !errors.Is(err, token.ErrAlgorithm) {
		t.Errorf("EdDSA under the kid of a secret: %v", err)
	}
}

func TestExpiryAtItsExactBound(t *testing.T) {
	key := mustKey(t, token.KindHMAC, secret)
	signed := mustSign(t, key, claims())
	for _, c := range []struct {
		name    string
		now     func() time.Time
		leeway  time.Duration
		expired bool
	}{
		{"one nanosecond before", at(expires-1, 999_999_999), 0, false},
		{"exactly", at(expires, 0), 0, true},
		{"one nanosecond after", at(expires, 1), 0, true},
		{"just inside the leeway", at(expires+1, 999_999_999), 2 * time.Second, false},
		{"exactly at its end", at(expires+2, 0), 2 * time.Second, true},
		{"long before iat", at(0, 0), 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := mustVerifier(t, token.Options{Secret: secret, Now: c.now, Leeway: c.leeway})
			got, err := v.Verify(signed, token.Expect{AnySubject: true})
			if errors.Is(err, token.ErrExpired) != c.expired || (err != nil) != c.expired {
				t.Fatalf("error %v, expired should be %v", err, c.expired)
			}
			if got == nil || got.ID != claims().ID {
				t.Errorf("claims %+v: an expired token is genuine all the same", got)
			}
		})
	}
}

// An unknown buyer has no token, unless the backend accepts any.
func TestNoBuyerToCompareWith(t *testing.T) {
	signed := mustSign(t, mustKey(t, token.KindHMAC, secret), claims())
	v := mustVerifier(t, token.Options{Secret: secret, Now: at(issued, 0)})
	for _, c := range []struct {
		expect token.Expect
		want   error
	}{
		{token.Expect{}, token.ErrSubject},
		{token.Expect{Lines: claims().Lines}, token.ErrSubject},
		{token.Expect{AnySubject: true}, nil},
		{token.Expect{Subject: "buyer-7", AnySubject: true}, nil},
		{token.Expect{Subject: "buyer-8", AnySubject: true}, token.ErrSubject},
	} {
		got, err := v.Verify(signed, c.expect)
		if !errors.Is(err, c.want) || got == nil || got.Subject != "buyer-7" {
			t.Errorf("%+v: %+v, %v; want %v", c.expect, got, err, c.want)
		}
	}
}

func TestExpectations(t *testing.T) {
	line := func(sku string, n int64, region string) sale.Line {
		return sale.Line{SKU: sku, Quantity: n, Region: region}
	}
	for _, c := range []struct {
		name    string
		subject string
		lines   []sale.Line
		want    error
	}{
		{"nothing asked", "", nil, nil},
		{"the buyer", "buyer-7", nil, nil},
		{"another buyer", "buyer-8", nil, token.ErrSubject},
		{"other case", "Buyer-7", nil, token.ErrSubject},
		{"same lines", "", []sale.Line{line("20002001", 2, ""), line("20002002", 1, "beijing")}, nil},
		{"other order", "", []sale.Line{line("20002002", 1, "beijing"), line("20002001", 2, "")}, nil},
		{"equal lines summed", "", []sale.Line{line("20002001", 1, ""), line("20002002", 1, "beijing"), line("20002001", 1, "")}, nil},
		{"region of stock that is not split", "", []sale.Line{line("20002001", 2, "beijing"), line("20002002", 1, "beijing")}, nil},
		{"summed over such regions", "", []sale.Line{line("20002001", 1, "beijing"), line("20002001", 1, ""), line("20002002", 1, "beijing")}, nil},
		{"other region", "", []sale.Line{line("20002001", 2, ""), line("20002002", 1, "shanghai")}, token.ErrLines},
		{"region left out", "", []sale.Line{line("20002001", 2, ""), line("20002002", 1, "")}, token.ErrLines},
		{"too few", "", []sale.Line{line("20002001", 1, ""), line("20002002", 1, "beijing")}, token.ErrLines},
		{"too many", "", []sale.Line{line("20002001", 3, ""), line("20002002", 1, "beijing")}, token.ErrLines},
		{"line missing", "", []sale.Line{line("20002001", 2, "")}, token.ErrLines},
		{"line added", "", []sale.Line{line("20002001", 2, ""), line("20002002", 1, "beijing"), line("x", 1, "")}, token.ErrLines},
		{"no line at all", "", []sale.Line{}, token.ErrLines},
		{"a zero line added", "", []sale.Line{line("20002001", 2, ""), line("20002002", 1, "beijing"), line("20002001", 0, "")}, token.ErrLines},
		{"a negative line evens it out", "", []sale.Line{line("20002001", -1, ""), line("20002001", 3, ""), line("20002002", 1, "beijing")}, token.ErrLines},
		{"a sum that wraps around", "", []sale.Line{line("20002001", 1<<62, ""), line("20002001", 1<<62, ""), line("20002001", 1<<62, ""), line("20002001", 1<<62, ""), line("20002001", 2, ""), line("20002002", 1, "beijing")}, token.ErrLines},
	} {
		t.Run(c.name, func(t *testing.T) {
			signed := mustSign(t, mustKey(t, token.KindHMAC, secret), claims())
			// Expired as well: what is asked for comes before the clock.
			for _, now := range []func() time.Time{at(issued, 0), at(expires, 0)} {
				got, err := mustVerifier(t, token.Options{Secret: secret, Now: now}).
					Verify(signed, token.Expect{Subject: c.subject, AnySubject: c.subject == "", Lines: c.lines})
				if c.want != nil && !errors.Is(err, c.want) {
					t.Errorf("error %v, want %v", err, c.want)
				}
				if c.want == nil && err != nil && !errors.Is(err, token.ErrExpired) {
					t.Error(err)
				}
				if got == nil {
					t.Error("no claims of a genuine token")
				}
			}
		})
	}
}

func TestVerifierOptions(t *testing.T) {
	for name, o := range map[string]token.Options{
		"no audience":     {Secret: secret},
		"no key":          {Audience: audience},
		"zero key":        {Audience: audience, Keys: []token.Key{{}}},
		"short secret":    {Audience: audience, Secret: "short"},
		"bad JWKS":        {Audience: audience, JWKS: []byte("{")},
		"empty JWKS":      {Audience: audience, JWKS: []byte(`{"keys":[]}`)},
		"negative leeway": {Audience: audience, Secret: secret, Leeway: -1},
		"huge leeway":     {Audience: audience, Secret: secret, Leeway: time.Minute + 1},
		"one zero key":    {Audience: audience, Secret: secret, Keys: []token.Key{{}}},
		"bad beside good": {Audience: audience, Secret: secret, JWKS: []byte("{")},
	} {
		if _, err := token.NewVerifier(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestFromRequest(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   error
	}{
		{nil, token.ErrMissing},
		{[]string{""}, token.ErrMissing},
		{[]string{"a"}, nil},
		{[]string{"a", "a"}, token.ErrRepeated},
		{[]string{"a, a"}, token.ErrRepeated},
	} {
		r := &http.Request{Header: http.Header{token.Header: c.values}}
		got, err := token.FromRequest(r)
		if !errors.Is(err, c.want) || c.want == nil && (err != nil || got != "a") {
			t.Errorf("%q: %q, %v", c.values, got, err)
		}
	}
}

func publicKey(t *testing.T) ed25519.PublicKey {
	t.Helper()
	block, _ := pem.Decode([]byte(vectorPEM))
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.(ed25519.PrivateKey).Public().(ed25519.PublicKey)
}

func publicPEM(t *testing.T, public ed25519.PublicKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func publicJWK(t *testing.T, key token.Key) []byte {
	t.Helper()
	raw, ok := key.PublicJWK()
	if !ok {
		t.Fatal("no public key")
	}
	return raw
}

// flip changes the first character of a segment.
func flip(s string) string {
	if s[0] == 'A' {
		return "B" + s[1:]
	}
	return "A" + s[1:]
}

// nextLetter spells the last character of a token with bits that base64 would
// throw away: 64 bytes leave four of them.
func nextLetter(s string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	i := strings.IndexByte(alphabet, s[len(s)-1])
	if i%16 != 0 {
		panic(fmt.Sprintf("the last character of a good token is %c", s[len(s)-1]))
	}
	return alphabet[i+1 : i+2]
}
