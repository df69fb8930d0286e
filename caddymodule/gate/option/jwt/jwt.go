// Package jwt is the gate's option jwt: it verifies the shop's own bearer tokens.
package jwt

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/bearer"
)

// Config verifies the bearer tokens of the shop (JWT, RFC 7519) at the edge, so that no
// attempt costs a call to the shop's authentication. Exactly one of JWKS, HMAC and Ed25519
// is required. Each may be or contain a placeholder such as {env.KEY} or
// {file./etc/stockgate/jwt.pem}, which stays out of config dumps.
//
// `{jwt.CLAIM}` is a claim that is a string or a whole number; a dotted path leads to
// nested ones ({jwt.user.id}), and a dot in a name is written `\.`. An attempt without a
// token has no claims; an attempt whose token is not accepted is refused as no_buyer, and
// the detail says why. exp and nbf are checked if the token has them.
//
// A client address (the /64 of an IPv6 address) that has sent 20 tokens that are not
// genuine is refused as rate_limited before another one is verified; it gets two more a
// second. Tokens that were verified before are never refused for that reason.
//
// Several of them are several issuers, such as two tenants, or the old and the new one of a
// migration: each has its Issuer, and the iss of a token selects the one that verifies it, with
// its own keys, audience and required claims. All have the same Cookie.
type Config struct {
	// JWKS is the URL of a key set (RFC 7517), http or https: its RSA keys verify RS256,
	// P-256 keys ES256, Ed25519 keys EdDSA. It is fetched when the first token comes, again
	// when a token names an unknown key (every 10s at most; every second while no fetch has
	// worked), and every hour; if a fetch fails, the previous keys stay valid.
	JWKS string `json:"jwks,omitempty"`
	// HMAC is the secret of at least 32 bytes that verifies HS256.
	HMAC string `json:"hmac,omitempty"`
	// Ed25519 is the public key that verifies EdDSA: PEM, or the path of a file.
	Ed25519 string `json:"ed25519,omitempty"`
	// Issuer is the `iss` that a token must have; `{env.ISSUER}` works, and must not be empty. Default: any.
	Issuer string `json:"issuer,omitempty"`
	// Audience is an `aud` that it must have; placeholders too. Default: any.
	Audience string `json:"audience,omitempty"`
	// Require are claims that must have one of these values. Default: none.
	//
	// The name is a path, as in {jwt.CLAIM}; one that begins with http:// or https:// and has no backslash is one
	// name. The value is a string, a boolean, a whole number, an element of an array, or a word of scope.
	// Placeholders in values are as in Issuer.
	Require map[string][]string `json:"require,omitempty"`
	// Prefix stands before a claim's value: `{jwt.sub}` is `new:u1` with `prefix sub new:`. Default: none.
	//
	// Equal values of two issuers are then two buyers.
	Prefix map[string]string `json:"prefix,omitempty"`
	// Cookie is where the token is. Default: the header Authorization.
	Cookie string `json:"cookie,omitempty"`
	// Leeway is how far clocks may differ, up to 1m. Default: 0.
	Leeway caddy.Duration `json:"leeway,omitempty"`
}

// verifiers are shared by gates with the same JWT and by the configurations that exist at
// the same time: a reload drops neither the keys nor the tokens that were verified.
var verifiers = caddy.NewUsagePool()

// pooled is the pool's entry. There is nothing to close.
type pooled struct {
	*bearer.Verifier
	// forged counts the tokens of each client address that are not genuine.
	forged *filters.RateTable
}

func (*pooled) Destruct() error { return nil }

// forgedRate is the number of tokens that are not genuine that an address may have
// verified: more than clients send by mistake, and too few to keep a core busy.
var forgedRate = filters.Rate{Events: 20, Window: 10 * time.Second, Keys: 1 << 14}

// open takes the verifier from the pool, or makes it. It fetches nothing.
func (j *Config) open() (key string, v *pooled, err error) {
	o, err := j.options()
	if err != nil {
		return "", nil, err
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %v %q %q", o.JWKS, o.Secret, o.PublicKey, o.Issuer, o.Audience, o.Leeway, o.Require, o.Prefix))
	key = hex.EncodeToString(hash[:])
	shared, _, err := verifiers.LoadOrNew(key, func() (caddy.Destructor, error) {
		made, err := bearer.New(o)
		return &pooled{made, filters.NewRateTable(forgedRate)}, err
	})
	if err != nil {
		return "", nil, err
	}
	return key, shared.(*pooled), nil
}

// options fills in the placeholders.
func (j *Config) options() (bearer.Options, error) {
	o := bearer.Options{Leeway: time.Duration(j.Leeway), Prefix: j.Prefix, Failed: keysFailed}
	var err error
	if o.Require, err = j.required(directive.FillSecret); err != nil {
		return o, err
	}
	for _, one := range []struct {
		what, text string
		into       *string
	}{{"issuer", j.Issuer, &o.Issuer}, {"audience", j.Audience, &o.Audience}} {
		if one.text == "" {
			continue // any
		}
		var err error
		if *one.into, err = directive.FillSecret(one.text); err != nil {
			return o, fmt.Errorf("%s %w", one.what, err)
		}
	}
	given := 0
	for _, one := range []struct {
		what, text string
		into       *string
	}{{"the URL", j.JWKS, &o.JWKS}, {"hmac", j.HMAC, &o.Secret}, {"ed25519", j.Ed25519, &o.PublicKey}} {
		if one.text == "" {
			continue
		}
		given++
		var err error
		if *one.into, err = directive.FillSecret(one.text); err != nil {
			return o, fmt.Errorf("%s %w", one.what, err)
		}
	}
	if given != 1 {
		return o, errors.New("give either the URL of a JWKS, an hmac secret or an ed25519 key")
	}
	if key := o.PublicKey; key != "" && !strings.Contains(key, "-----BEGIN") {
		if len(key) > maxPath || strings.ContainsAny(key, "\r\n") {
			return o, errors.New("ed25519 is neither PEM nor the path of a file")
		}
		content, err := os.ReadFile(key)
		if err != nil {
			return o, fmt.Errorf("ed25519: %w", err)
		}
		o.PublicKey = string(content)
	}
	return o, nil
}

// required returns Require, sorted by claim, with its values filled in.
func (j *Config) required(fill func(string) (string, error)) (claims []bearer.Claim, err error) {
	for _, name := range slices.Sorted(maps.Keys(j.Require)) {
		claim := bearer.Claim{Name: name}
		for _, text := range j.Require[name] {
			value, err := fill(text)
			if err != nil {
				return nil, fmt.Errorf("require %s %w", name, err)
			}
			claim.Values = append(claim.Values, value)
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

// maxPath bounds the length of text that is taken for a path.
const maxPath = 4096

// keysFailed logs that a JWKS could not be fetched. Verifiers outlive configurations, so
// they have no logger of their own.
func keysFailed(err error) {
	caddy.Log().Named("http.handlers.stockgate").Error("the keys of the shop's bearer tokens could not be fetched: tokens of keys that are not known yet are answered with 503",
		zap.Error(err))
}
