package bearer

import (
	"crypto/sha256"
	"sync"
	"time"
)

// verified is a genuine token: what else is to be asked about it is whether its
// time has come or is over, and whether its key still counts.
type verified struct {
	claims []byte
	// never is why it is not accepted at any time, for its issuer, its audience or
	// claims that cannot be read; nil: it can be. It is remembered, so that a client
	// that repeats such a token costs one signature.
	never error
	key   *key
	// from and until are nbf and exp; zero: it has none.
	from, until time.Time
}

// valid tells whether the token is valid at that time.
func (t *verified) valid(now time.Time, leeway time.Duration) error {
	switch {
	case t.never != nil:
		return t.never
	case !t.until.IsZero() && !now.Before(t.until.Add(leeway)):
		return ErrExpired
	case now.Add(leeway).Before(t.from):
		return ErrNotYet
	}
	return nil
}

// digest is the SHA-256 of a token: what the cache knows it by.
type digest = [sha256.Size]byte

// entrySize is what an entry costs beside its claims, roughly.
const entrySize = 256

// cache remembers verified tokens, the recently used ones of them: when the
// young ones fill half of the bound they become the old ones, and the old ones
// before them are forgotten. So it needs no list, and never holds more than the
// bound.
type cache struct {
	half int

	mu         sync.Mutex
	young, old map[digest]*verified
	size       int // of young
}

func newCache(bytes int) *cache {
	return &cache{half: bytes / 2, young: make(map[digest]*verified)}
}

func (c *cache) get(id digest) (*verified, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, ok := c.young[id]; ok {
		return t, true
	}
	t, ok := c.old[id]
	if ok {
		delete(c.old, id)
		c.add(id, t)
	}
	return t, ok
}

func (c *cache) put(id digest, t *verified) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(id, t)
}

// add makes an entry a young one. The caller holds mu.
func (c *cache) add(id digest, t *verified) {
	cost := entrySize + cap(t.claims)
	if cost > c.half {
		return
	}
	if _, there := c.young[id]; there { // verified twice at the same time
		c.young[id] = t
		return
	}
	if c.size+cost > c.half {
		c.old, c.young, c.size = c.young, make(map[digest]*verified), 0
	}
	c.young[id] = t
	c.size += cost
}
