package sale

import (
	"errors"
	"fmt"
	"regexp"
	"time"
	_ "time/tzdata" // an edge may run where no time zones are installed
)

var (
	// RFC 3339, section 5.6, with the capital letters that its grammar shows.
	withZone    = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$`)
	withoutZone = regexp.MustCompile(`^\d{4}-\d\d-\d\d([Tt ]+\d\d:\d\d(:\d\d(\.\d+)?)?)?$`)
)

// The times that a sale may have: microseconds since 1970 that Lua represents exactly.
var (
	firstTime = time.Unix(0, 0)
	lastTime  = time.Date(2000+MaxTimeYears, 1, 1, 0, 0, 0, 0, time.UTC)
)

// parseTime reads an RFC 3339 time. It never guesses a zone.
func parseTime(s string) (time.Time, error) {
	switch {
	case withoutZone.MatchString(s):
		return time.Time{}, fmt.Errorf("has no zone: add one, as in 2026-11-11T00:00:00+08:00, or Z for UTC, to %s", quote(s))
	case !withZone.MatchString(s):
		return time.Time{}, fmt.Errorf("must be a time such as 2026-11-11T00:00:00+08:00, not %s", quote(s))
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("there is no such time: %s", quote(s))
	}
	return t, nil
}

// checkTime applies to any time, from a file or from a program.
func checkTime(t time.Time) error {
	if _, offset := t.Zone(); offset%60 != 0 || offset <= -24*60*60 || offset >= 24*60*60 {
		return errors.New("its zone must be whole minutes, less than a day, from UTC")
	}
	if t.Before(firstTime) || !t.Before(lastTime) {
		return fmt.Errorf("must be in the years 1970 to %d", lastTime.Year()-1)
	}
	return nil
}

// plainTime keeps instant and offset and nothing else: no zone name, no
// monotonic clock, no pointer to the edge's own zone.
func plainTime(t time.Time) time.Time {
	_, offset := t.Zone()
	if offset == 0 {
		return t.UTC()
	}
	return t.In(time.FixedZone("", offset))
}
