package session

import (
	"sync"
	"time"
)

const (
	// remembered is how long what the shop said about a cart is used again.
	remembered = 2 * time.Second
	// maxRemembered bounds what is remembered, in bytes.
	maxRemembered = 32 << 20
)

// Carts remembers, for a moment, what the shop said about carts that were refused: a buyer of
// a sold-out item asks again and again, and the shop need not be asked each time. The zero
// value is ready.
type Carts struct {
	mu    sync.Mutex
	byKey map[Key]*sessionCart
	order []*sessionCart // by age
	bytes int
}

type sessionCart struct {
	keys     []Key
	question uint64
	document []byte
	until    time.Time
}

// Remember keeps what the shop said about the cart of a session. question stands for what the shop
// was asked, because a session may have several carts.
func (c *Carts) Remember(keys []Key, question uint64, document []byte, now time.Time) {
	if len(keys) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = make(map[Key]*sessionCart)
	}
	one := &sessionCart{keys: keys, question: question, document: document, until: now.Add(remembered)}
	for len(c.order) > 0 && (c.order[0].until.Before(now) || c.bytes+len(document) > maxRemembered) {
		c.drop(c.order[0])
		c.bytes -= len(c.order[0].document)
		c.order = c.order[1:]
	}
	for _, key := range keys {
		c.byKey[key] = one
	}
	c.order, c.bytes = append(c.order, one), c.bytes+len(document)
}

// Recall returns what the shop said to the question about the cart of a session; nil: ask it.
func (c *Carts) Recall(keys []Key, question uint64, now time.Time) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found *sessionCart
	for i, key := range keys {
		one := c.byKey[key]
		if one == nil || now.After(one.until) || i > 0 && one != found || len(one.keys) != len(keys) {
			return nil
		}
		found = one
	}
	if found == nil || found.question != question {
		return nil
	}
	return found.document
}

// Forget is called for each request of a session that may change its cart.
func (c *Carts) Forget(keys []Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if one := c.byKey[key]; one != nil {
			c.drop(one)
		}
	}
}

func (c *Carts) drop(one *sessionCart) {
	for _, key := range one.keys {
		if c.byKey[key] == one {
			delete(c.byKey, key)
		}
	}
}
