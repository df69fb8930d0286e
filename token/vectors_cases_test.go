package token_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/token"
)

const startMs = (issued + 1) * 1000

// forge makes the tokens of the vectors.
type forge struct {
	t      *testing.T
	key    token.Key // of vectorPEM, which the JWKS has
	other  token.Key // which it has not
	mac    token.Key // of secret
	body   string    // the claims of a good token
	good   string
	goodHS string
	all    []vector
}

// vectors are in the order of what a verifier looks at.
func vectors(t *testing.T) []vector {
	f := &forge{t: t, key: mustKey(t, token.KindEd25519, vectorPEM), other: fixedKey(t, "another edge"), mac: mustKey(t, token.KindHMAC, secret), body: payload(t)}
	f.good, f.goodHS = mustSign(t, f.key, claims()), mustSign(t, f.mac, claims())
	for _, part := range []func(){f.options, f.valid, f.values, f.shapes, f.headers, f.algorithms, f.jsonTexts, f.claims, f.strings, f.orders, f.times, f.fetches, f.keySets} {
		part()
	}
	return f.all
}

// fixedKey is a key for tests, the same each time.
func fixedKey(t *testing.T, name string) token.Key {
	t.Helper()
	seed := sha256.Sum256([]byte(name))
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
	if err != nil {
		t.Fatal(err)
	}
	return mustKey(t, token.KindEd25519, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}

// step is a good order with a token, at a verifier that has fetched nothing yet.
func (f *forge) step(signed, want string) vectorStep {
	s := vectorStep{Now: startMs, JWKS: f.publish(f.key), Tokens: []string{signed}, Subject: "buyer-7", Lines: claims().Lines, Want: want, Fetches: 1}
	switch want {
	case "ok", "subject", "lines", "expired", "known":
		s.ID = claims().ID
	case "missing", "repeated", "malformed", "type", "algorithm":
		s.Fetches = 0
	}
	return s
}

func (f *forge) publish(keys ...token.Key) *vectorJWKS {
	var raw []string
	for _, k := range keys {
		raw = append(raw, string(publicJWK(f.t, k)))
	}
	return &vectorJWKS{Status: 200, Body: `{"keys":[` + strings.Join(raw, ",") + `]}`}
}

func (f *forge) add(name string, steps ...vectorStep) {
	f.addTo(vector{Name: name, Remote: true}, steps...)
}

func (f *forge) addTo(v vector, steps ...vectorStep) {
	if slices.ContainsFunc(f.all, func(o vector) bool { return o.Name == v.Name }) {
		f.t.Fatalf("two vectors are called %q", v.Name)
	}
	v.Steps = steps
	if v.Issuer == "" {
		v.Issuer, v.Audience = token.DefaultIssuer, audience
	}
	f.all = append(f.all, v)
}

// token adds one case of a token alone.
func (f *forge) token(name, signed, want string) { f.add(name, f.step(signed, want)) }

// header, and claim, adds a token that is signed well but has this header, or these claims.
func (f *forge) header(name, header, want string) {
	s := f.step(rawEd25519(f.t, header, f.body), want)
	if want == "algorithm" && strings.Contains(header, `"HS256"`) {
		s.Fetches = 1 // it is an algorithm, but the key has another
	}
	f.add(name, s)
}

func (f *forge) claim(name, from, to, want string) {
	if !strings.Contains(f.body, from) {
		f.t.Fatalf("%s has no %s", f.body, from)
	}
	s := f.step(rawEd25519(f.t, goodHeader, strings.Replace(f.body, from, to, 1)), want)
	s.Fetches = 1 // the key is needed before the claims are read
	f.add(name, s)
}

// options are what no verifier is made of.
func (f *forge) options() {
	issuer := token.DefaultIssuer
	for _, v := range []vector{
		{Name: "no audience", Issuer: issuer, Secret: secret},
		{Name: "no key"},
		{Name: "a secret of 31 bytes", Secret: secret[:31]},
		{Name: "a secret with a line end", Secret: secret + "\n"},
		{Name: "a secret with a space before it", Secret: " " + secret},
		{Name: "a leeway below 0", Secret: secret, Leeway: -1},
		{Name: "a leeway above a minute", Secret: secret, Leeway: 60_001},
		{Name: "no whole URL", Remote: true, URL: "/jwks.json"},
		{Name: "a URL of another scheme", Remote: true, URL: "ftp://edge/jwks.json"},
		{Name: "a URL of a file", Remote: true, URL: "file:///jwks.json"},
	} {
		v.Name = "options: " + v.Name
		f.addTo(v, vectorStep{Now: startMs, Tokens: []string{f.good}, Subject: "buyer-7", Lines: claims().Lines, Want: "options"})
	}
}

func (f *forge) valid() {
	f.token("EdDSA with the key of the JWKS", f.good, "ok")
	alone, both := f.step(f.goodHS, "ok"), f.step(f.goodHS, "ok")
	alone.JWKS, alone.Fetches, both.Fetches = nil, 0, 0
	f.addTo(vector{Name: "HS256 with the shared secret", Secret: secret}, alone)
	f.addTo(vector{Name: "both at one verifier", Secret: secret, Remote: true}, both, f.step(f.good, "ok"))
	any := f.step(f.good, "ok")
	any.Subject, any.AnySubject, any.Lines = "", true, nil
	f.add("any buyer and any lines", any)
}

func (f *forge) values() {
	for _, c := range []struct {
		name   string
		values []string
		want   string
	}{
		{"no header", []string{}, "missing"},
		{"an empty header", []string{""}, "missing"},
		{"two headers", []string{f.good, f.good}, "repeated"},
		{"two headers that a proxy has joined", []string{f.good + ", " + f.good}, "repeated"},
	} {
		s := f.step("", c.want)
		s.Tokens = c.values
		f.add(c.name, s)
	}
}

func (f *forge) shapes() {
	seg := strings.Split(f.good, ".")
	for _, c := range []struct{ name, token, want string }{
		{"one part", seg[0], "malformed"},
		{"two parts", seg[0] + "." + seg[1], "malformed"},
		{"four parts", f.good + ".", "malformed"},
		{"a dot before", "." + f.good, "malformed"},
		{"only dots", "..", "malformed"},
		{"no header part", "." + seg[1] + "." + seg[2], "malformed"},
		{"a space before", " " + f.good, "malformed"},
		{"a space behind", f.good + " ", "malformed"},
		{"a space within", seg[0] + ". " + seg[1] + "." + seg[2], "malformed"},
		{"a line end behind", f.good + "\n", "malformed"},
		{"a line end in the signature", f.good[:len(f.good)-4] + "\n" + f.good[len(f.good)-4:], "malformed"},
		{"a carriage return in the header", f.good[:8] + "\r" + f.good[8:], "malformed"},
		{"a tab", f.good[:8] + "\t" + f.good[8:], "malformed"},
		{"NUL behind", f.good + "\x00", "malformed"},
		{"a letter that is not ASCII", f.good[:len(f.good)-1] + "é", "malformed"},
		{"padding", f.good + "==", "malformed"},
		{"the alphabet of base64", seg[0] + "." + seg[1] + ".+/+/", "malformed"},
		{"a length that base64 does not have", f.good + "AAA", "malformed"},
		{"stray bits in the signature", f.good[:len(f.good)-1] + nextLetter(f.good), "malformed"},
		{"stray bits in the header", f.stray(goodHeader+" ", f.body), "malformed"},
		{"stray bits in the claims", f.stray(goodHeader, f.body), "malformed"},
		{"no signature", seg[0] + "." + seg[1] + ".", "signature"},
		{"a short signature", seg[0] + "." + seg[1] + "." + seg[2][:40], "signature"},
		{"a long signature", f.good + "AAAA", "signature"},
		{"another signature", seg[0] + "." + seg[1] + "." + flip(seg[2]), "signature"},
		{"the other form of the signature", f.otherForm(), "signature"},
		{"changed claims", seg[0] + "." + encode(strings.Replace(f.body, `"qty":2`, `"qty":9`, 1)) + "." + seg[2], "signature"},
		{"a changed header", encode(strings.Replace(goodHeader, "}", " }", 1)) + "." + seg[1] + "." + seg[2], "signature"},
		{"claims that are nothing, unsigned", seg[0] + ".." + seg[2], "signature"},
		{"the largest size", f.sized(token.MaxSize), "ok"},
		{"one byte more", f.sized(token.MaxSize + 1), "malformed"},
	} {
		f.token(c.name, c.token, c.want)
	}
	huge := f.step(f.good, "malformed")
	huge.Pad = 1 << 20
	f.add("1 MiB", huge)
	swapped := mustSign(f.t, f.key, func() token.Claims { c := claims(); c.Subject = "buyer-8"; return c }())
	f.token("the signature of another token", f.good[:strings.LastIndexByte(f.good, '.')]+swapped[strings.LastIndexByte(swapped, '.'):], "signature")
}

// stray is a signed token in which the first part that can has bits that belong to no byte.
func (f *forge) stray(header, claims string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for len(header)%3 == 0 {
		header += " "
	}
	if header == goodHeader { // for the claims
		for len(claims)%3 == 0 {
			claims += " "
		}
	}
	parts := []string{encode(header), encode(claims)}
	i := 1
	if header != goodHeader {
		i = 0
	}
	last := parts[i][len(parts[i])-1]
	parts[i] = parts[i][:len(parts[i])-1] + string(alphabet[strings.IndexByte(alphabet, last)+1])
	message := strings.Join(parts, ".")
	return message + "." + encode(string(ed25519.Sign(f.private(), []byte(message))))
}

func (f *forge) private() ed25519.PrivateKey {
	block, _ := pem.Decode([]byte(vectorPEM))
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		f.t.Fatal(err)
	}
	return parsed.(ed25519.PrivateKey)
}

// otherForm adds the order of the group to S: the same equation holds, and RFC 8032 (5.1.7) refuses it.
func (f *forge) otherForm() string {
	cut := strings.LastIndexByte(f.good, '.') + 1
	signature := []byte(decode(f.t, f.good[cut:]))
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	s := signature[32:]
	slices.Reverse(s)
	new(big.Int).Add(new(big.Int).SetBytes(s), order).FillBytes(s)
	slices.Reverse(s)
	return f.good[:cut] + encode(string(signature))
}

// sized is a good token of that many bytes.
func (f *forge) sized(size int) string {
	encoded := base64.RawURLEncoding.EncodedLen
	for spaces := range size {
		for header := range 3 { // base64 has no length for every one of bytes
			h, body := goodHeader+strings.Repeat(" ", header), f.body+strings.Repeat(" ", spaces)
			if encoded(len(h))+1+encoded(len(body))+1+encoded(ed25519.SignatureSize) == size {
				return rawEd25519(f.t, h, body)
			}
		}
	}
	f.t.Fatalf("no token has %d bytes", size)
	return ""
}
