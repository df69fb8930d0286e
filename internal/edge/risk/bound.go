package risk

import (
	"fmt"
	"strconv"
	"time"
)

// Bound is how much of a sale may be at risk before no more of it is sold. The zero value
// bounds nothing.
type Bound struct {
	// Units is the maximum number of units at risk; 0: any.
	Units int64
	// Age is how long the oldest unit at risk may have been so; 0: any.
	Age time.Duration
}

// The least and greatest age that a bound may have. A heartbeat comes every 100 ms.
const leastAge, mostAge = 300 * time.Millisecond, time.Hour

// ParseBound reads "any", a number of units such as "50", or an age such as "1s".
func ParseBound(text string) (Bound, error) {
	if text == "any" {
		return Bound{}, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n < 1 {
			return Bound{}, fmt.Errorf("at_risk %d: nothing would be sold; write at least 1, or `any`", n)
		}
		return Bound{Units: n}, nil
	}
	age, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return Bound{}, fmt.Errorf("at_risk %q is neither any, nor a number of units such as 50, nor an age such as 1s", text)
	case age < leastAge || age > mostAge:
		return Bound{}, fmt.Errorf("at_risk %v is outside %v to %v", age, leastAge, mostAge)
	}
	return Bound{Age: age}, nil
}

// Any reports whether the bound lets any number of units be at risk for any time.
func (b Bound) Any() bool { return b == Bound{} }

// String is the text that ParseBound reads.
func (b Bound) String() string {
	switch {
	case b.Units > 0:
		return strconv.FormatInt(b.Units, 10)
	case b.Age > 0:
		return b.Age.String()
	}
	return "any"
}
