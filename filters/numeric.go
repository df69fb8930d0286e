package filters

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Shops read a SKU as a number in many ways. PHP's intval, JavaScript's parseInt,
// parseFloat and Number, C's strtol and strtod, and the casts of MySQL and SQLite all take
// the longest prefix that is a number to them, and differ in what counts as one: decimal
// digits, a fraction with an exponent, 0x, 0o and 0b, # for hexadecimal, a leading zero for
// octal, separators between digits. Fractions are cut or rounded, and large numbers wrap at
// 32 bits.

// readsAs says whether some language reads a text as the number of a listed item.
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
		base   int
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
	if _, err := strconv.ParseFloat(form, 64); err == nil {
		return true
	}
	_, err := strconv.ParseInt(form, 0, 64)
	return err == nil
}

// is says whether a number in plain decimal form is an item.
func (i *Items) is(plain string) bool {
	_, listed := i.forms[plain]
	return listed && plain != ""
}

// isInteger says whether the longest prefix of digits in a base is an item's number.
func (i *Items) isInteger(text string, base int) bool {
	n := 0
	for n < len(text) {
		if _, err := strconv.ParseUint(text[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	number, err := strconv.ParseUint(text[:n], base, 64)
	return err == nil && i.isNumber(number)
}

// wraps says whether digits are an item's number at 32 bits.
func (i *Items) wraps(text string) bool {
	number, err := strconv.ParseUint(text, 10, 64)
	return err == nil && number > math.MaxUint32 && i.isNumber(number)
}

// isNumber says whether a number is an item's, also when it wraps at 32 bits. Behind a
// minus, which is left out here, it wraps the other way.
func (i *Items) isNumber(number uint64) bool {
	if _, same := i.inexact[float64(number)]; same || i.is(strconv.FormatUint(number, 10)) {
		return true
	}
	low := uint32(number)
	return number > math.MaxInt32 && (i.is(strconv.FormatUint(uint64(low), 10)) || i.is(strconv.FormatUint(uint64(-low), 10)))
}

// isFloat says whether a number is an item's when its fraction is cut or rounded, when it
// wraps at 32 bits, or because a double holds both of them alike.
func (i *Items) isFloat(f float64) bool {
	if _, same := i.inexact[f]; same {
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
