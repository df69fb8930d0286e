package token_test

import (
	"fmt"
	"strings"
)

func (f *forge) headers() {
	without := func(member string) string { return strings.Replace(goodHeader, member, "", 1) }
	with := func(member string) string { return "{" + member + "," + goodHeader[1:] }
	for _, c := range []struct{ name, header, want string }{
		{"the type of another JWT", strings.Replace(goodHeader, "stockgate+jwt", "JWT", 1), "type"},
		{"the type in capitals", strings.Replace(goodHeader, "stockgate+jwt", "STOCKGATE+JWT", 1), "type"},
		{"no type", without(`,"typ":"stockgate+jwt"`), "malformed"},
		{"no alg", without(`"alg":"EdDSA",`), "malformed"},
		{"no kid", without(`"kid":"` + vectorKID + `",`), "malformed"},
		{"the kid a number", strings.Replace(goodHeader, `"`+vectorKID+`"`, "7", 1), "malformed"},
		{"the kid null", strings.Replace(goodHeader, `"`+vectorKID+`"`, "null", 1), "malformed"},
		{"the alg a list", strings.Replace(goodHeader, `"EdDSA"`, `["EdDSA"]`, 1), "malformed"},
		{"the typ an object", strings.Replace(goodHeader, `"stockgate+jwt"`, `{}`, 1), "malformed"},
		{"an empty kid", strings.Replace(goodHeader, vectorKID, "", 1), "unknown_key"},
		{"an unknown kid", strings.Replace(goodHeader, vectorKID, f.other.KID(), 1), "unknown_key"},
		{"a kid of another spelling", strings.Replace(goodHeader, vectorKID, strings.ToLower(vectorKID), 1), "unknown_key"},
		{"a kid from the library", strings.Replace(goodHeader, vectorKID, "__proto__", 1), "unknown_key"},
		{"crit", with(`"crit":["b64"],"b64":false`), "malformed"},
		{"crit without a name", with(`"crit":[]`), "malformed"},
		{"crit null", with(`"crit":null`), "malformed"},
		{"a member that is not known", with(`"jku":"https://example.com/jwks.json","x":[1,{"a":null}]`), "ok"},
		{"members in another order, with spaces", ` { "typ" : "stockgate+jwt" ,` + "\r\n\t" + `"kid":"` + vectorKID + `", "alg":"EdDSA"} `, "ok"},
	} {
		f.header(c.name, c.header, c.want)
	}
	f.token("the type before the algorithm", encode(`{"alg":"none","kid":"","typ":"JWT"}`)+"."+encode(f.body)+".", "type")
	f.token("signed with an unknown key", mustSign(f.t, f.other, claims()), "unknown_key")
	mine := strings.Replace(`{"jwk":`+string(publicJWK(f.t, f.other))+","+goodHeader[1:], vectorKID, "mine", 1)
	f.header("a key in the header", mine, "unknown_key")
}

func (f *forge) algorithms() {
	seg := strings.Split(f.good, ".")
	named := func(alg string) string { return strings.Replace(goodHeader, "EdDSA", alg, 1) }
	f.token("alg none, unsigned", encode(named("none"))+"."+seg[1]+".", "algorithm")
	for _, alg := range []string{"none", "None", "RS256", "ES256", "HS512", "eddsa", "Ed25519", "EdDSA ", "", "toString"} {
		f.header(fmt.Sprintf("alg %q, signed well", alg), named(alg), "algorithm")
	}
	f.header("alg HS256, signed well", named("HS256"), "algorithm")
	public := publicKey(f.t)
	for _, c := range []struct {
		name string
		key  []byte
	}{{"the public key", public}, {"its PEM", publicPEM(f.t, public)}, {"its JWK", publicJWK(f.t, f.key)}, {"an empty secret", nil}} {
		s := f.step(rawHMAC(c.key, named("HS256"), f.body), "algorithm")
		s.Fetches = 1
		f.add("alg HS256 with "+c.name+" as the secret", s)
	}
	f.token("a secret that the verifier does not have", f.goodHS, "unknown_key")

	local := func(name, signed, want string) {
		s := f.step(signed, want)
		s.JWKS, s.Fetches = nil, 0
		f.addTo(vector{Name: name, Secret: secret}, s)
	}
	hsHeader := strings.Replace(named("HS256"), vectorKID, f.mac.KID(), 1)
	local("HS256 with another secret", rawHMAC([]byte(strings.Repeat("x", 32)), hsHeader, f.body), "signature")
	local("HS256 with a short MAC", f.goodHS[:len(f.goodHS)-4], "malformed")
	local("HS256 with 30 bytes of the MAC", f.goodHS[:len(f.goodHS)-3], "signature")
	local("HS256 without a MAC", f.goodHS[:strings.LastIndexByte(f.goodHS, '.')+1], "signature")
	local("EdDSA under the kid of the secret", rawEd25519(f.t, strings.Replace(hsHeader, "HS256", "EdDSA", 1), f.body), "algorithm")
	local("EdDSA where there is only a secret", f.good, "unknown_key")
	local("alg none under the kid of the secret", encode(strings.Replace(hsHeader, "HS256", "none", 1))+"."+seg[1]+".", "algorithm")
}
