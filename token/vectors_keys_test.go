package token_test

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/stockgate/stockgate/token"
)

// at is the step at another time.
func (s vectorStep) at(ms int64) vectorStep { s.Now = startMs + ms; return s }

// on is the step where the URL of the JWKS answers this, and is asked so often.
func (s vectorStep) on(answer *vectorJWKS, fetches int) vectorStep {
	s.JWKS, s.Fetches = answer, fetches
	return s
}

// knows is the step in a shop that has answered these ids.
func (s vectorStep) knows(ids ...string) vectorStep { s.Known = ids; return s }

// times are the clock, and ids that come twice.
func (f *forge) times() {
	const end = int64(expires-issued-1) * 1000
	for _, c := range []struct {
		name       string
		leeway, at int64
		want       string
	}{
		{"a millisecond before exp", 0, end - 1, "ok"},
		{"exactly exp", 0, end, "expired"},
		{"a millisecond after exp", 0, end + 1, "expired"},
		{"exp within the leeway", 2000, end + 1999, "ok"},
		{"exp at the end of the leeway", 2000, end + 2000, "expired"},
		{"exp in a leeway of half a second", 500, end + 499, "ok"},
		{"exp after a leeway of half a second", 500, end + 500, "expired"},
		{"the largest leeway", 60000, end + 59999, "ok"},
		{"long before iat", 0, -3600_000, "ok"},
		{"a day later", 0, 86400_000, "expired"},
	} {
		f.addTo(vector{Name: "time: " + c.name, Remote: true, Leeway: c.leeway}, f.step(f.good, c.want).at(c.at))
	}
	lines := f.step(f.good, "lines").at(end)
	lines.Lines = []token.Line{}
	f.add("time: the lines before it", lines)

	id := claims().ID
	stranger := f.step(f.good, "subject").knows(id)
	stranger.Subject = "buyer-8"
	lines.ID = id
	f.add("jti: twice", f.step(f.good, "ok").knows("019a7d3e-5b1c-7f6e-9d5a-3f0d6f6b2c99"), f.step(f.good, "known").knows("x", id).on(nil, 0))
	f.add("jti: twice, the second time late", f.step(f.good, "known").knows(id).at(end+60_000))
	f.add("jti: late and not known", f.step(f.good, "expired").knows("x").at(end+60_000))
	f.add("jti: known, of another buyer", stranger)
	f.add("jti: known, with other lines", lines.knows(id))
	f.add("jti: known, with another signature", f.step(f.good[:len(f.good)-9]+"AAAAAAAAA", "signature").knows(id))
}

// fetches are when the JWKS is asked for, and what its absence means.
func (f *forge) fetches() {
	lasting := claims()
	lasting.ExpiresAt += 100_000
	good, next := f.step(f.good, "ok"), mustSign(f.t, f.other, lasting)
	newer, both := f.step(next, "ok"), f.publish(f.key, f.other)
	unknown, away := f.step(next, "unknown_key"), f.step(next, "keys_unavailable")
	set := f.publish(f.key)
	cold := f.step(f.good, "keys_unavailable")

	f.add("keys: fetched once", good, good.on(set, 0), good.at(9_000).on(nil, 0))
	f.add("keys: away before the first fetch, and back", cold.on(nil, 1), cold.at(999).on(set, 0), good.at(1000).on(set, 1), good.at(1001).on(nil, 0))
	f.add("keys: away for long", cold.on(nil, 1), cold.at(500).on(nil, 0), cold.at(1000).on(nil, 1), cold.at(60_000).on(nil, 1))
	f.add("keys: away with keys from before", good, good.at(20_000).on(nil, 0), away.at(20_000).on(nil, 1), away.at(20_001).on(nil, 0), good.at(20_002).on(nil, 0), newer.at(30_000).on(both, 1))
	f.add("keys: unknown, and asked for once in 10 s", good, unknown.on(both, 0), unknown.at(9_999).on(both, 0), newer.at(10_000).on(both, 1), good.at(10_001).on(nil, 0))
	f.add("keys: unknown still", good, unknown.at(10_000).on(set, 1), unknown.at(10_001).on(set, 0), unknown.at(20_000).on(set, 1))
	f.add("keys: unknown to an edge that is back", cold.on(nil, 1), unknown.at(2_000).on(set, 1), unknown.at(11_999).on(both, 0), newer.at(12_000).on(both, 1))
	const hour = 3600_000
	long := f.step(mustSign(f.t, f.key, lasting), "ok")
	gone := long
	gone.Want, gone.ID = "unknown_key", ""
	other := f.publish(f.other)
	f.add("keys: withdrawn", long, long.at(hour-1).on(other, 0), long.at(hour).on(other, 1), gone.at(hour+1).on(other, 0), gone.at(hour+10_000).on(other, 1))
	f.add("keys: old, and away", long, long.at(hour).on(nil, 1), long.at(hour+9_999).on(nil, 0), long.at(hour+10_000).on(nil, 1), long.at(5*hour).on(set, 1), long.at(5*hour+10_000).on(nil, 0))
	f.add("keys: nothing is fetched for what no key could sign", f.step("x", "malformed"), f.step(f.good[1:], "malformed"), good)
}

// keySets are answers of the URL.
func (f *forge) keySets() {
	jwk := string(publicJWK(f.t, f.key))
	x := decodeX(jwk)
	okp := func(members string) string { return `{"kty":"OKP","crv":"Ed25519","x":"` + x + `"` + members + `}` }
	standard := base64.RawStdEncoding.EncodeToString(publicKey(f.t))
	set := func(keys ...string) *vectorJWKS {
		return &vectorJWKS{Status: 200, Body: `{"keys":[` + strings.Join(keys, ",") + `]}`}
	}
	for _, c := range []struct {
		name   string
		answer *vectorJWKS
		want   string
	}{
		{"a key without kid, use and alg", set(okp("")), "ok"},
		{"a kid that is not the thumbprint", set(okp(`,"kid":"mine"`)), "ok"},
		{"a key among others", set(`1`, `null`, `"x"`, `[]`, `{}`, `{"kty":"oct","k":"AAAA"}`, `{"kty":"OKP","crv":"X25519","x":"`+x+`"}`, `{"kty":"RSA","n":"AQAB","e":"AQAB"}`, `{"kty":"OKP","crv":"Ed25519","x":7}`, `{"kty":"OKP","crv":"Ed25519"}`, `{"kty":"OKP","crv":"Ed25519","x":"AAAA"}`, `{"kty":"EC","crv":"Ed25519","x":"`+x+`"}`, `{"kty":"OKP","crv":"Ed448","x":"`+x+`"}`, `{"kty":"OKP","crv":"Ed25519","x":"`+x+`="}`, jwk), "ok"},
		{"other members", &vectorJWKS{Status: 200, Body: ` {"a":{"b":[1.5e3,true,null]},"keys":[` + jwk + `],"z":"\u00e9"} `}, "ok"},
		{"256 KiB", &vectorJWKS{Status: 200, Body: set(jwk).Body, Pad: 256<<10 - len(set(jwk).Body)}, "ok"},
		{"a byte more", &vectorJWKS{Status: 200, Body: set(jwk).Body, Pad: 256<<10 + 1 - len(set(jwk).Body)}, "keys_unavailable"},
		{"a key for encryption", set(okp(`,"use":"enc"`)), "keys_unavailable"},
		{"a key for another algorithm", set(okp(`,"alg":"ES256"`)), "keys_unavailable"},
		{"an empty use", set(okp(`,"use":"","alg":""`)), "ok"},
		{"a key of another kind", set(strings.Replace(okp(""), "OKP", "EC", 1)), "keys_unavailable"},
		{"a key on another curve", set(strings.Replace(okp(""), "Ed25519", "Ed448", 1)), "keys_unavailable"},
		{"a key with padding", set(strings.Replace(okp(""), x, x+"=", 1)), "keys_unavailable"},
		{"a key that is short", set(strings.Replace(okp(""), x, x[:20], 1)), "keys_unavailable"},
		{"a key that is long", set(strings.Replace(okp(""), x, x[:40]+"AAAA", 1)), "keys_unavailable"},
		{"a key in the alphabet of base64", set(strings.Replace(okp(""), x, standard, 1)), "keys_unavailable"},
		{"a secret", set(`{"kty":"oct","alg":"HS256","k":"` + encode(secret) + `"}`), "keys_unavailable"},
		{"no keys", set(), "keys_unavailable"},
		{"no member keys", &vectorJWKS{Status: 200, Body: `{}`}, "keys_unavailable"},
		{"keys that are no list", &vectorJWKS{Status: 200, Body: `{"keys":` + jwk + `}`}, "keys_unavailable"},
		{"keys null", &vectorJWKS{Status: 200, Body: `{"keys":null}`}, "keys_unavailable"},
		{"a list", &vectorJWKS{Status: 200, Body: `[` + jwk + `]`}, "keys_unavailable"},
		{"a key alone", &vectorJWKS{Status: 200, Body: jwk}, "keys_unavailable"},
		{"HTML", &vectorJWKS{Status: 200, Body: "<html>"}, "keys_unavailable"},
		{"nothing", &vectorJWKS{Status: 200}, "keys_unavailable"},
		{"something behind", &vectorJWKS{Status: 200, Body: set(jwk).Body + "x"}, "keys_unavailable"},
		{"status 404", &vectorJWKS{Status: 404, Body: set(jwk).Body}, "keys_unavailable"},
		{"status 500", &vectorJWKS{Status: 500, Body: set(jwk).Body}, "keys_unavailable"},
		{"status 201", &vectorJWKS{Status: 201, Body: set(jwk).Body}, "keys_unavailable"},
		{"a redirect", &vectorJWKS{Status: 302, Location: "/good", Body: set(jwk).Body}, "keys_unavailable"},
	} {
		f.add("JWKS: "+c.name, f.step(f.good, c.want).on(c.answer, 1))
		if c.want == "keys_unavailable" {
			// what was fetched before stays
			f.add(fmt.Sprintf("JWKS: %s, later", c.name), f.step(f.good, "ok"), f.step(mustSign(f.t, f.other, claims()), "keys_unavailable").at(10_000).on(c.answer, 1), f.step(f.good, "ok").at(10_001).on(nil, 0))
		}
	}
	claimsMine := rawEd25519(f.t, strings.Replace(goodHeader, vectorKID, "mine", 1), f.body)
	f.add("JWKS: a kid of its own that the token names", f.step(claimsMine, "unknown_key").on(set(okp(`,"kid":"mine"`)), 1))
	octet := f.step(f.goodHS, "unknown_key").on(set(`{"kty":"oct","alg":"HS256","k":"`+encode(secret)+`","kid":"`+f.mac.KID()+`"}`, jwk), 1)
	f.add("JWKS: a secret that the token names", octet)
}

func decodeX(jwk string) string {
	_, rest, _ := strings.Cut(jwk, `"x":"`)
	x, _, _ := strings.Cut(rest, `"`)
	return x
}
