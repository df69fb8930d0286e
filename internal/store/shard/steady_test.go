package shard_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
)

// Replies bound a clock. Late replies do not loosen the bound. A step back is followed at once,
// a step forward only when it has lasted, and not because of one reply.
func TestSteady(t *testing.T) {
	const s = time.Second
	type told struct {
		sent, arrived time.Duration // on this process's clock
		clock         time.Duration // the time in the reply
		stepped       bool
		latest        time.Duration // at the arrival
	}
	tests := map[string][]told{
		"steady": {{0, 0, 0, false, 0}, {s, s, s, false, s}, {9 * s, 9 * s, 9 * s, false, 9 * s}},
		// Redis, the network or this process stalls before or after the script runs
		"stalls":         {{0, 0, 0, false, 0}, {s, 41 * s, 40 * s, false, 41 * s}, {42 * s, 82 * s, 43 * s, false, 82 * s}, {83 * s, 83 * s, 83 * s, false, 83 * s}},
		"a slow start":   {{0, 9 * s, 8 * s, false, 17 * s}, {10 * s, 10 * s, 10 * s, false, 10 * s}},
		"a drift":        {{0, 0, 0, false, 0}, {s, s, 2 * s, false, s}, {2 * s, 2 * s, 3 * s, false, 2 * s}, {6 * s, 6 * s, 7 * s, false, 6 * s}, {12 * s, 12 * s, 13 * s, false, 12 * s}, {18 * s, 18 * s, 19 * s, false, 19 * s}},
		"back":           {{0, 0, 99 * s, false, 99 * s}, {s, s, 0, false, 0}, {2 * s, 2 * s, s, false, s}},
		"forward, back":  {{0, 0, 0, false, 0}, {s, s, 99 * s, true, s}, {2 * s, 2 * s, 100 * s, true, 2 * s}, {3 * s, 3 * s, 3 * s, false, 3 * s}},
		"forward, stays": {{0, 0, 0, false, 0}, {s, s, 99 * s, true, s}, {5 * s, 5 * s, 103 * s, true, 5 * s}, {6 * s, 6 * s, 104 * s, true, 6 * s}, {10 * s, 10 * s, 108 * s, true, 108 * s}, {11 * s, 11 * s, 109 * s, false, 109 * s}},
		"after silence":  {{0, 0, 0, false, 0}, {s, s, s, false, s}, {60 * s, 60 * s, 99 * s, true, 60 * s}, {61 * s, 61 * s, 100 * s, true, 61 * s}, {66 * s, 66 * s, 105 * s, true, 105 * s}},
	}
	for name, replies := range tests {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			var bound shard.Steady
			for i, r := range replies {
				stepped := bound.Add(began.Add(r.sent), began.Add(r.arrived), r.clock.Milliseconds())
				if stepped != r.stepped {
					t.Errorf("reply %d: stepped is %v", i+1, stepped)
				}
				if latest := time.Duration(bound.Latest(began.Add(r.arrived))) * time.Millisecond; latest != r.latest {
					t.Errorf("reply %d: the clock is at most %v, want %v", i+1, latest, r.latest)
				}
				if bound.Known() != (i > 0) {
					t.Errorf("reply %d: known is %v", i+1, bound.Known())
				}
			}
		})
	}
}
