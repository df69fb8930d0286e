package movein

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/sale"
)

// units reads a number of units as a script's INCR would: plain digits.
func units(text string) (int64, error) {
	digits := strings.TrimPrefix(text, "-")
	switch {
	case digits == "":
		return 0, fmt.Errorf("is %s, and should be a whole number", shown(text))
	case strings.Trim(digits, "0123456789") != "" || len(digits) > 1 && digits[0] == '0':
		return 0, fmt.Errorf("is %s, and should be a whole number in plain digits%s", shown(text), serialised(text))
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n > sale.MaxUnits:
		return 0, fmt.Errorf("is %s, which is more than the %d units that an item may have", shown(text), int64(sale.MaxUnits))
	case n < 0:
		return 0, fmt.Errorf("is %s: the script has counted below 0. If all is sold, set it to 0 once the script has stopped; else find out what was sold twice", shown(text))
	}
	return n, nil
}

// shown quotes a value of the shop's for a message, cut.
func shown(text string) string {
	const most = 60
	if len(text) > most {
		return strconv.QuoteToASCII(text[:most]) + "…"
	}
	return strconv.QuoteToASCII(text)
}

// serialised says which library has written a value that is no plain text.
func serialised(text string) string {
	switch {
	case strings.HasPrefix(text, "\xac\xed\x00\x05"):
		return ": Java has serialised it, so read and write it with StringRedisSerializer"
	case strings.HasPrefix(text, "i:") || strings.HasPrefix(text, "s:"):
		return ": PHP has serialised it, so write it without a serializer"
	}
	return ""
}
