package sale

import (
	"fmt"
	"time"
)

// Advice returns one sentence for each thing in the sale that is valid and probably not what
// its author wants. now is the time of the sale's Redis.
func (s *Sale) Advice(now time.Time) []string {
	var all []string
	for i, at := range []time.Time{s.StartsAt, s.EndsAt} {
		_, offset := at.Zone()
		there := at.In(s.location())
		if _, right := there.Zone(); offset != 0 && offset != right && s.zone() != "UTC" {
			all = append(all, fmt.Sprintf("%s is written with the offset %s, and %s has %s at that time, when clocks there show %s; if you mean their time, write %s",
				[]string{"starts_at", "ends_at"}[i], at.Format("-07:00"), s.Timezone, there.Format("-07:00"), there.Format("2006-01-02 15:04"), at.Format("2006-01-02T15:04:05")+there.Format("-07:00")))
		}
	}
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
