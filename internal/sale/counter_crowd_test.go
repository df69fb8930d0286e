package sale_test

import (
	"sync"
	"testing"
	"time"
)

// Attempts on both sides of midnight at the same moment each get their own day.
func TestCounterAtMidnight(t *testing.T) {
	s := mustParse(t, limitsOfAllKinds)
	midnight := instant(t, "2026-11-11T00:00:00+08:00")
	var crowd sync.WaitGroup
	for range 8 {
		crowd.Go(func() {
			for n := range 1000 {
				now := midnight.Add(time.Duration(n%3-1) * time.Millisecond)
				for i := range s.Limits {
					if c := s.Counter(i, now); now.UnixMilli() < c.From || now.UnixMilli() >= c.To {
						t.Errorf("%s is counted in %+v", now, c)
						return
					}
				}
			}
		})
	}
	crowd.Wait()
}
