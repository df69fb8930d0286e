package model

import (
	"maps"
	"slices"
	"strings"
)

// Owed are the counters of unpaid holds that an attempt is in, and what refuses it.
type Owed struct {
	Fields                []string
	AtOnce, Ended, Within int64
}

// unpaid refuses where a counter has too many: the longest time until fewer of those count
// that have ended, or 0.
func (o Reserve) unpaid(s *Shard) Reply {
	wait := int64(-1)
	for _, field := range o.Unpaid.Fields {
		times := s.counting(field, o.Unpaid.Within)
		switch n := int64(len(times)) - o.Unpaid.Ended; {
		case n >= 0:
			wait = max(wait, times[n]+o.Unpaid.Within-s.Now())
		case s.unpaidHolds(field) >= o.Unpaid.AtOnce:
			wait = max(wait, 0)
		}
	}
	if wait < 0 {
		return nil
	}
	return Reply{"unpaid", wait}
}

// counting are the times at which holds ended unpaid or in doubt, as far as they count.
func (s *Shard) counting(field string, within int64) []int64 {
	return slices.DeleteFunc(slices.Clone(s.Ended[field]), func(at int64) bool { return at <= s.Now()-within || at > s.Now()+tolerance })
}

// unpaidHolds is how many unpaid holds a counter has.
func (s *Shard) unpaidHolds(field string) (n int64) {
	for _, r := range s.Records {
		if r.State == Held && slices.Contains(r.Unpaid, field) {
			n++
		}
	}
	return n
}

// countUnpaid follows a reservation into another state.
func (s *Shard) countUnpaid(r *Record, state State) {
	for _, field := range r.Unpaid {
		times := slices.Clone(s.Ended[field])
		switch {
		case r.State == Held && (state == Expired || state == InDoubt):
			at, _ := slices.BinarySearch(times, s.Now()+1)
			times = slices.Insert(times, at, s.Now())
		case r.State == Held:
		case state == Confirmed || state == Unbacked:
			if r.State != Unbacked && r.State != Confirmed { // it was taken back
				if at, _ := slices.BinarySearch(times, r.Changed+1); at > 0 {
					times = slices.Delete(times, at-1, at)
				}
			}
		}
		s.setEnded(field, times)
	}
}

func (s *Shard) setEnded(field string, times []int64) {
	if len(times) == 0 {
		delete(s.Ended, field)
		return
	}
	s.Ended[field] = times
}

// Counters are all counters of unpaid holds: how many there are, then when others ended.
func (s *Shard) Counters() map[string][]int64 {
	out := make(map[string][]int64)
	for _, r := range s.Records {
		for _, field := range r.Unpaid {
			if r.State == Held {
				out[field] = nil
			}
		}
	}
	for field := range s.Ended {
		out[field] = nil
	}
	for field := range out {
		out[field] = append([]int64{s.unpaidHolds(field)}, s.Ended[field]...)
	}
	return out
}

// Lapse drops counters in which nothing counts.
type Lapse struct{ Within int64 }

// Run looks at all of them.
func (o Lapse) Run(s *Shard) Reply {
	dropped := int64(0)
	for field := range maps.Clone(s.Ended) {
		if s.unpaidHolds(field) == 0 && len(s.counting(field, o.Within)) == 0 {
			delete(s.Ended, field)
			dropped++
		}
	}
	if dropped > 0 {
		s.touch()
	}
	return Reply{"ok", "0", dropped}
}

func fields(names []string) string { return strings.Join(names, " ") }
