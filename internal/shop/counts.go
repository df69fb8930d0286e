package shop

import (
	"maps"
	"sync"
	"sync/atomic"
)

// maxTokens bounds the memory of Counts.Tokens; further ids are not counted.
const maxTokens = 1 << 20

// Counts says what has reached the shop since it was opened.
type Counts struct {
	// Requests is all of them, browsing included.
	Requests int64
	// Attempts is the requests on the order route.
	Attempts int64
	// Untrusted is the attempts that were refused because they had no token, or none
	// that this shop trusts.
	Untrusted int64
	// Tokens is how often each reservation id arrived, whatever was answered.
	// More than once means that something between repeated the request.
	Tokens map[string]int
}

type counts struct {
	requests, attempts, untrusted atomic.Int64

	mu     sync.Mutex
	tokens map[string]int
}

// Counts returns what has reached the shop so far.
func (s *Shop) Counts() Counts {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	return Counts{
		Requests:  s.counts.requests.Load(),
		Attempts:  s.counts.attempts.Load(),
		Untrusted: s.counts.untrusted.Load(),
		Tokens:    maps.Clone(s.counts.tokens),
	}
}

func (c *counts) token(id string) {
	if id == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens == nil {
		c.tokens = make(map[string]int)
	}
	if _, seen := c.tokens[id]; seen || len(c.tokens) < maxTokens {
		c.tokens[id]++
	}
}
