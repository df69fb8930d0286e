package chaos

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Step is one fault of a schedule.
type Step struct {
	Fault  string        `json:"fault"`
	Lane   int           `json:"lane"`   // the faults of a lane come one after the other
	At     time.Duration `json:"at"`     // after the beginning; later, if the lane is not done with the one before
	For    time.Duration `json:"for"`    // how long it lasts
	Target int           `json:"target"` // which of the things that it can hit, modulo their number
	Amount int           `json:"amount"` // from 0 to 99: how much of it
}

func (s Step) String() string {
	return fmt.Sprintf("at %v %s (target %d, amount %d) for %v", s.At, s.Fault, s.Target, s.Amount, s.For)
}

// Schedule is what the nemesis does, in the order of its beginnings.
type Schedule []Step

func (s Schedule) String() string {
	lines := make([]string, len(s))
	for i, step := range s {
		lines[i] = fmt.Sprintf("  %2d  %v", i+1, step)
	}
	return strings.Join(lines, "\n")
}

// Draw makes the schedule of a seed: so many faults, in two lanes, those of Redis and those
// around it, so that faults of both kinds overlap.
func Draw(seed uint64, c *Config, steps int) Schedule {
	sum := fnv.New64a()
	sum.Write([]byte(c.Name))
	dice := rand.New(rand.NewPCG(seed, sum.Sum64()))
	var s Schedule
	var free [2]time.Duration
	for range steps {
		lane := dice.IntN(2)
		if free[lane] > free[1-lane]+3*time.Second { // neither lane runs ahead
			lane = 1 - lane
		}
		faults := [2][]string{c.faults, around(c)}[lane]
		step := Step{
			Fault: faults[dice.IntN(len(faults))], Lane: lane, At: free[lane] + time.Duration(500+dice.IntN(2000))*time.Millisecond,
			For: time.Duration(150+dice.IntN(2350)) * time.Millisecond, Target: dice.IntN(60), Amount: dice.IntN(100),
		}
		free[lane] = step.At + step.For
		s = append(s, step)
	}
	slices.SortStableFunc(s, func(a, b Step) int { return int(a.At - b.At) })
	return s
}
