package shopapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// minAPIKey is the minimum length of a key of the shop's API, in bytes.
const minAPIKey = 16

// token68 is the syntax of a bearer credential (RFC 6750, section 2.1).
var token68 = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// apiKeys are the hashes of the keys. They have one length, so that the time of a comparison
// reveals nothing about a key.
type apiKeys [][sha256.Size]byte

// readAPIKeys fills in the placeholders. An error names a key by its number only.
func readAPIKeys(configured []string) (apiKeys, error) {
	if len(configured) == 0 {
		return nil, errors.New("there is no key: write `key {env.STOCKGATE_API_KEY}`")
	}
	keys := make(apiKeys, len(configured))
	for i, from := range configured {
		key, err := directive.FillSecret(from)
		switch {
		case err != nil:
			return nil, fmt.Errorf("key number %d %w", i+1, err)
		case len(key) < minAPIKey:
			return nil, fmt.Errorf("key number %d has %d bytes, it needs at least %d: make one with `openssl rand -base64 32`", i+1, len(key), minAPIKey)
		case !token68.MatchString(key):
			return nil, fmt.Errorf("key number %d cannot stand in a header: letters, digits and -._~+/ make a key, = may end it", i+1)
		}
		keys[i] = sha256.Sum256([]byte(key))
	}
	return keys, nil
}

// check returns nil if the request presents one of the keys. It compares all keys, each in
// constant time.
func (k apiKeys) check(r *http.Request) *apiProblem {
	no := &apiProblem{Status: http.StatusUnauthorized, Reason: "unauthorized", challenge: `Bearer realm="stockgate_api"`}
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		no.Detail = "send `Authorization: Bearer <key>`, once"
		return no
	}
	scheme, credential, _ := strings.Cut(values[0], " ")
	given := sha256.Sum256([]byte(strings.TrimLeft(credential, " ")))
	good := 0
	for i := range k {
		good |= subtle.ConstantTimeCompare(k[i][:], given[:])
	}
	if !strings.EqualFold(scheme, "Bearer") {
		no.Detail = "send `Authorization: Bearer <key>`"
		return no
	}
	if good == 1 {
		return nil
	}
	no.challenge += `, error="invalid_token"`
	no.Detail = "that is none of the keys; a reservation token is not one either"
	return no
}
