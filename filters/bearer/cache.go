package bearer

import (
	"crypto/sha256"
	"sync"
	"time"
)

// verified is a genuine token. What remains to be checked is whether it is valid now,
// and whether its key still counts.
type verified struct {
	claims []byte
	// never is why it is never accepted: its issuer, its audience, or claims that
	// cannot be read; nil: it can be accepted. It is cached too, so that a client that
	// repeats such a token costs one signature.
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

// digest is the SHA-256 of a token, its key in the cache.
type digest = [sha256.Size]byte

// entrySize is about what an entry takes besides its claims, in bytes.
const entrySize = 256

// cache keeps recently used verified tokens in two generations: when the young one
// fills half of the bound it becomes the old one, and the previous old one is dropped.
// So it needs no list, and never exceeds the bound.
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
