package sale

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// QueryText reads a text of a query's row: text, or a whole number. An error says what the value must be, and is meant
// to stand behind the name of the column.
func QueryText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case nil:
		return "", errors.New("must not be NULL")
	}
	return "", fmt.Errorf("must be text or a whole number, not %s: cast it in the query, as in CAST(… AS text)", quote(fmt.Sprint(v)))
}

// QueryUnits reads a number of units, from 0, of a query's row: a whole number, text of plain digits, the form in which
// databases return sums, or a decimal whose fraction is zero, such as 3.0000. A number that is too large for an int64 is
// math.MaxInt64. An error says what the value must be, and is meant to stand behind the name of the column.
func QueryUnits(v any) (int64, error) {
	var digits string
	switch v := v.(type) {
	case int64:
		digits = strconv.FormatInt(v, 10)
	case string:
		digits = v
	case []byte:
		digits = string(v)
	case nil:
		return 0, errors.New("must not be NULL: give 0, or leave the row out of the query")
	default:
		digits = fmt.Sprintf("%v (%T)", v, v)
	}
	digits = withoutZeros(digits)
	switch {
	case len(digits) > 1 && digits[0] == '-' && onlyDigits(digits[1:]):
		return 0, fmt.Errorf("must not be negative, got %s", quote(digits))
	case !onlyDigits(digits) || (len(digits) > 1 && digits[0] == '0'):
		return 0, fmt.Errorf("must be a whole number, not %s: cast it in the query, as in CAST(… AS bigint)", quote(digits))
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return math.MaxInt64, nil
	}
	return n, nil
}

// withoutZeros is a decimal without the zeros behind its point.
func withoutZeros(digits string) string {
	if whole, rest, ok := strings.Cut(digits, "."); ok && rest != "" && strings.Trim(rest, "0") == "" {
		return whole
	}
	return digits
}
