package outcome

import (
	"strconv"
	"strings"
)

// matches reports whether a text is one that a pattern describes: a * stands for any characters.
func matches(pattern, text string) bool {
	first, rest, open := strings.Cut(pattern, "*")
	if !open {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	for {
		var middle string
		if middle, rest, open = strings.Cut(rest, "*"); !open {
			return strings.HasSuffix(text, middle)
		}
		_, after, found := strings.Cut(text, middle)
		if !found {
			return false
		}
		text = after
	}
}

// decimal is a number: the digits without zeros around them, times ten to the power of exponent.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// sameNumber reports whether two texts are one number, such as 0.0 and 0. They are compared digit by digit:
// a binary fraction would take long identifiers for each other.
func sameNumber(a, b string) bool {
	one, ok := decimalOf(a)
	other, also := decimalOf(b)
	return ok && also && one == other
}

func decimalOf(text string) (d decimal, ok bool) {
	text, d.negative = strings.CutPrefix(text, "-")
	mantissa, power := text, ""
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		mantissa, power = text[:at], text[at+1:]
	}
	whole, fraction, point := strings.Cut(mantissa, ".")
	if whole == "" || point && fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return d, false
	}
	if mantissa != text {
		exponent, err := strconv.ParseInt(power, 10, 32)
		if err != nil {
			return d, false
		}
		d.exponent = int(exponent)
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(digits, "0")
	if d.digits == "" {
		return decimal{}, true
	}
	d.exponent += len(digits) - len(d.digits) - len(fraction)
	return d, true
}
