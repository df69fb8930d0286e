package sale

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ActKind is what an act does that is scheduled in a sale.
type ActKind string

// The kinds of acts. ActResume opens a sale that is paused, and no draft.
const (
	ActOpen   ActKind = "open"
	ActPause  ActKind = "pause"
	ActResume ActKind = "resume"
	ActClose  ActKind = "close"
	ActStock  ActKind = "stock"
)

// ParseActKind reads the name of a kind.
func ParseActKind(text string) (ActKind, error) {
	switch kind := ActKind(text); kind {
	case ActOpen, ActPause, ActResume, ActClose, ActStock:
		return kind, nil
	}
	names := []string{"open", "pause", "resume", "close", "stock"}
	if meant := nearest(text, names); meant != "" {
		return "", fmt.Errorf("%s is no act: did you mean %s?", quote(text), meant)
	}
	return "", fmt.Errorf("%s is no act: there are %s", quote(text), strings.Join(names, ", "))
}

var unitChange = regexp.MustCompile(`^([-+=]?)(0|[1-9]\d{0,12})$`)

// ParseUnitChange reads a change of stock: +50 or 50 adds units, -5 takes them away, =40 is what the stock
// becomes. It returns the form with a sign.
func ParseUnitChange(text string) (string, error) {
	m := unitChange.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s is no change of stock, such as +50, -5 or =40", quote(text))
	}
	sign, units := m[1], m[2]
	if sign == "" {
		sign = "+"
	}
	switch n, _ := strconv.ParseInt(units, 10, 64); {
	case n > MaxUnits:
		return "", fmt.Errorf("%s units are beyond the bound of %d", units, int64(MaxUnits))
	case n == 0 && sign != "=":
		return "", fmt.Errorf("%s changes nothing: give a number of units, such as +50, -5 or =40", quote(text))
	}
	return sign + units, nil
}

// localTime is a time without an offset, as clocks in the sale's time zone show it.
var localTime = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?$`)

// ParseTime reads a time as a sale's file has it, or one without an offset, which is in the time zone of the
// sale. A local time that does not exist, or exists twice because clocks are set back, is an error.
func (s *Sale) ParseTime(text string) (time.Time, error) {
	m := localTime.FindStringSubmatch(text)
	if m == nil {
		t, err := parseTime(text)
		if err != nil && withoutZone.MatchString(text) {
			return t, fmt.Errorf("must be a time such as 2026-11-11T08:00 in the time zone of the sale, %s, or one with an offset such as 2026-11-11T08:00:00+08:00, not %s", s.zone(), quote(text))
		}
		return t, err
	}
	seconds := m[3]
	if seconds == "" {
		seconds = ":00"
	}
	const form = "2006-01-02T15:04:05"
	local := m[1] + "T" + m[2] + seconds
	t, err := time.ParseInLocation(form, local, s.location())
	switch {
	case err != nil:
		return t, fmt.Errorf("there is no such time: %s", quote(text))
	case t.Format(form) != local:
		return t, fmt.Errorf("there is no such time in %s, because clocks are set forward: %s", s.zone(), quote(text))
	}
	for _, other := range []time.Time{t.Add(-24 * time.Hour), t.Add(24 * time.Hour)} {
		_, offset := t.Zone()
		_, near := other.Zone()
		if twin := t.Add(time.Duration(offset-near) * time.Second); near != offset && twin.Format(form) == local {
			return t, fmt.Errorf("there is this time twice in %s, because clocks are set back: write %s or %s", s.zone(), t.Format(time.RFC3339), twin.Format(time.RFC3339))
		}
	}
	return t, nil
}
