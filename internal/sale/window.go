package sale

import (
	"strconv"
	"time"
)

// Window returns the limit's current window: from its first instant up to, but not
// including, its last. The windows of one kind follow each other without gap or overlap,
// whatever the zone's clocks do:
//
//   - hour: one hour of the zone's clock, cut where that clock is changed. An hour
//     that a change repeats is two windows; one that a change shortens is short.
//   - day: from the first instant of a date to that of the next. So a day may have
//     23 or 25 hours, and need not begin at midnight where a change skips it. Where
//     a change repeats the end of a date after the next one has begun, it belongs
//     to the next one.
//   - week and month: from the first instant of a Monday's date, or of the date of
//     the first, to that of the next.
//   - sale and order: all time. The id is "-", from and to are zero.
//
// The id is the window's end in ms since 1970, so that windows of one kind have
// different ids, and the id shows when a counter is no longer needed.
func (l Limit) Window(now time.Time, loc *time.Location) (id string, from, to time.Time) {
	switch l.Every {
	case "hour":
		from, to = clockHour(now.In(loc))
	case "day", "week", "month":
		from, to = calendarWindow(now.In(loc), l.Every)
	default:
		return "-", time.Time{}, time.Time{}
	}
	return strconv.FormatInt(to.UnixMilli(), 10), from, to
}

func clockHour(now time.Time) (from, to time.Time) {
	_, offset := now.Zone()
	past := (now.Unix() + int64(offset)) % 3600 // seconds since the clock's last full hour
	if past < 0 {
		past += 3600
	}
	from = time.Unix(now.Unix()-past, 0).In(now.Location())
	to = from.Add(time.Hour)
	for at := from; at.Before(to); {
		other, until := steady(at)
		switch changed := other != offset; {
		case changed && at.After(now):
			return from, at
		case changed:
			from = until // and not after now, when the offset was another
		}
		if until.IsZero() {
			break
		}
		at = until
	}
	return from, to
}

func calendarWindow(now time.Time, every string) (from, to time.Time) {
	first, next := period(every, reading(now))
	from, to = firstInstant(first, now.Location()), firstInstant(next, now.Location())
	for !to.After(now) { // the clock was set back to a date that is over
		_, after := period(every, next)
		from, next = to, after
		to = firstInstant(next, now.Location())
	}
	return from, to
}

// reading is the wall clock of the zone at an instant. Readings are represented as
// times in UTC, where clocks never change.
func reading(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// period returns the first date of the period that a reading is in, and that of
// the next period.
func period(every string, clock time.Time) (first, next time.Time) {
	y, m, d := clock.Date()
	date := func(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }
	switch every {
	case "week":
		d -= int(clock.Weekday()+6) % 7 // back to Monday
		return date(y, m, d), date(y, m, d+7)
	case "month":
		return date(y, m, 1), date(y, m+1, 1)
	}
	return date(y, m, d), date(y, m, d+1)
}

// firstInstant is when the zone's clock shows a reading, or a later one, for the
// first time. time.Date does not promise that.
func firstInstant(clock time.Time, loc *time.Location) time.Time {
	at := clock.Add(-26 * time.Hour).In(loc) // no zone is that far from UTC
	for {
		offset, until := steady(at)
		t := clock.Add(-time.Duration(offset) * time.Second).In(loc)
		if t.Before(at) { // the clock was set forward past it
			t = at
		}
		if until.IsZero() || t.Before(until) {
			return t
		}
		at = until
	}
}

// steady returns the zone's offset in seconds at an instant, and a later instant until
// which it stays the same; zero: for ever.
func steady(t time.Time) (offset int, until time.Time) {
	_, offset = t.Zone()
	_, until = t.ZoneBounds()
	if !until.IsZero() && !until.After(t) {
		// Beyond a zone's table years follow a rule, and ZoneBounds ends each of them
		// after 365 days. On a leap year's last day nothing changes before the year
		// does.
		until = time.Date(t.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).In(t.Location())
	}
	return offset, until
}
