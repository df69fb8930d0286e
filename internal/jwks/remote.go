// Package jwks fetches and caches a JSON Web Key Set (RFC 7517) of another server: it
// is fetched when it is first needed, again when a key is missing, and at a bounded
// rate.
package jwks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// firstInterval is the least time between two fetches while none has worked.
const firstInterval = time.Second

// maxSet is the most bytes of a key set that are read.
const maxSet = 256 << 10

// Options says where a key set is fetched, and how often at most.
type Options struct {
	// URL of the JWKS, http or https, usually …/.well-known/jwks.json.
	URL string
	// Client makes the request. Default: one that follows no redirects.
	Client *http.Client
	// Timeout bounds one fetch. Default 5 s.
	Timeout time.Duration
	// MinInterval is the least time between two fetches for unknown keys, so
	// that forged tokens cannot turn this process against the publisher. While
	// no fetch has worked it is at most 1 s: no token can be verified then.
	// Default 10 s.
	MinInterval time.Duration
	// DoubtInterval is the least time between two fetches for a key of the set that does not fit a
	// signature, which anyone can forge. Default 30 s.
	DoubtInterval time.Duration
	// MaxAge is the age from which the set is fetched again in the background,
	// so that a key that was withdrawn is forgotten. Default 1 h.
	MaxAge time.Duration
	// MaxStale is the age from which a set no longer counts, if no newer one could be fetched. Default:
	// it counts until then.
	MaxStale time.Duration
	// Failed is called with the reason each time a fetch fails. Default: not called.
	Failed func(error)
	// Now is the clock. Default: [time.Now].
	Now func() time.Time
}

// Why a key was not found.
var (
	// ErrMissing: the set is there and does not have it.
	ErrMissing = errors.New("not in the JWKS")
	// ErrFetch: the set, or a newer one that may have the key, could not be fetched.
	ErrFetch = errors.New("the JWKS could not be fetched")
)

// Remote is a key set in the form S that parse makes of it. There is one fetch at a time,
// and every caller that needs its result waits for it. If a fetch fails, the set of the
// last one stays. It may be used by many goroutines at once.
type Remote[S any] struct {
	o     Options
	parse func([]byte) (S, error)

	mu      sync.Mutex
	set     S
	begun   time.Time // of the last fetch; zero: none
	fetched time.Time // of the last fetch that worked; zero: none
	running *fetch    // nil: none
	failure error     // of the last fetch; nil: it worked
}

// fetch is one request for the set. err is set before done is closed.
type fetch struct {
	done chan struct{}
	err  error
}

// New makes a key set. Nothing is fetched yet. parse may be called at any time,
// and fails for a set that is of no use.
func New[S any](o Options, parse func([]byte) (S, error)) (*Remote[S], error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, errors.New("JWKS URL: it cannot be read: give a whole http or https URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("JWKS URL %q: give a whole http or https URL", u.Redacted())
	}
	if min(o.Timeout, o.MinInterval, o.DoubtInterval, o.MaxAge, o.MaxStale) < 0 {
		return nil, errors.New("remote keys: times must not be negative")
	}
	if o.Client == nil {
		o.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
			// The URL decides which server is trusted; an answer must not redirect that.
			return http.ErrUseLastResponse
		}}
	}
	for _, d := range []struct {
		to       *time.Duration
		fallback time.Duration
	}{{&o.Timeout, 5 * time.Second}, {&o.MinInterval, 10 * time.Second}, {&o.DoubtInterval, 30 * time.Second}, {&o.MaxAge, time.Hour}} {
		if *d.to == 0 {
			*d.to = d.fallback
		}
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Remote[S]{o: o, parse: parse}, nil
}

// Refresh fetches the set now, or waits for the fetch that is running.
func (r *Remote[S]) Refresh(ctx context.Context) error {
	r.mu.Lock()
	f := r.start()
	r.mu.Unlock()
	return f.wait(ctx)
}

// Find returns the set if has accepts it, fetching it first if necessary and allowed; ctx
// bounds the wait. A set that has what is needed is returned at once, however old it is.
// has is only asked about a set that was fetched, and must be quick. Errors wrap
// [ErrMissing] or [ErrFetch].
func (r *Remote[S]) Find(ctx context.Context, has func(S) bool) (S, error) {
	return r.find(ctx, has, 0)
}

// FindNewer is Find for a key that the set has, and that does not fit: has accepts a set with another one.
// It fetches at most once in DoubtInterval.
func (r *Remote[S]) FindNewer(ctx context.Context, has func(S) bool) (S, error) {
	return r.find(ctx, has, r.o.DoubtInterval)
}

func (r *Remote[S]) find(ctx context.Context, has func(S) bool, least time.Duration) (S, error) {
	var none S
	r.mu.Lock()
	set, known := r.look(has)
	f := r.running
	if now := r.o.Now(); r.begun.IsZero() || now.Sub(r.begun) >= max(r.interval(), least) {
		if !known || now.Sub(r.fetched) >= r.o.MaxAge {
			f = r.start()
		}
	}
	failure := r.failure
	r.mu.Unlock()

	switch {
	case known:
		return set, nil
	case f == nil && failure != nil:
		return none, fmt.Errorf("%w, and is not asked again yet: %w", ErrFetch, failure)
	case f == nil:
		return none, fmt.Errorf("%w of %s, fetched less than %s ago", ErrMissing, r.name(), max(r.o.MinInterval, least))
	}
	if err := f.wait(ctx); err != nil {
		return none, fmt.Errorf("%w: %w", ErrFetch, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if set, known = r.look(has); known {
		return set, nil
	}
	return none, fmt.Errorf("%w of %s, fetched just now", ErrMissing, r.name())
}

// interval is the least time between two fetches at present. The caller holds mu.
func (r *Remote[S]) interval() time.Duration {
	if r.fetched.IsZero() {
		return min(r.o.MinInterval, firstInterval)
	}
	return r.o.MinInterval
}

// look asks has about the set, if there is one. The caller holds mu.
func (r *Remote[S]) look(has func(S) bool) (S, bool) {
	counts := !r.fetched.IsZero() && (r.o.MaxStale == 0 || r.o.Now().Sub(r.fetched) < r.o.MaxStale)
	return r.set, counts && has(r.set)
}

// start begins a fetch unless one is running. The caller holds mu. The fetch
// does not end with the request that caused it: others wait for it too.
func (r *Remote[S]) start() *fetch {
	if r.running != nil {
		return r.running
	}
	f := &fetch{done: make(chan struct{})}
	r.running = f
	r.begun = r.o.Now()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), r.o.Timeout)
		defer cancel()
		set, err := r.get(ctx)
		if err != nil {
			r.o.Failed(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if err == nil {
			r.set, r.fetched = set, r.o.Now()
		}
		r.failure, r.running = err, nil
		f.err = err
		close(f.done)
	}()
	return f
}

func (f *fetch) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *Remote[S]) get(ctx context.Context) (set S, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.o.URL, nil)
	if err != nil {
		return set, err
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := r.o.Client.Do(request)
	if err != nil {
		return set, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return set, fmt.Errorf("GET %s: status %s, expected 200", r.name(), response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxSet+1))
	if err != nil {
		return set, fmt.Errorf("GET %s: %w", r.name(), err)
	}
	if len(body) > maxSet {
		return set, fmt.Errorf("GET %s: more than %d bytes", r.name(), maxSet)
	}
	if set, err = r.parse(body); err != nil {
		return set, fmt.Errorf("GET %s: %w", r.name(), err)
	}
	return set, nil
}

// name is the URL without a password, for messages.
func (r *Remote[S]) name() string {
	u, err := url.Parse(r.o.URL)
	if err != nil {
		return "the JWKS URL"
	}
	return u.Redacted()
}
