package app

import (
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/app/signing"
)

// DefaultAudience is the claim aud where none is configured.
const DefaultAudience = "order-backend"

// Token says how reservation tokens are signed.
type Token struct {
	// Keys are `auto`: an Ed25519 key that the first start makes and keeps in Caddy's storage; edges that do not share
	// storage need an explicit key. A secret has at least 32 bytes (HS256). The first key signs, all verify. Default:
	// `auto`.
	Keys []TokenKey `json:"keys,omitempty"`
	// Issuer is the claim `iss`. Default: `stockgate`.
	Issuer string `json:"issuer,omitempty"`
	// Audience is the claim `aud`, which the shop checks. Default: `order-backend`.
	Audience string `json:"audience,omitempty"`
	// Margin is how long before the end of the hold the token expires. Default: a fifth of `hold_for`, 1s to 5s.
	Margin caddy.Duration `json:"margin,omitempty"`
}

// TokenKey is one signing key.
type TokenKey struct {
	// Kind is auto (Ed25519, made on first start and kept in Caddy's storage),
	// ed25519 (PEM) or hmac (a shared secret of at least 32 bytes).
	Kind string `json:"kind"`
	// Material is the PEM or the secret, as a placeholder such as {env.STOCKGATE_KEY}
	// or {file./etc/stockgate/key.pem}. None for auto.
	Material string `json:"material,omitempty"`
}

// provision completes the defaults and checks what needs no storage.
func (t *Token) provision() error {
	if t.Audience == "" {
		t.Audience = DefaultAudience
	}
	if t.Margin < 0 || time.Duration(t.Margin) > time.Minute {
		return fmt.Errorf("margin %v is outside 0s to 1m", time.Duration(t.Margin))
	}
	if len(t.Keys) == 0 {
		t.Keys = []TokenKey{{Kind: "auto"}}
	}
	return signing.Check(t.sources())
}

func (t *Token) sources() (all []signing.KeySource) {
	for _, k := range t.Keys {
		all = append(all, signing.KeySource(k))
	}
	return all
}
