package rates

import "time"

// OverMemory is what an edge remembers of keys that are over.
type OverMemory struct{ m overMemory }

// OverKeys bounds it.
const OverKeys = overKeys

// Wait is how long a key is over for sure; 0: it may pass.
func (o *OverMemory) Wait(t Try, now time.Time) time.Duration { return o.m.wait(t, now) }

// Remember notes that a key is over until then.
func (o *OverMemory) Remember(t Try, until time.Time) { o.m.remember(t, until) }
