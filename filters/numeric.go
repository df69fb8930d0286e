package filters

import (
	"cmp"
	"errors"
	"math"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
)

// Shops read a SKU as a number in many ways. PHP's intval, JavaScript's parseInt,
// parseFloat and Number, C's strtol and strtod, and the casts of MySQL and SQLite all take
// the longest prefix that is a number to them, and differ in what counts as one: decimal
// digits, a fraction with an exponent, 0x, 0o and 0b, # for hexadecimal, a leading zero for
// octal, separators between digits. Fractions are cut or rounded, and large numbers wrap or
// are clipped at 32 or 64 bits.

// clips are what numbers that are too large become where they do not wrap.
var clips = [...]uint64{math.MaxInt32, math.MaxUint32, math.MaxInt64, math.MaxUint64}

// readsAs reports whether some language reads a text as the number of a listed item.
func (i *Items) readsAs(form string) bool {
	if plain := ungroup(form); plain != form && i.readsAs(plain) {
		return true
	}
	if single, _, double := strings.Cut(form, "__"); double && i.readsAs(single) {
		return true // Ruby's to_i ends at the second underscore
	}
	unsigned := strings.TrimLeft(form, "+-")
	if decimal := unsigned[:digits(unsigned)]; i.is(trimZeros(decimal)) || i.isInteger(decimal, 10) {
		return true
	}
	for _, base := range []struct {
		prefix string
		base   uint64
	}{{"0x", 16}, {"0o", 8}, {"0b", 2}, {"0", 8}, {"#", 16}} {
		if rest, ok := strings.CutPrefix(unsigned, base.prefix); ok && i.isInteger(rest, base.base) {
			return true
		}
	}
	if f, ok := floatPrefix(unsigned); ok && i.isFloat(f) {
		return true
	}
	if f, ok := hexFloatPrefix(unsigned); ok && i.isFloat(f) {
		return true
	}
	// A whole text that is a number in an odd form is doubtful, whichever number it is.
	if digits(form) == len(form) {
		return false
	}
	if _, err := strconv.ParseFloat(form, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return true
	}
	_, err := strconv.ParseInt(form, 0, 64)
	return err == nil
}

// is reports whether a number in plain decimal form is an item.
func (i *Items) is(plain string) bool {
	_, listed := i.forms[plain]
	return listed && plain != ""
}

// isDecimal is is for a number.
func (i *Items) isDecimal(number uint64) bool {
	var room [20]byte
	_, listed := i.forms[string(strconv.AppendUint(room[:0], number, 10))]
	return listed
}

// isInteger reports whether the longest prefix of digits in a base is an item's number.
func (i *Items) isInteger(text string, base uint64) bool {
	n, number, large := 0, uint64(0), false
	for ; n < len(text); n++ {
		digit := digitOf(text[n])
		if digit >= base {
			break
		}
		high, low := bits.Mul64(number, base)
		sum, carry := bits.Add64(low, digit, 0)
		number, large = sum, large || high+carry > 0
	}
	return n > 0 && (i.isNumber(number) || large && i.clip > 0)
}

// digitOf is the value of a digit or a small letter, 99 of all else.
func digitOf(c byte) uint64 {
	switch {
	case '0' <= c && c <= '9':
		return uint64(c - '0')
	case 'a' <= c && c <= 'z':
		return uint64(c-'a') + 10
	}
	return 99
}

// wraps reports whether digits are an item's number at 32 bits.
func (i *Items) wraps(text string) bool {
	number, err := strconv.ParseUint(text, 10, 64)
	return err == nil && (number > math.MaxUint32 && i.isNumber(number) || i.clip > 0 && number > i.clip)
}

// isNumber reports whether a number, or what 64 bits hold of it, is an item's, also when it wraps
// or is clipped at 32 bits. Behind a minus, which is left out here, it wraps the other way.
func (i *Items) isNumber(number uint64) bool {
	if _, same := i.inexact[float64(number)]; same || i.isDecimal(number) || i.clip > 0 && number > i.clip {
		return true
	}
	low := uint32(number)
	return number > math.MaxInt32 && (i.isDecimal(uint64(low)) || i.isDecimal(uint64(-low)))
}

// isFloat reports whether a number is an item's when its fraction is cut or rounded, when it
// wraps at 32 bits or is clipped, or because a double holds both of them alike.
func (i *Items) isFloat(f float64) bool {
	if _, same := i.inexact[f]; same || i.clip > 0 && f > float64(i.clip) {
		return true
	}
	for _, whole := range []float64{math.Floor(f), math.Ceil(f)} {
		if whole >= math.MaxInt64 { // ~~ in JavaScript wraps these too
			whole = math.Mod(whole, 1<<32) + 1<<32
		}
		if i.isNumber(uint64(whole)) {
			return true
		}
	}
	return false
}

// floatPrefix reads the longest prefix that is a decimal fraction with or without an
// exponent.
func floatPrefix(text string) (float64, bool) {
	n := digits(text)
	mantissa := n
	if n < len(text) && text[n] == '.' {
		fraction := digits(text[n+1:])
		mantissa += fraction
		n += 1 + fraction
	}
	if mantissa == 0 {
		return 0, false
	}
	if n < len(text) && text[n] == 'e' {
		sign := 0
		if n+1 < len(text) && (text[n+1] == '+' || text[n+1] == '-') {
			sign = 1
		}
		if exponent := digits(text[n+1+sign:]); exponent > 0 {
			n += 1 + sign + exponent
		}
	}
	f, err := strconv.ParseFloat(text[:n], 64)
	return f, err == nil
}

// hexFloat is a hexadecimal fraction, as C's strtod and Lua's tonumber read it.
var hexFloat = regexp.MustCompile(`^0x([0-9a-f]*)(?:\.([0-9a-f]*))?(p[+-]?[0-9]+)?`)

// hexFloatPrefix reads the longest prefix that is one.
func hexFloatPrefix(text string) (float64, bool) {
	if !strings.HasPrefix(text, "0x") {
		return 0, false
	}
	match := hexFloat.FindStringSubmatch(text)
	if match == nil || match[1]+match[2] == "" {
		return 0, false
	}
	f, err := strconv.ParseFloat("0x"+match[1]+"."+match[2]+cmp.Or(match[3], "p0"), 64)
	return f, err == nil
}

// grouping stands between digits: underscores in Python's Decimal, commas and apostrophes
// in Java's NumberFormat, anywhere and any number of them.
var grouping = strings.NewReplacer("_", "", ",", "", "'", "")

// ungroup removes what stands between digits. Dots do so in some locales; a single one
// begins a fraction.
func ungroup(text string) string {
	if strings.Count(text, ".") > 1 {
		text = strings.ReplaceAll(text, ".", "")
	}
	return grouping.Replace(text)
}
