package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters/challenge"
	"github.com/stockgate/stockgate/token"
)

// keyStorage is where the key of `auto` lives.
type keyStorage = certmagic.Storage

// autoKeyPath is where in Caddy's storage the key of `auto` is kept.
const autoKeyPath = "stockgate/token.ed25519.pem"

// DefaultAudience is the claim aud where none is configured.
const DefaultAudience = "order-backend"

// provision completes the defaults and checks what needs no storage.
func (t *Token) provision() error {
	if t.Issuer == "" {
		t.Issuer = token.DefaultIssuer
	}
	if t.Audience == "" {
		t.Audience = DefaultAudience
	}
	if t.Margin < 0 || time.Duration(t.Margin) > time.Minute {
		return fmt.Errorf("margin %v is outside 0s to 1m", time.Duration(t.Margin))
	}
	if len(t.Keys) == 0 {
		t.Keys = []TokenKey{{Kind: "auto"}}
	}
	autos := 0
	for _, k := range t.Keys {
		if k.Kind == "auto" {
			if autos++; autos > 1 {
				return errors.New("key auto stands twice; there is only one")
			}
			if k.Material != "" {
				return errors.New("key auto takes no material; write `key ed25519 <pem>` to bring one")
			}
			continue
		}
		if _, err := k.parse(); err != nil {
			return err
		}
	}
	return nil
}

// parse reads a key from the configuration.
func (k *TokenKey) parse() (token.Key, error) {
	if k.Kind != "ed25519" && k.Kind != "hmac" {
		return token.Key{}, fmt.Errorf("key %q: there are auto, ed25519 and hmac", k.Kind)
	}
	material, err := directive.FillSecret(k.Material)
	if err != nil {
		return token.Key{}, fmt.Errorf("key %s: its material %w", k.Kind, err)
	}
	return token.ParseKey(k.Kind, material)
}

// load reads all keys, and makes the one of `auto` on the first start.
func (t *Token) load(storage keyStorage) (*signing, error) {
	s := new(signing)
	for _, k := range t.Keys {
		var key token.Key
		var err error
		if k.Kind == "auto" {
			key, err = autoKey(storage)
		} else {
			key, err = k.parse()
		}
		if err != nil {
			return nil, fmt.Errorf("token: %w", err)
		}
		s.keys = append(s.keys, key)
		s.challenge = append(s.challenge, challenge.NewKey([32]byte(key.Derive("stockgate challenge"))))
	}
	var err error
	if s.signer, err = token.NewSigner(t.Issuer, t.Audience, s.keys[0]); err != nil {
		return nil, err
	}
	s.verifier, err = token.NewVerifier(token.Options{Keys: s.keys, Issuer: t.Issuer, Audience: t.Audience})
	return s, err
}

// autoKey loads the key from storage. Edges that share their storage share the key: the
// lock lets only one of them create it.
func autoKey(storage keyStorage) (token.Key, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	pem, err := storage.Load(ctx, autoKeyPath)
	if errors.Is(err, fs.ErrNotExist) {
		pem, err = makeAutoKey(ctx, storage)
	}
	if err != nil {
		return token.Key{}, fmt.Errorf("key auto: %s in Caddy's storage: %w", autoKeyPath, err)
	}
	key, err := token.ParseKey("ed25519", string(pem))
	if err != nil {
		return token.Key{}, fmt.Errorf("key auto: %s in Caddy's storage: %w", autoKeyPath, err)
	}
	return key, nil
}

func makeAutoKey(ctx context.Context, storage keyStorage) (pem []byte, err error) {
	if err := storage.Lock(ctx, autoKeyPath); err != nil {
		return nil, err
	}
	defer func() {
		if e := storage.Unlock(context.WithoutCancel(ctx), autoKeyPath); err == nil {
			err = e
		}
	}()
	if pem, err := storage.Load(ctx, autoKeyPath); !errors.Is(err, fs.ErrNotExist) {
		return pem, err // another edge was quicker
	}
	_, pem, err = token.GenerateEd25519()
	if err != nil {
		return nil, err
	}
	return pem, storage.Store(ctx, autoKeyPath, pem)
}
