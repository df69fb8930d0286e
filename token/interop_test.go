package token_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"reflect"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/stockgate/stockgate/token"
)

// A backend in another language reads our tokens with a JOSE library, and our
// Verifier reads what such a library writes.

func TestGoJoseReadsOurs(t *testing.T) {
	key := mustKey(t, token.KindEd25519, vectorPEM)
	raw, _ := key.PublicJWK()
	published, err := token.JWKS(raw)
	if err != nil {
		t.Fatal(err)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(published, &set); err != nil {
		t.Fatal(err)
	}
	hmacKey := mustKey(t, token.KindHMAC, secret)
	for _, c := range []struct {
		key  token.Key
		with any
		alg  jose.SignatureAlgorithm
	}{
		{key, &set, jose.EdDSA},
		{hmacKey, []byte(secret), jose.HS256},
	} {
		parsed, err := jose.ParseSignedCompact(mustSign(t, c.key, claims()), []jose.SignatureAlgorithm{c.alg})
		if err != nil {
			t.Fatal(err)
		}
		body, err := parsed.Verify(c.with)
		if err != nil {
			t.Fatal(err)
		}
		var got token.Claims
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		want := claims()
		want.Issuer, want.Audience = token.DefaultIssuer, audience
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v\nwant %+v", c.alg, got, want)
		}
		header := parsed.Signatures[0].Protected
		if header.KeyID != c.key.KID() || header.ExtraHeaders[jose.HeaderType] != token.Type {
			t.Errorf("%s: header %+v", c.alg, header)
		}
	}
}

func TestWeReadGoJose(t *testing.T) {
	block, _ := pem.Decode([]byte(vectorPEM))
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	private := parsed.(ed25519.PrivateKey)
	public := jose.JSONWebKey{Key: private.Public(), Algorithm: "EdDSA", Use: "sig"}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{public}})
	if err != nil {
		t.Fatal(err)
	}
	hmacKID := mustKey(t, token.KindHMAC, secret).KID()
	v := mustVerifier(t, token.Options{JWKS: set, Secret: secret})
	for _, key := range []struct {
		jose.SigningKey
		kid string
	}{
		{jose.SigningKey{Algorithm: jose.EdDSA, Key: private}, vectorKID},
		{jose.SigningKey{Algorithm: jose.HS256, Key: []byte(secret)}, hmacKID},
	} {
		signer, err := jose.NewSigner(key.SigningKey, (&jose.SignerOptions{}).WithType(token.Type).WithHeader("kid", key.kid))
		if err != nil {
			t.Fatal(err)
		}
		c := claims()
		c.Issuer, c.Audience = token.DefaultIssuer, audience
		body, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		jws, err := signer.Sign(body)
		if err != nil {
			t.Fatal(err)
		}
		compact, err := jws.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		got, err := v.Verify(compact, token.Expect{Subject: c.Subject, Lines: c.Lines})
		if err != nil {
			t.Fatalf("%s: %v", key.Algorithm, err)
		}
		if !reflect.DeepEqual(*got, c) {
			t.Errorf("%s: got %+v\nwant %+v", key.Algorithm, *got, c)
		}
	}
}

func TestJWKSPassesOverWhatItCannotUse(t *testing.T) {
	raw, _ := mustKey(t, token.KindEd25519, vectorPEM).PublicJWK()
	secretJWK := json.RawMessage(`{"kty":"oct","alg":"HS256","k":"` + encode(secret) + `"}`)
	forEncryption := json.RawMessage(`{"kty":"OKP","crv":"Ed25519","use":"enc","x":"` + encode(secret) + `"}`)
	ofAnother := json.RawMessage(`{"kty":"OKP","crv":"Ed25519","alg":"ES256","x":"` + encode(secret) + `"}`)
	short := json.RawMessage(`{"kty":"OKP","crv":"Ed25519","x":"AAAA"}`)
	number := json.RawMessage(`1`)

	set, err := token.JWKS(secretJWK, forEncryption, ofAnother, short, number, raw)
	if err != nil {
		t.Fatal(err)
	}
	v := mustVerifier(t, token.Options{JWKS: set})
	if _, err := v.Verify(mustSign(t, mustKey(t, token.KindEd25519, vectorPEM), claims()), token.Expect{AnySubject: true}); err != nil {
		t.Errorf("the one good key: %v", err)
	}
	var key struct{ X string }
	if err := json.Unmarshal(raw, &key); err != nil {
		t.Fatal(err)
	}
	bare, err := token.JWKS(json.RawMessage(`{"kty":"OKP","crv":"Ed25519","x":"` + key.X + `"}`)) // RFC 8037 asks for no more
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mustVerifier(t, token.Options{JWKS: bare}).Verify(mustSign(t, mustKey(t, token.KindEd25519, vectorPEM), claims()), token.Expect{AnySubject: true}); err != nil {
		t.Errorf("a key without use and alg: %v", err)
	}
	if _, err := v.Verify(mustSign(t, mustKey(t, token.KindHMAC, secret), claims()), token.Expect{AnySubject: true}); err == nil {
		t.Error("a secret from a public set was accepted")
	}
	for _, useless := range []json.RawMessage{secretJWK, forEncryption, ofAnother, short, number} {
		set, err := token.JWKS(useless)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := token.NewVerifier(token.Options{Audience: audience, JWKS: set}); err == nil {
			t.Errorf("a set with only %s was accepted", useless)
		}
	}
}

func TestJWKSOfNothing(t *testing.T) {
	if set, err := token.JWKS(); err != nil || string(set) != `{"keys":[]}` {
		t.Errorf("%s, %v", set, err)
	}
	if set, err := token.JWKS(json.RawMessage(`{`)); err == nil {
		t.Errorf("%s", set)
	}
}
