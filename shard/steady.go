package shard

import "time"

const (
	// tolerance is how far a clock of Redis may be ahead of what this process expects before
	// that is a step: for the drift of both, in ms. The scripts have the same.
	Tolerance = 1000
	// believeAfter is for how long a step forward must have lasted before it is believed: one
	// that is taken back sooner has moved nothing.
	believeAfter = 5 * time.Second
)

// steady bounds a clock of Redis from above by the monotonic clock of this process: the
// clock cannot show more now than a reply has told, and the time since the call was sent.
// The strictest of the replies of the last seconds counts, so what is stale does no harm
// and a step back is followed at once; one forward only after believeAfter, and never on
// the word of a single reply.
type steady struct {
	now, before bucket
}

// bucket has the replies of some time.
type bucket struct {
	replies int
	since   time.Time
	least   ceiling // the strictest of them
}

// ceiling says that a clock showed at most ms at a moment.
type ceiling struct {
	ms     int64
	moment time.Time
}

func (b ceiling) at(moment time.Time) int64 { return b.ms + moment.Sub(b.moment).Milliseconds() }

// add takes in what a reply tells of the clock. It returns whether that is surely more
// than the clock could show: it has stepped forward.
func (s *steady) add(sent, arrived time.Time, ms int64) (stepped bool) {
	stepped = s.now.replies > 0 && ms > s.latest(arrived)+Tolerance
	if s.now.replies > 1 && arrived.Sub(s.now.since) >= believeAfter {
		s.before, s.now = s.now, bucket{}
	}
	b := ceiling{ms, sent}
	if s.now.replies == 0 {
		s.now.since, s.now.least = arrived, b
	}
	if b.at(arrived) < s.now.least.at(arrived) {
		s.now.least = b
	}
	s.now.replies++
	return stepped
}

// known says that there were replies enough to tell. One does not do: an edge that has just
// begun would end with its next call what is over only by a step that came before it, and
// which another edge has yet to take off the shard's clock. See docs/clocks.md.
func (s *steady) known() bool { return s.now.replies+s.before.replies > 1 }

// latest is what the clock shows at most at a moment, in ms. There must have been a reply.
func (s *steady) latest(moment time.Time) int64 {
	ms := s.now.least.at(moment)
	if s.before.replies > 0 {
		ms = min(ms, s.before.least.at(moment))
	}
	return ms
}
