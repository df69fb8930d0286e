package webhook

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// DefaultTolerance is how far a signed time may be from now where nothing else is said: what
// Stripe's and the Standard Webhooks libraries allow.
const DefaultTolerance = 5 * time.Minute

// units are how providers count the time since 1970.
var units = map[string]struct {
	name string
	time func(int64) time.Time
}{
	"":   {"seconds", func(n int64) time.Time { return time.Unix(n, 0) }},
	"s":  {"seconds", func(n int64) time.Time { return time.Unix(n, 0) }},
	"ms": {"milliseconds", time.UnixMilli},
}

func tolerated(tolerance time.Duration) (time.Duration, error) {
	switch {
	case tolerance == 0:
		return DefaultTolerance, nil
	case tolerance < time.Second || tolerance > time.Hour:
		return 0, errors.New("the tolerance must be 1s to 1h")
	}
	return tolerance, nil
}

func checkUnit(unit string) error {
	if _, ok := units[unit]; !ok {
		return fmt.Errorf("there is no unit of time %q: there are s and ms, since 1970", unit)
	}
	return nil
}

// inTime checks a signed time.
func inTime(text, unit string, tolerance time.Duration, now time.Time) error {
	u := units[unit]
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > 1<<50 || text != strconv.FormatInt(n, 10) {
		return unreadable("the signature's timestamp is no time in %s", u.name)
	}
	return near(u.time(n), tolerance, now)
}

func near(at time.Time, tolerance time.Duration, now time.Time) error {
	switch age := now.Sub(at).Round(time.Second); {
	case age > tolerance:
		return refused("the signature's timestamp is %v old, and %v are allowed: the request was delayed or is a replay, or this server's clock is ahead", age, tolerance)
	case age < -tolerance:
		return refused("the signature's timestamp is %v ahead, and %v are allowed: this server's clock may be late", -age, tolerance)
	}
	return nil
}
