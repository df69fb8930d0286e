package dashboard

import (
	"slices"
	"time"
)

// maxFailures bounds the failures that the page marks.
const maxFailures = 50

// failure is a time in which this edge did not sell, or another one was not heard.
type failure struct {
	What  string `json:"what"` // not_selling or silent
	Edge  string `json:"edge,omitempty"`
	At    int64  `json:"at"`              // ms
	Until int64  `json:"until,omitempty"` // ms; 0: it lasts
}

// failures are the last failures, the newest last.
type failures struct{ list []failure }

// note takes in what lasts at a moment.
func (f *failures) note(now time.Time, lasting []failure) {
	same := func(a failure) func(failure) bool {
		return func(b failure) bool { return a.What == b.What && a.Edge == b.Edge }
	}
	for i := range f.list {
		if f.list[i].Until == 0 && !slices.ContainsFunc(lasting, same(f.list[i])) {
			f.list[i].Until = now.UnixMilli()
		}
	}
	for _, l := range lasting {
		if !slices.ContainsFunc(f.list, func(b failure) bool { return b.Until == 0 && same(l)(b) }) {
			f.list = append(f.list, l)
		}
	}
	if over := len(f.list) - maxFailures; over > 0 {
		f.list = slices.Delete(f.list, 0, over)
	}
}

// fail notes what fails in a sale now.
func (s *saleReader) fail(now time.Time, ready bool) {
	var lasting []failure
	if !ready {
		lasting = append(lasting, failure{What: "not_selling", At: now.UnixMilli()})
	}
	if c := s.sums.counts; c != nil {
		for i := range c.Edges {
			if e := &c.Edges[i]; e.Silent {
				lasting = append(lasting, failure{What: "silent", Edge: e.Name, At: e.Heard.UnixMilli()})
			}
		}
	}
	s.failures.note(now, lasting)
}
