package rehearse

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/internal/store/record"
)

// Requirement is what an operator requires of a rehearsal, and how it came out.
type Requirement struct {
	Text string `json:"require"`
	// Measured is the value, written as in the text.
	Measured string `json:"measured"`
	Met      bool   `json:"met"`

	name, sign string
	limit      float64 // ns, units, orders, or a share of them
	share      bool
}

var requirement = regexp.MustCompile(`^([a-z0-9_]+)(<=|>=|<|>|=)(\S+)$`)

const requirable = "p50, p90, p99, max and late (times, such as p99<300ms), errors (errors<1% or errors=0), sold, held and in_doubt (units, such as sold>=100)"

// readRequirement reads a text such as p99<300ms. crowd: there is one whose times are measured.
func readRequirement(text string, crowd bool) (Requirement, error) {
	r := Requirement{Text: text}
	parts := requirement.FindStringSubmatch(strings.ReplaceAll(text, " ", ""))
	if parts == nil {
		return r, fmt.Errorf("--require %q: write a name, one of < <= > >= =, and a bound; there are %s", text, requirable)
	}
	r.name, r.sign = parts[1], parts[2]
	var err error
	switch r.name {
	case "p50", "p90", "p99", "max", "late":
		var d time.Duration
		d, err = time.ParseDuration(parts[3])
		r.limit = float64(d)
	case "errors":
		var number string
		number, r.share = strings.CutSuffix(parts[3], "%")
		if r.limit, err = strconv.ParseFloat(number, 64); r.share {
			r.limit /= 100
		}
	case "sold", "held", "in_doubt":
		var n int64
		n, err = strconv.ParseInt(parts[3], 10, 64)
		r.limit = float64(n)
	default:
		return r, fmt.Errorf("--require %q: %q is not measured; there are %s", text, r.name, requirable)
	}
	switch {
	case err != nil || !(r.limit >= 0):
		return r, fmt.Errorf("--require %q: %q is no bound of %s; there are %s", text, parts[3], r.name, requirable)
	case !crowd && !strings.Contains("sold held in_doubt", r.name):
		return r, fmt.Errorf("--require %q: with --judge-only no times are measured; there are sold, held and in_doubt", text)
	}
	return r, nil
}

// measure compares the requirement with what came out.
func (r *Requirement) measure(t *stampede.Tally, units record.Cell) {
	var value float64
	switch r.name {
	case "sold":
		value = float64(units.Confirmed)
	case "held":
		value = float64(units.Held)
	case "in_doubt":
		value = float64(units.InDoubt)
	case "errors":
		value = float64(errorsOf(t))
		if r.Measured = strconv.FormatFloat(value, 'f', -1, 64); r.share {
			value /= float64(max(t.Requests, 1))
			r.Measured = strconv.FormatFloat(100*value, 'f', 2, 64) + "%"
		}
	default:
		d := map[string]time.Duration{"p50": t.Latency.P50, "p90": t.Latency.P90, "p99": t.Latency.P99, "max": t.Latency.Max, "late": t.Late.P99}[r.name]
		if value, r.Measured = float64(d), d.Round(time.Microsecond).String(); t.Answered() == 0 || t.Latency.Max == 0 {
			r.Measured = "no answer was measured"
			return
		}
	}
	if r.Measured == "" {
		r.Measured = strconv.FormatInt(int64(value), 10)
	}
	switch r.sign {
	case "<":
		r.Met = value < r.limit
	case "<=":
		r.Met = value <= r.limit
	case ">":
		r.Met = value > r.limit
	case ">=":
		r.Met = value >= r.limit
	case "=":
		r.Met = value == r.limit
	}
}

// errorsOf counts the requests that got no answer, but for those of leavers, and the answers
// of 500 and more, be they the gate's or the shop's.
func errorsOf(t *stampede.Tally) int {
	n := t.TotalFailed() - t.Failed[stampede.Left]
	for status, answers := range t.Statuses {
		if status >= 500 {
			n += answers
		}
	}
	return n
}
