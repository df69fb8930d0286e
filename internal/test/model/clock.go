package model

// Unbounded is later than any time: a caller that expects it knows of no step.
const Unbounded int64 = 99_999_999_999_999

// tolerance is how far a clock may be ahead of what a caller expects.
const tolerance = 1000

// Begin begins a call: where Time is found to have stepped back, the lead grows, whatever
// the call does.
func (s *Shard) Begin() {
	if s.Exists && s.Time+s.Lead < s.Clock {
		s.lead(s.Clock - s.Time)
	}
}

func (s *Shard) lead(n int64) { s.Lead, s.LeadKept = n, true }

// Now is the shard's clock: Time with its lead, but for a step that the caller knows of.
func (s *Shard) Now() int64 {
	now := s.Time + s.Lead
	if s.Latest != 0 && now > s.Latest+tolerance {
		now = s.Latest
	}
	return max(now, s.Clock)
}

// sure is how late it is at least by Time; 0: the caller cannot tell.
func (s *Shard) sure() int64 {
	if s.Latest == 0 {
		return 0
	}
	return min(s.Time, s.LatestTime+tolerance)
}

// tooSoon is for how long yet only the shop's word releases a hold.
func (s *Shard) tooSoon(r *Record) int64 {
	if r.Mode == queued || r.Mode == offer { // the shop does not have it
		return 0
	}
	time := s.Time
	if s.Latest != 0 {
		time = s.sure()
	}
	return max(r.Deadline-s.Now(), r.Exp-time, 0)
}

// margin is how long before the end of a held hold its token expires. Deadline and Changed
// are by the shard's clock, Exp and Created by Time.
func (r *Record) margin() int64 { return (r.Deadline - r.Exp) - (r.Changed - r.Created) }

// putOff gives a held hold a later deadline.
func (s *Shard) putOff(id string, deadline, exp int64, cause string) {
	r := s.Records[id]
	r.Deadline, r.Exp, r.Created = deadline, exp, r.Changed-s.Lead
	s.record(Entry{Kind: "extended", ID: id, Was: Held, Buyer: r.Buyer, Cause: cause, Record: r.Text()})
}

// touch lets the shard's clock go on: every write does.
func (s *Shard) touch() {
	s.Clock = s.Now()
	s.latest = max(s.latest, s.Clock)
}

// ownTime is Time, but for a step that the caller knows of: a token would be good for too long.
func (s *Shard) ownTime() int64 {
	if s.Latest != 0 && s.Time > s.LatestTime+tolerance {
		return s.LatestTime
	}
	return s.Time
}
