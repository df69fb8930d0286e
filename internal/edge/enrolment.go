package edge

import (
	"context"
	"strings"
)

// Enrolment is what Redis has of the edges' signing keys.
type Enrolment struct {
	// Signing is the id of the key with which the edges sign; empty: no edge has enrolled.
	Signing string
	// First is the id of the key with which this edge signs. Known reports whether this edge
	// has the key Signing too.
	First string
	Known bool
	// Public is the number of published public keys.
	Public int
}

// Enrolment compares the edge's keys with those registered in Redis.
func (e *Edge) Enrolment(ctx context.Context) (Enrolment, error) {
	all, err := e.shard.Keyring(ctx)
	if err != nil {
		return Enrolment{}, err
	}
	n := Enrolment{Signing: all["signing"], First: e.keys[0].KID}
	for _, k := range e.keys {
		n.Known = n.Known || k.KID == n.Signing
	}
	for field := range all {
		if strings.HasPrefix(field, "public:") {
			n.Public++
		}
	}
	return n, nil
}
