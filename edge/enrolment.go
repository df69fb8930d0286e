package edge

import (
	"context"
	"github.com/stockgate/stockgate/rates"
	"github.com/stockgate/stockgate/shard"
	"strings"
)

// Enrolment is who signs, as Redis has it.
type Enrolment struct {
	// Signing is the key with which the edges sign; empty: nobody has enrolled.
	Signing string
	// First is the key with which this edge signs; Known: it has Signing too.
	First string
	Known bool
	// Public is how many public keys are published.
	Public int
}

// Enrolment compares the edge's keys with those that are registered.
func (e *Edge) Enrolment(ctx context.Context) (Enrolment, error) {
	all, err := e.shard.Redis.HGetAll(ctx, e.shard.SecretKey()).Result()
	if err != nil {
		return Enrolment{}, shard.Explain(err)
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

// Rates counts shared rates.
func (e *Edge) Rates() *rates.Rates { return e.rates }
