package stampede

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Spike lets all buyers arrive at once.
func Spike(buyers int) []time.Duration { return make([]time.Duration, buyers) }

// Ramp lets buyers arrive at a rate that grows evenly from 0.
func Ramp(buyers int, over time.Duration) []time.Duration {
	all := make([]time.Duration, buyers)
	for i := range all {
		all[i] = time.Duration(float64(over) * math.Sqrt((float64(i)+0.5)/float64(buyers)))
	}
	return all
}

// Poisson lets buyers arrive independently of each other: a Poisson process of which is known
// how many arrive in that time.
func Poisson(buyers int, over time.Duration, seed uint64) []time.Duration {
	dice := rand.New(rand.NewPCG(seed, 0x61727269766573))
	all := make([]time.Duration, buyers)
	for i := range all {
		all[i] = time.Duration(dice.Float64() * float64(over))
	}
	slices.Sort(all)
	return all
}

const (
	// mostLogLine bounds a line of an access log, in bytes.
	mostLogLine = 1 << 20
	// mostLogged bounds the requests of an access log.
	mostLogged = 10_000_000
)

// Replay reads the arrivals of Caddy's access log in JSON: each line has the time at which the
// request was answered, ts, and how long that took, duration. The first request arrives at 0.
func Replay(log io.Reader) ([]time.Duration, error) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, mostLogLine)
	var at []float64 // seconds
	for line := 1; lines.Scan(); line++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var entry struct {
			TS       json.RawMessage `json:"ts"`
			Duration json.RawMessage `json:"duration"`
		}
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			return nil, fmt.Errorf("line %d is not JSON: %w", line, err)
		}
		ts, ok := seconds(entry.TS)
		if !ok {
			return nil, fmt.Errorf("line %d has no time ts that is known: seconds, or as in 2006-01-02T15:04:05Z; an access log of Caddy has one by default", line)
		}
		if took, ok := seconds(entry.Duration); ok {
			ts -= took
		}
		if at = append(at, ts); len(at) > mostLogged {
			return nil, fmt.Errorf("it has more than %d requests: take a part of it", mostLogged)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(at) == 0 {
		return nil, fmt.Errorf("it has no requests")
	}
	slices.Sort(at)
	all := make([]time.Duration, len(at))
	for i := range at {
		all[i] = time.Duration((at[i] - at[0]) * float64(time.Second))
	}
	return all, nil
}

// seconds reads a time or a duration of a log, whose encoder may write it in several forms.
func seconds(raw json.RawMessage) (float64, bool) {
	var number float64
	if json.Unmarshal(raw, &number) == nil && number >= 0 {
		switch {
		case number > 1e17: // unix_nano
			return number / 1e9, true
		case number > 1e11: // unix_milli_float
			return number / 1e3, true
		}
		return number, true
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return 0, false
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d.Seconds(), true
	}
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.000Z0700", "2006/01/02 15:04:05.000", "2006/01/02 15:04:05"} {
		if t, err := time.Parse(form, text); err == nil {
			return float64(t.UnixMicro()) / 1e6, true
		}
	}
	return 0, false
}

// Stretch scales arrivals, so that the last is due after that time.
func Stretch(arrivals []time.Duration, over time.Duration) {
	if len(arrivals) == 0 || arrivals[len(arrivals)-1] <= 0 {
		return
	}
	factor := float64(over) / float64(arrivals[len(arrivals)-1])
	for i := range arrivals {
		arrivals[i] = time.Duration(float64(arrivals[i]) * factor)
	}
}
