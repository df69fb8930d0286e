package rates

import "time"

// OverMemory remembers which keys are over their rate on an edge.
type OverMemory struct{ m overMemory }

// OverKeys is the bound of an OverMemory.
const OverKeys = overKeys

// Wait is how long a key is certainly over; 0: it may pass.
func (o *OverMemory) Wait(t Try, now time.Time) time.Duration { return o.m.wait(t, now) }

// Remember records that a key is over until then.
func (o *OverMemory) Remember(t Try, until time.Time) { o.m.remember(t, until) }
