package bearer_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters/bearer"
)

// Every kind of key verifies its tokens, and returns their claims byte for byte.
func TestVerify(t *testing.T) {
	rs, es, ed, hs := newRSA("r", rsaKey()), newEC("e"), newEd("d"), newHMAC([]byte(secret))
	ownEd := newEd("whatever the shop calls it")
	p := newIDP(t, rs, es, ed)
	set := verifier(t, bearer.Options{JWKS: p.URL})
	for name, tc := range map[string]struct {
		v *bearer.Verifier
		s signer
	}{
		"RS256":   {set, rs},
		"ES256":   {set, es},
		"EdDSA":   {set, ed},
		"hmac":    {verifier(t, bearer.Options{Secret: secret}), hs},
		"ed25519": {verifier(t, bearer.Options{PublicKey: ownEd.pem()}), ownEd},
	} {
		for _, time := range []string{"first", "from memory"} {
			claims, err := tc.v.Verify(t.Context(), tc.s.token(good), nil)
			if err != nil || string(claims) != good {
				t.Errorf("%s, %s: %q %v", name, time, claims, err)
			}
		}
	}
}

// What is wrong with a token is said, and nothing of it is repeated.
func TestHostileTokens(t *testing.T) {
	rs, ed, other := newRSA("r", rsaKey()), newEd("d"), newEd("d")
	p := newIDP(t, rs, ed)
	v := verifier(t, bearer.Options{JWKS: p.URL})
	own := verifier(t, bearer.Options{PublicKey: ed.pem()})
	hs := verifier(t, bearer.Options{Secret: secret})
	parts := strings.Split(ed.token(good), ".")
	// the last character of 64 bytes has four bits that count for nothing
	respelled := parts[0] + "." + parts[1] + "." + parts[2][:85] + string(parts[2][85]+1)
	pem := []byte(rs.pem())
	withKey := `{"alg":"EdDSA","typ":"JWT","jwk":` + string(other.jwk()) + `}`
	for name, tc := range map[string]struct {
		v     *bearer.Verifier
		token string
		want  error
	}{
		"alg none":                      {v, encode(`{"alg":"none","kid":"d"}`) + "." + encode(good) + ".", bearer.ErrAlgorithm},
		"alg None":                      {v, encode(`{"alg":"None","kid":"d"}`) + "." + encode(good) + ".", bearer.ErrAlgorithm},
		"no alg":                        {v, ed.raw(`{"kid":"d"}`, good), bearer.ErrAlgorithm},
		"alg null":                      {v, ed.raw(`{"alg":null,"kid":"d"}`, good), bearer.ErrAlgorithm},
		"alg none, no signature wanted": {hs, encode(`{"alg":"none"}`) + "." + encode(good) + ".", bearer.ErrAlgorithm},
		"HS256 with the public key":     {v, newHMAC(pem).raw(`{"alg":"HS256","kid":"r"}`, good), bearer.ErrAlgorithm},
		"HS256 with the public JWK":     {v, newHMAC(rs.jwk()).raw(`{"alg":"HS256","kid":"r"}`, good), bearer.ErrAlgorithm},
		"HS256 with the own public key": {own, newHMAC([]byte(ed.pem())).token(good), bearer.ErrAlgorithm},
		"HS256 for another secret":      {hs, newHMAC([]byte("x" + secret)).token(good), bearer.ErrSignature},
		"RS256 by name, EdDSA by key":   {v, ed.raw(`{"alg":"RS256","kid":"d"}`, good), bearer.ErrUnknownKey},
		"EdDSA by name, RSA by key":     {v, rs.raw(`{"alg":"EdDSA","kid":"r"}`, good), bearer.ErrUnknownKey},
		"RS512":                         {v, rs.raw(`{"alg":"RS512","kid":"r"}`, good), bearer.ErrUnknownKey},
		"PS256":                         {v, rs.raw(`{"alg":"PS256","kid":"r"}`, good), bearer.ErrUnknownKey},
		"EdDSA where a secret is":       {hs, ed.token(good), bearer.ErrAlgorithm},
		"another key by the same id":    {v, other.token(good), bearer.ErrSignature},
		"its key in the header":         {v, other.raw(withKey, good), bearer.ErrSignature},
		"unknown key":                   {v, ed.raw(`{"alg":"EdDSA","kid":"x"}`, good), bearer.ErrUnknownKey},
		"a path as key":                 {v, ed.raw(`{"alg":"EdDSA","kid":"../../dev/null"}`, good), bearer.ErrUnknownKey},
		"empty key":                     {v, ed.raw(`{"alg":"EdDSA","kid":""}`, good), bearer.ErrUnknownKey},
		"huge key":                      {v, ed.raw(`{"alg":"EdDSA","kid":"`+strings.Repeat("d", 257)+`"}`, good), bearer.ErrUnknownKey},
		"key that is no text":           {v, ed.raw(`{"alg":"EdDSA","kid":["d"]}`, good), bearer.ErrMalformed},
		"two keys":                      {v, ed.raw(`{"alg":"EdDSA","kid":"x","kid":"d"}`, good), bearer.ErrMalformed},
		"two algorithms":                {v, ed.raw(`{"alg":"none","alg":"EdDSA","kid":"d"}`, good), bearer.ErrMalformed},
		"alg in capitals":               {v, ed.raw(`{"ALG":"EdDSA","kid":"d"}`, good), bearer.ErrAlgorithm},
		"crit":                          {v, ed.raw(`{"alg":"EdDSA","kid":"d","crit":["exp"],"exp":1}`, good), bearer.ErrMalformed},
		"unencoded payload":             {v, ed.raw(`{"alg":"EdDSA","kid":"d","b64":false,"crit":["b64"]}`, good), bearer.ErrMalformed},
		"reservation token":             {v, ed.raw(`{"alg":"EdDSA","kid":"d","typ":"stockgate+jwt"}`, good), bearer.ErrType},
		"logout token":                  {v, ed.raw(`{"alg":"EdDSA","kid":"d","typ":"logout+jwt"}`, good), bearer.ErrType},
		"other claims":                  {v, parts[0] + "." + encode(strings.Replace(good, "u42", "u43", 1)) + "." + parts[2], bearer.ErrSignature},
		"no signature":                  {v, parts[0] + "." + parts[1] + ".", bearer.ErrSignature},
		"another spelling":              {v, respelled, bearer.ErrMalformed},
		"padded":                        {v, parts[0] + "." + parts[1] + "." + parts[2] + "==", bearer.ErrMalformed},
		"line end inside":               {v, parts[0] + "." + parts[1] + "\n." + parts[2], bearer.ErrMalformed},
		"space before":                  {v, " " + ed.token(good), bearer.ErrMalformed},
		"two parts":                     {v, parts[0] + "." + parts[1], bearer.ErrMalformed},
		"five parts":                    {v, "a.b.c.d.e", bearer.ErrMalformed},
		"no payload":                    {v, ed.token(""), bearer.ErrMalformed},
		"JWS in JSON":                   {v, `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, bearer.ErrMalformed},
		"empty":                         {v, "", bearer.ErrMalformed},
		"null":                          {v, "null", bearer.ErrMalformed},
		"huge":                          {v, ed.token(`{"sub":"` + strings.Repeat("u", bearer.MaxSize) + `"}`), bearer.ErrTooLong},
		"claims are an array":           {v, ed.token(`[]`), bearer.ErrMalformed},
		"claims are null":               {v, ed.token(`null`), bearer.ErrMalformed},
		"claims are nothing":            {v, ed.token(` `), bearer.ErrMalformed},
		"two documents":                 {v, ed.token(good + good), bearer.ErrMalformed},
		"sub twice":                     {v, ed.token(`{"sub":"u42","sub":"u43"}`), bearer.ErrMalformed},
		"sub twice, escaped":            {v, ed.token(`{"sub":"u42","s\u0075b":"u43"}`), bearer.ErrMalformed},
		"twice inside":                  {v, ed.token(`{"sub":"u42","user":{"id":1,"id":2}}`), bearer.ErrMalformed},
		"twice inside an array":         {v, ed.token(`{"sub":"u42","users":[{"id":1,"id":2}]}`), bearer.ErrMalformed},
		"not UTF-8":                     {v, ed.token("{\"sub\":\"\xff\"}"), bearer.ErrMalformed},
		"exp is text":                   {v, ed.token(`{"sub":"u42","exp":"1790000060"}`), bearer.ErrDate},
		"exp in milliseconds":           {v, ed.token(`{"sub":"u42","exp":1790000060000}`), bearer.ErrDate},
		"exp is huge":                   {v, ed.token(`{"sub":"u42","exp":1e300}`), bearer.ErrDate},
		"exp is beyond numbers":         {v, ed.token(`{"sub":"u42","exp":1e999}`), bearer.ErrMalformed},
		"nbf is negative":               {v, ed.token(`{"sub":"u42","nbf":-1}`), bearer.ErrDate},
		"iss is a number":               {v, ed.token(`{"sub":"u42","iss":1}`), bearer.ErrMalformed},
		"aud is a number":               {v, ed.token(`{"sub":"u42","aud":1}`), bearer.ErrMalformed},
		"aud has a number":              {v, ed.token(`{"sub":"u42","aud":["shop",1]}`), bearer.ErrMalformed},
	} {
		claims, err := tc.v.Verify(t.Context(), tc.token, nil)
		if claims != nil || !errors.Is(err, tc.want) {
			t.Errorf("%s: %q %v, want %v", name, claims, err, tc.want)
		}
		if invalid, ok := errors.AsType[bearer.Invalid](err); !ok || strings.ContainsAny(string(invalid), "\"\\") || strings.Contains(err.Error(), "u42") {
			t.Errorf("%s: %v is not for the client", name, err)
		}
	}
}

func TestTimes(t *testing.T) {
	ed := newEd("")
	for name, tc := range map[string]struct {
		claims string
		leeway time.Duration
		after  time.Duration
		want   error
	}{
		"just before exp":           {`{"exp":1790000060}`, 0, 60*time.Second - 1, nil},
		"at exp":                    {`{"exp":1790000060}`, 0, 60 * time.Second, bearer.ErrExpired},
		"within the leeway":         {`{"exp":1790000060}`, 30 * time.Second, 90*time.Second - 1, nil},
		"after the leeway":          {`{"exp":1790000060}`, 30 * time.Second, 90 * time.Second, bearer.ErrExpired},
		"half a second of exp":      {`{"exp":1790000060.5}`, 0, 60 * time.Second, nil},
		"exp long ago":              {`{"exp":0}`, time.Minute, 0, bearer.ErrExpired},
		"no exp":                    {`{"sub":"u42"}`, 0, 24 * time.Hour, nil},
		"exp is null":               {`{"sub":"u42","exp":null}`, 0, 24 * time.Hour, nil},
		"before nbf":                {`{"nbf":1790000010}`, 0, 10*time.Second - 1, bearer.ErrNotYet},
		"at nbf":                    {`{"nbf":1790000010}`, 0, 10 * time.Second, nil},
		"before nbf, in the leeway": {`{"nbf":1790000010}`, 10 * time.Second, 0, nil},
	} {
		clock := new(hand)
		v := verifier(t, bearer.Options{PublicKey: ed.pem(), Leeway: tc.leeway, Now: clock.time})
		clock.advance(tc.after)
		if _, err := v.Verify(t.Context(), ed.token(tc.claims), nil); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

// A token that is remembered expires all the same.
func TestRememberedTokenExpires(t *testing.T) {
	ed, clock := newEd(""), new(hand)
	v := verifier(t, bearer.Options{PublicKey: ed.pem(), Now: clock.time})
	token := ed.token(good)
	if _, err := v.Verify(t.Context(), token, nil); err != nil {
		t.Fatal(err)
	}
	came := clock.time()
	clock.advance(time.Minute)
	if claims, err := v.Verify(t.Context(), token, nil); err != bearer.ErrExpired || claims != nil {
		t.Errorf("%q %v", claims, err)
	}
	if claims, err := v.VerifyAt(t.Context(), token, nil, came); err != nil || string(claims) != good {
		t.Errorf("as of the time when it came: %q, %v", claims, err)
	}
}

func TestIssuerAndAudience(t *testing.T) {
	ed := newEd("")
	v := verifier(t, bearer.Options{PublicKey: ed.pem(), Issuer: "https://id.example.com", Audience: "shop"})
	for claims, want := range map[string]error{
		good: nil,
		`{"iss":"https://id.example.com","aud":["other","shop"]}`: nil,
		`{"iss":"https://id.example.com/","aud":"shop"}`:          bearer.ErrIssuer,
		`{"aud":"shop"}`: bearer.ErrIssuer,
		`{"iss":"https://id.example.com","aud":"Shop"}`:      bearer.ErrAudience,
		`{"iss":"https://id.example.com","aud":["shop.eu"]}`: bearer.ErrAudience,
		`{"iss":"https://id.example.com","aud":[]}`:          bearer.ErrAudience,
		`{"iss":"https://id.example.com"}`:                   bearer.ErrAudience,
	} {
		if _, err := v.Verify(t.Context(), ed.token(claims), nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", claims, err, want)
		}
	}
}

func TestTypes(t *testing.T) {
	ed := newEd("")
	v := verifier(t, bearer.Options{PublicKey: ed.pem()})
	for typ, want := range map[string]error{
		"JWT": nil, "jwt": nil, "at+jwt": nil, "application/at+JWT": nil, "Application/jwt": nil, "": nil,
		"application/": bearer.ErrType, "JOSE": bearer.ErrType, "dpop+jwt": bearer.ErrType,
	} {
		if _, err := v.Verify(t.Context(), ed.raw(`{"alg":"EdDSA","typ":"`+typ+`"}`, good), nil); !errors.Is(err, want) {
			t.Errorf("typ %q: %v, want %v", typ, err, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	rs, ed := newRSA("r", rsaKey()), newEd("d")
	private := strings.ReplaceAll(ed.pem(), "PUBLIC KEY", "PRIVATE KEY")
	for name, tc := range map[string]struct {
		o    bearer.Options
		want string
	}{
		"nothing":              {bearer.Options{}, "give either"},
		"two":                  {bearer.Options{Secret: secret, JWKS: "https://id.example.com/"}, "give either"},
		"no URL":               {bearer.Options{JWKS: "id.example.com/jwks.json"}, "http or https"},
		"a file":               {bearer.Options{JWKS: "file:///etc/jwks.json"}, "http or https"},
		"short secret":         {bearer.Options{Secret: secret[1:]}, "at least 32"},
		"line end":             {bearer.Options{Secret: secret + "\n"}, "white space"},
		"public key as secret": {bearer.Options{Secret: strings.TrimSpace(rs.pem())}, "PEM block"},
		"no PEM":               {bearer.Options{PublicKey: "abc"}, "no PEM block"},
		"two PEM blocks":       {bearer.Options{PublicKey: ed.pem() + ed.pem()}, "more than one"},
		"private key":          {bearer.Options{PublicKey: private}, "private one"},
		"certificate":          {bearer.Options{PublicKey: strings.ReplaceAll(ed.pem(), "PUBLIC KEY", "CERTIFICATE")}, "not PUBLIC KEY"},
		"broken PEM":           {bearer.Options{PublicKey: "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"}, "cannot be read"},
		"RSA as ed25519":       {bearer.Options{PublicKey: rs.pem()}, "ed25519 key is needed"},
		"leeway":               {bearer.Options{Secret: secret, Leeway: time.Minute + 1}, "leeway"},
		"negative leeway":      {bearer.Options{Secret: secret, Leeway: -1}, "leeway"},
		"no values":            {bearer.Options{Secret: secret, Require: []bearer.Claim{{Name: "a"}}}, "require a: name one value"},
		"an empty value":       {bearer.Options{Secret: secret, Require: []bearer.Claim{{Name: "a", Values: []string{""}}}}, "none of them empty"},
		"a claim in braces":    {bearer.Options{Secret: secret, Require: []bearer.Claim{{Name: "{jwt.a}", Values: []string{"b"}}}}, "without braces"},
		"an empty step":        {bearer.Options{Secret: secret, Require: []bearer.Claim{{Name: "a..b", Values: []string{"b"}}}}, "empty step"},
		"no claim":             {bearer.Options{Secret: secret, Require: []bearer.Claim{{Values: []string{"b"}}}}, "empty step"},
		"a backslash":          {bearer.Options{Secret: secret, Require: []bearer.Claim{{Name: `a\b`, Values: []string{"b"}}}}, "only before a dot"},
		"an empty prefix":      {bearer.Options{Secret: secret, Prefix: map[string]string{"sub": ""}}, "prefix sub: the text is empty"},
		"a prefix of iss":      {bearer.Options{Secret: secret, Prefix: map[string]string{"iss": "b"}}, "tells the issuers apart"},
		"negative cache":       {bearer.Options{Secret: secret, CacheBytes: -1}, "cache"},
	} {
		_, err := bearer.New(tc.o)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), secret[1:]) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
