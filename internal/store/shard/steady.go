package shard

import "time"

const (
	// Tolerance is how far, in ms, a clock of Redis may be ahead of what this process expects
	// before that counts as a step. It covers the drift of both clocks. The scripts use the
	// same value.
	Tolerance = 1000
	// believeAfter is how long a step forward must last before it is believed. A step that is
	// undone sooner has no effect.
	believeAfter = 5 * time.Second
)

// steady bounds a clock of Redis from above by the monotonic clock of this process: the clock
// cannot be later than a reply's time plus the time since its call was sent. The strictest of
// the replies of the last seconds counts. So stale replies do no harm, and a step back is
// followed at once. A step forward is followed only after believeAfter, and never because of a
// single reply.
type steady struct {
	now, before bucket
}

// bucket has the replies of a period.
type bucket struct {
	replies int
	since   time.Time
	least   ceiling // the strictest of them
}

// ceiling says that a clock showed at most ms at a given moment.
type ceiling struct {
	ms     int64
	moment time.Time
}

func (b ceiling) at(moment time.Time) int64 { return b.ms + moment.Sub(b.moment).Milliseconds() }

// add takes in a reply's time. It returns whether that time is certainly later than the clock
// could show, so that the clock has stepped forward.
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

// known says that there were at least two replies. Until then the scripts get no bound, and end
// nothing: if Redis's time has stepped forward before this edge started, its first reply has the
// time after the step, and a bound by that reply alone would let its next call end what only the
// step makes look expired. Meanwhile an edge that was there before takes the step off the shard's
// clock. Once true it stays so: add sets aside only a bucket that has two replies. See
// docs/failover.md#clocks.
func (s *steady) known() bool { return s.now.replies+s.before.replies > 1 }

// latest is the latest time, in ms, that the clock can show at a given moment. There must have
// been a reply.
func (s *steady) latest(moment time.Time) int64 {
	ms := s.now.least.at(moment)
	if s.before.replies > 0 {
		ms = min(ms, s.before.least.at(moment))
	}
	return ms
}
