package filters

import (
	"math"
	"strconv"
	"strings"
)

// exactDigits is the number of digits from which a double may not hold a number exactly.
const exactDigits = 16

// Items are the SKUs that must not pass without a reservation, and everything that a
// shop could take for one of them. An Items never changes, so it is safe for concurrent
// use.
type Items struct {
	forms   map[string]struct{}
	numeric bool // one of them is a number
	// clip is the least of clips that is one of them, 0: none is.
	clip uint64
	// inexact has the numbers that a double cannot tell from their neighbours.
	inexact map[float64]struct{}
}

// NewItems makes Items of these SKUs.
func NewItems(skus func(yield func(string) bool)) *Items {
	i := &Items{forms: make(map[string]struct{}), inexact: make(map[float64]struct{})}
	for sku := range skus {
		form := skuForm(sku)
		i.forms[form] = struct{}{}
		if digits(form) == len(form) {
			i.addNumber(form)
		} else {
			i.addOdd(form)
		}
	}
	for _, clip := range clips {
		if i.is(strconv.FormatUint(clip, 10)) {
			i.clip = clip
			break
		}
	}
	return i
}

// addNumber adds a number in plain decimal form.
func (i *Items) addNumber(plain string) {
	i.forms[plain] = struct{}{}
	i.numeric = true
	if len(plain) >= exactDigits {
		f, _ := strconv.ParseFloat(plain, 64)
		i.inexact[f] = struct{}{}
	}
}

// addOdd adds the numbers that a SKU such as 20E5, 0x1F or 7.0 is, without their sign; its
// fraction is cut or rounded.
func (i *Items) addOdd(form string) {
	unsigned := strings.TrimLeft(form, "+-")
	if n, err := strconv.ParseUint(unsigned, 0, 64); err == nil {
		i.addNumber(strconv.FormatUint(n, 10))
	}
	f, err := strconv.ParseFloat(unsigned, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return
	}
	for _, whole := range []float64{math.Floor(f), math.Ceil(f)} {
		i.addNumber(strconv.FormatFloat(whole, 'f', 0, 64))
	}
}

// Listed reports whether a SKU is one of the items, or one that a shop could take for
// one of them: databases compare without regard to case, and languages that read
// numbers leniently see 20002001 in 020002001, +20002001, 20002001x and 2.0002001e7abc.
// Doubtful SKUs are listed: they may not pass.
func (i *Items) Listed(sku string) bool {
	form := skuForm(sku)
	if _, listed := i.forms[form]; listed {
		return true
	}
	if !i.numeric || form == "" {
		return false
	}
	if n := digits(sku); n == len(sku) && n == len(form) && n < exactDigits {
		return i.wraps(form) // a plain number, and another one
	}
	return i.readsAs(strings.ToLower(sku))
}

// skuForm is the same for SKUs that differ only in case or leading zeros.
func skuForm(sku string) string { return trimZeros(strings.ToLower(sku)) }

// trimZeros removes leading zeros before a digit.
func trimZeros(s string) string {
	for len(s) > 1 && s[0] == '0' && '0' <= s[1] && s[1] <= '9' {
		s = s[1:]
	}
	return s
}

// digits is how many digits s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
