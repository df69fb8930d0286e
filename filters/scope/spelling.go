package scope

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/stockgate/stockgate/filters/route"
)

// match reports whether a value is one of a rule's.
type match int

const (
	differs  match = iota // for every server
	doubtful              // for some server it is
	same
)

// kind is the JSON type of a scalar.
type kind int

const (
	isText kind = iota
	isNumber
	isBool
	isNull
)

// scalar is a value of a request: a text, a number as it is written, a name, true, false or null.
type scalar struct {
	text string
	kind kind
}

// matches compares a value with those of a rule. Servers read a value as another type, by
// PHP's ==, by a parser of numbers or by a database, so only these surely differ:
//
//   - a text of printable characters with other letters, whatever their case, width and marks
//     and the space around them
//   - a number that is another one in all numberReadings
//   - false, null, and true beside a text that is false in all languages
//
// A whole number is doubtful where all values are words: Jackson, .NET and Protocol Buffers
// take the number of an enumeration's constant for its name.
func matches(values []string, s scalar) match {
	if s.kind != isNull && slices.Contains(values, s.text) {
		return same
	}
	plain := canonical(s.text)
	numbered := s.kind != isBool && isInteger(plain) && !slices.ContainsFunc(values, func(v string) bool {
		return !isWord(v) || isTrue(v) || isFalse(v)
	})
	if numbered || slices.ContainsFunc(values, func(v string) bool { return s.mayBe(plain, canonical(v)) }) {
		return doubtful
	}
	return differs
}

// mayBe reports whether some server takes a value for that of a rule; both are in canonical form.
func (s scalar) mayBe(text, value string) bool {
	switch {
	case s.kind == isNull:
		return value == "" || value == "null" || isFalse(value)
	case s.kind == isBool && text == "true":
		return value != "" && value != "0" && value != "false"
	case s.kind == isBool:
		return value == "" || isFalse(value)
	case strings.ContainsFunc(s.text, unprintable) || text == value:
		return true
	case value == "true": // every text and number is true in some language
		return true
	case value == "false": // in Java every text is false but true
		return !(text == "true" || isInteger(text) && !readAlike(text, "0"))
	case value == "1" && isTrue(text) || value == "0" && isFalse(text):
		return true
	case isDecimal(text) || isDecimal(value):
		return strings.ContainsFunc(text, foreignDigit) || readAlike(text, value)
	}
	return false
}

// isTrue and isFalse say how a text reads where it is a Boolean.
func isTrue(text string) bool {
	return slices.Contains([]string{"1", "t", "true", "y", "yes", "on"}, text)
}

func isFalse(text string) bool {
	return slices.Contains([]string{"0", "f", "false", "n", "no", "off"}, text) || isDecimal(text) && readAlike(text, "0")
}

// unprintable says that servers differ in what they make of a character: it may end a text, be
// dropped, or stand for a byte that is no text.
func unprintable(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }

var folder = cases.Fold() // without state: goroutines may share it

// canonical is the same for texts that a server may take for one another: case, width, marks
// and invisible characters make no difference, and space around a text does not.
func canonical(text string) string {
	visible := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Cf) {
			return -1
		}
		return r
	}, norm.NFKD.String(text))
	return strings.TrimSpace(route.Fold(folder.String(visible)))
}

// foreignDigit says that a character is a digit of another script, which some parsers read.
func foreignDigit(r rune) bool { return r > unicode.MaxASCII && unicode.IsDigit(r) }

// decimalLen is how long the decimal number is that a text begins with, and whether it has a
// digit.
func decimalLen(text string) (n int, ok bool) {
	digits := func() (found bool) {
		for ; n < len(text) && '0' <= text[n] && text[n] <= '9'; n++ {
			found = true
		}
		return found
	}
	if n < len(text) && (text[n] == '+' || text[n] == '-') {
		n++
	}
	ok = digits()
	if n < len(text) && text[n] == '.' {
		n++
		ok = digits() || ok
	}
	if !ok {
		return 0, false
	}
	if mantissa := n; n < len(text) && text[n] == 'e' {
		n++
		if n < len(text) && (text[n] == '+' || text[n] == '-') {
			n++
		}
		if !digits() {
			n = mantissa
		}
	}
	return n, true
}

// isDecimal reports whether all of a text is a decimal number.
func isDecimal(text string) bool {
	n, ok := decimalLen(text)
	return ok && n == len(text)
}

// isInteger reports whether a text is a sign, or none, and digits.
func isInteger(text string) bool {
	return isDecimal(text) && !strings.ContainsAny(text, ".e")
}

// numberReadings are the ways in which servers read a number in a text; where two texts read
// alike in one of them, some server takes them for one number.
var numberReadings = []func(text string) (float64, bool){
	func(text string) (float64, bool) { return prefix(text), true },
	func(text string) (float64, bool) { return math.Trunc(prefix(text)), true },
	func(text string) (float64, bool) { return math.Floor(prefix(text)), true },
	func(text string) (float64, bool) { return math.Ceil(prefix(text)), true },
	func(text string) (float64, bool) { return math.Round(prefix(text)), true },
	// without the exponent, as parseInt does
	func(text string) (float64, bool) {
		mantissa, _, _ := strings.Cut(text, "e")
		return math.Trunc(prefix(mantissa)), true
	},
	// at 32 bits
	func(text string) (float64, bool) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			n = int64(prefix(text))
		}
		return float64(int32(n)), true
	},
	based,
}

// based reads the integer that a text begins with, in the base that its prefix says: octal behind
// a zero.
func based(text string) (float64, bool) {
	unsigned := strings.TrimLeft(text, "+-")
	base, digits := 10, unsigned
	for _, p := range []struct {
		prefix string
		base   int
	}{{"0x", 16}, {"0o", 8}, {"0b", 2}, {"#", 16}, {"0", 8}} {
		if rest, ok := strings.CutPrefix(unsigned, p.prefix); ok && rest != "" {
			base, digits = p.base, rest
			break
		}
	}
	n := 0
	for n < len(digits) {
		if _, err := strconv.ParseUint(digits[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	number, err := strconv.ParseUint(digits[:n], base, 64)
	if strings.HasPrefix(text, "-") {
		return -float64(number), err == nil
	}
	return float64(number), err == nil
}

// readAlike reports whether some server reads one number in two texts, of which one is a number.
func readAlike(one, other string) bool {
	one, other = ungroup(one), ungroup(other)
	for _, text := range []string{one, other} { // what needs more than 64 bits may wrap to anything
		if f := prefix(text); math.Abs(f) >= math.MaxInt64 {
			return true
		}
	}
	return slices.ContainsFunc(numberReadings, func(read func(string) (float64, bool)) bool {
		a, isNumber := read(one)
		b, isAnother := read(other)
		return isNumber && isAnother && a == b
	})
}

// ungroup removes what some servers allow between digits.
func ungroup(text string) string { return strings.NewReplacer("_", "", ",", "", "'", "").Replace(text) }

// prefix is the decimal number that a text begins with, 0 where there is none: PHP's (float).
func prefix(text string) float64 {
	n, _ := decimalLen(text)
	f, _ := strconv.ParseFloat(text[:n], 64) // out of range: infinite
	return f
}
