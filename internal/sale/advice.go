package sale

import (
	"fmt"
	"time"
)

// Advice returns one sentence for each thing in the sale that is valid and probably not what
// its author wants. now is the time of the sale's Redis.
func (s *Sale) Advice(now time.Time) []string {
	var all []string
	for _, at := range []time.Time{s.StartsAt, s.EndsAt} {
		if _, offset := at.Zone(); offset != 0 && s.zone() == "UTC" {
			all = append(all, fmt.Sprintf("the window is written with the offset %s and the sale has no timezone: the days, weeks and months of its limits begin at 00:00 UTC, which is %s there; write `timezone`, such as Asia/Shanghai",
				at.Format("-07:00"), time.Unix(0, 0).In(at.Location()).Format("15:04")))
			break
		}
	}
	if !now.Before(s.EndsAt) {
		all = append(all, fmt.Sprintf("ends_at %s is in the past: the sale sells nothing, open or not", written(s.EndsAt)))
	}
	return all
}
