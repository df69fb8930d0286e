package resolve

import (
	"context"
	"crypto/rsa"
	"sync"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
)

const (
	// maxCertificates is how many certificates are kept: a provider has few that are valid.
	maxCertificates = 16
	// certificateFor is how long one is kept, if it is valid that long.
	certificateFor = time.Hour
)

// certificates keeps the certificates of one issuer, by their URLs. Each is fetched once for all webhooks that need it.
type certificates struct {
	fetch  func(url string) (*certificate, *refusal)
	limits *fetchLimits

	mu       sync.Mutex
	kept     map[string]*certificate // also some whose time is over, at most maxCertificates
	underWay map[string]*fetching
}

// certificate is one that was verified.
type certificate struct {
	key   *rsa.PublicKey
	until time.Time
}

// fetching is one that is being fetched. The others are set when done is closed.
type fetching struct {
	done  chan struct{}
	found *certificate
	no    *refusal
}

// ended is of fetches that have ended.
var ended = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func newCertificates(fetch func(url string) (*certificate, *refusal)) *certificates {
	return &certificates{
		fetch: fetch, limits: newFetchLimits(),
		kept: make(map[string]*certificate), underWay: make(map[string]*fetching),
	}
}

// of returns the key of a certificate for a webhook of that client.
func (c *certificates) of(ctx context.Context, url, client string) (*rsa.PublicKey, error) {
	f, done, no := c.begin(url, client, time.Now())
	if no != nil {
		return nil, no
	}
	if done != nil {
		c.run(url, f, done)
	}
	return f.wait(ctx)
}

// run fetches, and ends the fetch even if it panics: other requests wait for it.
func (c *certificates) run(url string, f *fetching, done func()) {
	f.no = unavailable(meter.WebhookProviderFailed, "the provider's certificate cannot be read")
	defer func() {
		done()
		c.end(url, f, time.Now())
	}()
	f.found, f.no = c.fetch(url)
}

// begin returns the fetch of a certificate. done: it is the caller's, who must call done and end; nil: it has
// ended or is another's.
func (c *certificates) begin(url, client string, now time.Time) (f *fetching, done func(), no *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.kept[url]
	if kept != nil && now.Before(kept.until) {
		return &fetching{done: ended, found: kept}, nil, nil
	}
	if f = c.underWay[url]; f != nil {
		return f, nil, nil
	}
	if done, no = c.limits.begin(client, url, kept != nil, now); no != nil {
		return nil, nil, no
	}
	f = &fetching{done: make(chan struct{})}
	c.underWay[url] = f
	return f, done, nil
}

// end keeps what was fetched. A certificate that was valid and cannot be fetched any more is not used.
func (c *certificates) end(url string, f *fetching, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.underWay, url)
	if f.found != nil {
		c.makeRoom(url, now)
		c.kept[url] = f.found
	}
	close(f.done)
}

// makeRoom forgets one whose time is over, or any, where there are too many.
func (c *certificates) makeRoom(url string, now time.Time) {
	if c.kept[url] != nil || len(c.kept) < maxCertificates {
		return
	}
	var last string
	for other, kept := range c.kept {
		if last = other; !now.Before(kept.until) {
			break
		}
	}
	delete(c.kept, last)
}

// wait returns what was fetched. A provider that does not wait for it gets no answer.
func (f *fetching) wait(ctx context.Context) (*rsa.PublicKey, error) {
	select {
	case <-f.done:
		if f.no != nil {
			return nil, f.no
		}
		return f.found.key, nil
	case <-ctx.Done():
		return nil, unavailable(meter.WebhookProviderFailed, "the request ended before the provider's certificate was there")
	}
}
