package counts

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Counters are counters by name. They only grow while a process runs.
type Counters map[string]int64

// The times that are counted, each in buckets.
const (
	Reserve = "r" // of reserve requests
	Won     = "w" // until buyers heard that they got the goods
	Lost    = "l" // until buyers heard that they did not
)

const attempts, shadows = "a|", "s|"

// Attempts is the name of attempts with an outcome and, for refusals, a reason.
func Attempts(outcome, reason string) string { return attempts + outcome + "|" + reason }

// Shadows is the name of attempts in shadow.
func Shadows(outcome, reason string) string { return shadows + outcome + "|" + reason }

// Times is the name of times up to a bound in seconds, and over the one below it. It names the bound, so
// that versions with other bounds count together.
func Times(kind string, bound float64) string {
	if math.IsInf(bound, 1) {
		return kind + "|inf"
	}
	return kind + "|" + strconv.FormatInt(time.Duration(bound*float64(time.Second)).Microseconds(), 10)
}

// add adds other counters.
func (n Counters) add(other Counters) {
	for name, v := range other {
		n[name] += v
	}
}

// minus returns the counters that are larger than earlier ones, by how much.
func (n Counters) minus(earlier Counters) Counters {
	rest := make(Counters, len(n))
	for name, v := range n {
		if v -= earlier[name]; v > 0 {
			rest[name] = v
		}
	}
	return rest
}

// text is the form in which Redis has them.
func (n Counters) text() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if n[name] == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(name + " " + strconv.FormatInt(n[name], 10))
	}
	return b.String()
}

// parse reads that form. Whatever else stands there counts nothing.
func parse(text string) Counters {
	n := make(Counters)
	words := strings.Fields(text)
	for i := 0; i+1 < len(words); i += 2 {
		if v, err := strconv.ParseInt(words[i+1], 10, 64); err == nil && v > 0 {
			n[words[i]] = v
		}
	}
	return n
}

// Total is how many attempts they count.
func (n Counters) Total() (sum int64) {
	for name, v := range n {
		if strings.HasPrefix(name, attempts) {
			sum += v
		}
	}
	return sum
}

// EachAttempt calls yield for each outcome and reason of attempts, and EachShadow for those in shadow.
func (n Counters) EachAttempt(yield func(outcome, reason string, count int64)) {
	n.each(attempts, yield)
}
func (n Counters) EachShadow(yield func(outcome, reason string, count int64)) { n.each(shadows, yield) }

func (n Counters) each(kind string, yield func(outcome, reason string, count int64)) {
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if rest, ok := strings.CutPrefix(name, kind); ok {
			outcome, reason, _ := strings.Cut(rest, "|")
			yield(outcome, reason, n[name])
		}
	}
}

// Reserves tells how long reserve requests took.
func (n Counters) Reserves() Histogram { return n.histogram(Reserve) }

// Won tells how long attempts took whose buyers got the goods.
func (n Counters) Won() Histogram { return n.histogram(Won) }

// Lost tells how long attempts took whose buyers did not.
func (n Counters) Lost() Histogram { return n.histogram(Lost) }

// histogram returns the times of a kind.
func (n Counters) histogram(kind string) (h Histogram) {
	byBound := make(map[float64]uint64)
	for name, v := range n {
		rest, ok := strings.CutPrefix(name, kind+"|")
		if !ok {
			continue
		}
		bound := math.Inf(1)
		if us, err := strconv.ParseInt(rest, 10, 64); err == nil {
			bound = time.Duration(us * int64(time.Microsecond)).Seconds()
		}
		byBound[bound] += uint64(v)
	}
	byBound[math.Inf(1)] += 0
	sum := uint64(0)
	for _, bound := range slices.Sorted(maps.Keys(byBound)) {
		sum += byBound[bound]
		h.Bounds, h.Counts = append(h.Bounds, bound), append(h.Counts, sum)
	}
	return h
}
