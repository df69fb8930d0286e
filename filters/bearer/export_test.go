package bearer

// Cache is the memory of verified tokens, for tests of its bound.
type Cache struct{ c *cache }

// NewCache makes one.
func NewCache(bytes int) Cache { return Cache{newCache(bytes)} }

// Put remembers a token whose claims have so many bytes.
func (c Cache) Put(id digest, size int) { c.c.put(id, &verified{claims: make([]byte, size)}) }

// Has tells whether a token is remembered, and uses it.
func (c Cache) Has(id digest) bool {
	_, ok := c.c.get(id)
	return ok
}

// Bytes counts what is remembered, entry by entry.
func (c Cache) Bytes() int { return c.c.bytes() }

// Remembered is how many bytes a verifier remembers.
func (v *Verifier) Remembered() int { return v.known.bytes() }

func (c *cache) bytes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, m := range []map[digest]*verified{c.young, c.old} {
		for _, t := range m {
			n += entrySize + cap(t.claims)
		}
	}
	return n
}
