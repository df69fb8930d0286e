package shop

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// claims are those of a reservation token that the shop looks at.
type claims struct {
	Issuer   string         `json:"iss"`
	Audience string         `json:"aud"`
	Subject  string         `json:"sub"`
	ID       string         `json:"jti"`
	Expires  int64          `json:"exp"`
	Sale     string         `json:"sale"`
	Ref      string         `json:"ref"`
	Lines    []auditor.Line `json:"lines"`
}

// keys are the public keys of the edges, fetched when an unknown one is named.
type keys struct {
	mu    sync.Mutex
	known map[string]ed25519.PublicKey
	urls  []string
}

// trust adds a JWKS.
func (k *keys) trust(url string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.urls = append(k.urls, url)
}

func (k *keys) get(kid string) (ed25519.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key := k.known[kid]; key != nil {
		return key, nil
	}
	var last error
	for _, url := range k.urls {
		if err := k.fetch(url); err != nil {
			last = err
			continue
		}
		if key := k.known[kid]; key != nil {
			return key, nil
		}
	}
	return nil, fmt.Errorf("no edge publishes the key %q (%v)", kid, last)
}

func (k *keys) fetch(url string) error {
	client := http.Client{Timeout: 10 * time.Second}
	r, err := client.Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return err
	}
	var set struct {
		Keys []struct{ Kty, Crv, Kid, X string }
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	for _, key := range set.Keys {
		x, err := base64.RawURLEncoding.DecodeString(key.X)
		if key.Kty != "OKP" || key.Crv != "Ed25519" || err != nil || len(x) != ed25519.PublicKeySize {
			continue
		}
		if k.known == nil {
			k.known = map[string]ed25519.PublicKey{}
		}
		k.known[key.Kid] = x
	}
	return nil
}

// verify checks a token: its signature by one of the edges' keys, type, audience and time.
func (k *keys) verify(token string, now time.Time) (*claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("the token has not three parts")
	}
	var decoded [3][]byte
	for i, p := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(p); err != nil {
			return nil, errors.New("the token is not base64url")
		}
	}
	var header struct{ Typ, Alg, Kid string }
	if err := json.Unmarshal(decoded[0], &header); err != nil {
		return nil, errors.New("the token's header is no JSON")
	}
	if header.Typ != "stockgate+jwt" || header.Alg != "EdDSA" {
		return nil, fmt.Errorf("the token's typ is %q and its alg %q", header.Typ, header.Alg)
	}
	key, err := k.get(header.Kid)
	if err != nil {
		return nil, err
	}
	if !ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), decoded[2]) {
		return nil, errors.New("the token's signature is wrong")
	}
	c := new(claims)
	d := json.NewDecoder(bytes.NewReader(decoded[1]))
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("the token's claims: %w", err)
	}
	switch {
	case c.Issuer != "stockgate" || c.Audience != "order-backend":
		return nil, fmt.Errorf("the token is of %q for %q", c.Issuer, c.Audience)
	case c.ID == "" || c.Sale == "":
		return nil, errors.New("the token names no reservation or no sale")
	case !now.Before(time.Unix(c.Expires, 0)):
		return nil, fmt.Errorf("the token expired at %d, it is %d", c.Expires, now.Unix())
	}
	return c, nil
}
