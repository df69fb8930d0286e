package token

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stockgate/stockgate/internal/jwks"
)

// RemoteOptions says where a key set is fetched, and how often at most.
type RemoteOptions struct {
	// URL of the JWKS, http or https, usually …/.well-known/jwks.json.
	URL string
	// Client makes the request. Default: one that follows no redirects.
	Client *http.Client
	// Timeout bounds one fetch. Default 5 s.
	Timeout time.Duration
	// MinInterval is the least time between two fetches for unknown keys, so
	// that forged tokens cannot turn the backend against the edge; at most 1 s
	// while no fetch has worked. Default 10 s.
	MinInterval time.Duration
	// MaxAge is the age from which the set is fetched again in the background,
	// so that a key that the edge has withdrawn is forgotten. Default 1 h.
	MaxAge time.Duration
	// Now is the clock. Default: [time.Now].
	Now func() time.Time
}

// RemoteKeys is a key set that is fetched when a token first needs it, and
// again when a token names an unknown key. There is one fetch at a time, and every caller
// that needs its result waits for it. If a fetch fails, the keys of the last one stay. It
// may be used by many goroutines at once.
type RemoteKeys struct {
	set *jwks.Remote[map[string]checker]
}

// NewRemoteKeys makes a key set. Nothing is fetched yet; call [RemoteKeys.Refresh] to
// check at once that the URL works.
func NewRemoteKeys(o RemoteOptions) (*RemoteKeys, error) {
	set, err := jwks.New(jwks.Options{
		URL: o.URL, Client: o.Client,
		Timeout: o.Timeout, MinInterval: o.MinInterval, MaxAge: o.MaxAge, Now: o.Now,
	}, parseJWKS)
	if err != nil {
		return nil, err
	}
	return &RemoteKeys{set}, nil
}

// Refresh fetches the set now, or waits for the fetch that is running.
func (r *RemoteKeys) Refresh(ctx context.Context) error { return r.set.Refresh(ctx) }

// lookup returns the key of that thumbprint, fetching the set if it must and may.
func (r *RemoteKeys) lookup(ctx context.Context, kid string) (checker, error) {
	set, err := r.set.Find(ctx, func(keys map[string]checker) bool {
		_, known := keys[kid]
		return known
	})
	switch {
	case errors.Is(err, jwks.ErrMissing):
		return checker{}, fmt.Errorf("%w: %q is %w: is this the edge that signed?", ErrUnknownKey, short(kid), err)
	case err != nil:
		return checker{}, fmt.Errorf("%w: %q: %w: answer 503, and compare the URL with the edge's", ErrKeysUnavailable, short(kid), err)
	}
	return set[kid], nil
}
