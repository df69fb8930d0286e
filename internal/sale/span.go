package sale

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// How long a reservation may be held in total, from its creation to its last extended deadline.
const (
	DefaultMaxHold = time.Hour
	LeastMaxHold   = 3 * time.Second
	MostMaxHold    = 7 * 24 * time.Hour
)

// Span is a length of time, written as 90s, 30m or 1h30m.
type Span time.Duration

// IsZero reports whether it is not set.
func (s Span) IsZero() bool { return s == 0 }

// String is the shortest way to write it.
func (s Span) String() string {
	text := time.Duration(s).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText is String.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseSpan.
func (s *Span) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSpan(string(text))
	return err
}

var spanText = regexp.MustCompile(`^(\d{1,6}h)?(\d{1,6}m)?(\d{1,6}s)?$`)

// ParseSpan reads whole hours, minutes and seconds in this order: 90s, 30m, 1h30m.
// Forms that other programs read differently (1.5h, 1d, 10) are errors.
func ParseSpan(text string) (Span, error) {
	if text == "" || !spanText.MatchString(text) {
		return 0, fmt.Errorf("must be whole hours, minutes or seconds such as 90s, 30m or 1h30m, not %s", quote(text))
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("must be a length of time such as 30m, not %s", quote(text))
	}
	return Span(d), nil
}

// LongestHold is how long a reservation may be held in total.
func (s *Sale) LongestHold() time.Duration {
	if s.MaxHold == 0 {
		return DefaultMaxHold
	}
	return time.Duration(s.MaxHold)
}
