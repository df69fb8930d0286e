// Package signing has the keys of an edge: they sign reservation tokens, verify them, and make challenges.
package signing

import (
	"cmp"
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

// autoKeyPath is where in Caddy's storage the key of `auto` is kept.
const autoKeyPath = "stockgate/token.ed25519.pem"

// KeySource is where a key comes from.
type KeySource struct {
	Kind     string // auto, ed25519 or hmac
	Material string // the PEM or the secret, as a placeholder; none for auto
}

// Keys are the keys of an edge, and what they sign and verify with.
type Keys struct {
	all      []token.Key
	signer   *token.Signer
	verifier *token.Verifier
	// challenge keys are derived from all.
	challenge []challenge.TaskKey
}

// Check checks what needs no storage.
func Check(sources []KeySource) error {
	autos := 0
	for i := range sources {
		k := &sources[i]
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
func (k *KeySource) parse() (token.Key, error) {
	if k.Kind != "ed25519" && k.Kind != "hmac" {
		return token.Key{}, fmt.Errorf("key %q: there are auto, ed25519 and hmac", k.Kind)
	}
	material, err := directive.FillSecret(k.Material)
	if err != nil {
		return token.Key{}, fmt.Errorf("key %s: its material %w", k.Kind, err)
	}
	return token.ParseKey(k.Kind, material)
}

// Load reads all keys, and makes the one of `auto` on the first start. The first key signs, all verify. An empty
// issuer is the default.
func Load(storage certmagic.Storage, sources []KeySource, issuer, audience string) (*Keys, error) {
	issuer = cmp.Or(issuer, token.DefaultIssuer)
	keys := new(Keys)
	for i := range sources {
		var key token.Key
		var err error
		if k := &sources[i]; k.Kind == "auto" {
			key, err = autoKey(storage)
		} else {
			key, err = k.parse()
		}
		if err != nil {
			return nil, fmt.Errorf("token: %w", err)
		}
		keys.all = append(keys.all, key)
		keys.challenge = append(keys.challenge, challenge.NewKey([32]byte(key.Derive("stockgate challenge"))))
	}
	var err error
	if keys.signer, err = token.NewSigner(issuer, audience, keys.all[0]); err != nil {
		return nil, err
	}
	keys.verifier, err = token.NewVerifier(token.Options{Keys: keys.all, Issuer: issuer, Audience: audience})
	return keys, err
}

// All returns the keys, the one that signs first.
func (k *Keys) All() []token.Key { return k.all }

// Signer signs reservation tokens.
func (k *Keys) Signer() *token.Signer { return k.signer }

// Verifier verifies tokens that the keys have signed.
func (k *Keys) Verifier() *token.Verifier { return k.verifier }

// autoKey loads the key from storage. Edges that share their storage share the key: the
// lock lets only one of them create it.
func autoKey(storage certmagic.Storage) (token.Key, error) {
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

func makeAutoKey(ctx context.Context, storage certmagic.Storage) (pem []byte, err error) {
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
