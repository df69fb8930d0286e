package fence

import (
	"errors"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
)

// An edge says of itself what its server keeps, and no more than that while it cannot know. What it takes
// back it sends nothing without before Redis has heard that, and then for a while.
func TestPledge(t *testing.T) {
	none, disk, replicas, both := shard.Durability{}, shard.Durability{Disk: true}, shard.Durability{Replicas: true}, shard.Durability{Disk: true, Replicas: true}
	began := time.Now()
	type step struct {
		after     time.Duration // since the beginning
		has       shard.Durability
		rewriting bool
		err       error
		take      bool // an order is not kept so, before the heartbeat
		says      shard.Durability
		deaf      bool             // Redis does not hear the heartbeat
		keeps     shard.Durability // an order, afterwards
		rests     time.Duration
	}
	for name, steps := range map[string][]step{
		"what the server keeps": {
			{has: disk, says: disk, keeps: disk},
			{after: 2 * time.Second, has: none, says: disk, keeps: disk}, // it does not look that often
			{after: 6 * time.Second, has: both, says: both, keeps: both},
		},
		"nothing": {{has: none, says: none}},
		"a file that is being written": {
			{has: disk, rewriting: true, says: none},
			{after: 6 * time.Second, has: disk, says: disk, keeps: disk},
			{after: 12 * time.Second, has: disk, rewriting: true, says: disk, keeps: disk},
		},
		"a server that does not answer": {
			{err: errors.New("no answer"), says: none},
			{after: time.Second, has: replicas, says: replicas, keeps: replicas},
			{after: 7 * time.Second, err: errors.New("no answer"), says: replicas, keeps: replicas},
		},
		"taken back when it looks": {
			{has: both, says: both, keeps: both},
			{after: 6 * time.Second, has: disk, says: none, deaf: true, keeps: both},
			{after: 7 * time.Second, has: disk, says: none, rests: unpledgedFor},
			{after: 8 * time.Second, has: disk, says: disk, keeps: disk, rests: unpledgedFor - time.Second},
			{after: 12 * time.Second, has: disk, says: disk, keeps: disk},
		},
		"taken back for an order": {
			{has: disk, says: disk, keeps: disk},
			{after: time.Second, has: disk, take: true, says: none, rests: unpledgedFor},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var p pledge
			for i, s := range steps {
				now := began.Add(s.after)
				if s.take && (!p.take() || p.take()) {
					t.Errorf("step %d: it is not news once", i)
				}
				if got := p.toSay(now, func() (shard.Standing, error) {
					return shard.Standing{Durability: s.has, Rewriting: s.rewriting}, s.err
				}); got != s.says {
					t.Errorf("step %d: it says %+v, want %+v", i, got, s.says)
				}
				if !s.deaf {
					p.heard(now, s.says)
				}
				if keeps, rests := p.state(now); keeps != s.keeps || rests != s.rests {
					t.Errorf("step %d: an order is kept as %+v after %v, want %+v after %v", i, keeps, rests, s.keeps, s.rests)
				}
			}
		})
	}
}
