package filters

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rateWays is how many keys share a set. With more, a set is less often full while the
// table is not, and a new key costs more.
const rateWays = 16

// began is what times are counted from.
var began = time.Now()

// rateSet is where a few keys have their buckets.
type rateSet struct {
	mu   sync.Mutex
	now  int64 // the latest that a caller's clock has shown; all times in ns since began
	keys [rateWays]uint64
	// full is when each bucket will be full: another form of its token count, which can
	// be compared directly.
	full    [rateWays]int64
	buckets [rateWays]rate.Limiter
}

// forward keeps time from going back: callers read their clocks before they wait
// for the lock, and a bucket that is moved back would be filled again for time that
// it has counted already.
func (s *rateSet) forward(now time.Time) time.Time {
	if ns := int64(now.Sub(began)); ns > s.now || s.now == 0 {
		s.now = ns
		return now
	}
	return began.Add(time.Duration(s.now))
}

// place returns the index of a key's bucket. A new key takes over the fullest bucket.
func (s *rateSet) place(t *RateTable, key uint64, now time.Time) int {
	for i := range s.keys {
		if s.keys[i] == key {
			return i
		}
	}
	i := s.fullest()
	b := &s.buckets[i]
	if s.keys[i] == 0 {
		b.SetLimitAt(now, t.limit)
		b.SetBurstAt(now, t.burst)
	}
	b.AllowN(now, -t.burst) // puts tokens in; more than the burst do not count
	s.keys[i], s.full[i] = key, s.now
	return i
}

// fullest is the index of the key that is forgotten next.
func (s *rateSet) fullest() int {
	at := 0
	for i := range s.keys {
		if s.keys[i] == 0 {
			return i
		}
		if s.full[i] < s.full[at] {
			at = i
		}
	}
	return at
}
