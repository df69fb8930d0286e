package sale

import (
	"sync/atomic"
	"time"
)

// EndOfTime is the end, in ms since 1970, of a window that does not end. Lua represents
// it exactly and writes it without an exponent.
const EndOfTime int64 = 99_999_999_999_999

// Counter is where a limit counts at a moment. It never changes.
type Counter struct {
	// Prefix is "limit|window|", the start of a counter's name, before the hash of the
	// identity that it belongs to. The window is "-" or its end in ms.
	Prefix string
	// From and To bound the window [From, To) in ms since 1970. To is EndOfTime when
	// the limit has no calendar window.
	From, To int64
}

// limitIndex remembers the counters of a sale's limits, because in a rush nearly
// every attempt is in the window of the one before it. It also remembers which list it
// was made of, so that a copy of the sale with other limits does not use it.
type limitIndex struct {
	first    *Limit
	timezone string
	loc      *time.Location
	ids      []string
	current  []atomic.Pointer[Counter]
}

func newLimitIndex(s *Sale) limitIndex {
	if len(s.Limits) == 0 {
		return limitIndex{}
	}
	x := limitIndex{
		first: &s.Limits[0], timezone: s.Timezone, loc: s.location(),
		ids: make([]string, len(s.Limits)), current: make([]atomic.Pointer[Counter], len(s.Limits)),
	}
	for i := range s.Limits {
		x.ids[i] = s.Limits[i].ID()
	}
	return x
}

// Counter returns where the i-th limit counts at a moment. It allocates nothing
// as long as the moment is in the window of the last one.
func (s *Sale) Counter(i int, now time.Time) *Counter {
	if s.index == nil {
		return s.Limits[i].counter(s.Limits[i].ID(), now, s.location())
	}
	x := &s.index.limits
	if len(s.Limits) != len(x.ids) || &s.Limits[0] != x.first || s.Timezone != x.timezone {
		return s.Limits[i].counter(s.Limits[i].ID(), now, s.location())
	}
	if c := x.current[i].Load(); c != nil && c.holds(now) {
		return c
	}
	c := s.Limits[i].counter(x.ids[i], now, x.loc)
	x.current[i].Store(c)
	return c
}

func (c *Counter) holds(now time.Time) bool {
	ms := now.UnixMilli()
	return c.From <= ms && ms < c.To
}

func (l Limit) counter(id string, now time.Time, loc *time.Location) *Counter {
	window, from, to := l.Window(now, loc)
	c := &Counter{Prefix: id + "|" + window + "|", From: from.UnixMilli(), To: to.UnixMilli()}
	if to.IsZero() {
		c.From, c.To = 0, EndOfTime
	}
	return c
}

// location is the sale's time zone; UTC for an invalid name, which no check has seen.
func (s *Sale) location() *time.Location {
	loc, err := time.LoadLocation(s.zone())
	if err != nil {
		return time.UTC
	}
	return loc
}
