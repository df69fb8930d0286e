package strictjson

import (
	"encoding/json"
	"strconv"
)

// Text reads a string.
func Text(to *string) Member {
	return func(r *Reader) (err error) {
		*to, err = scalar[string](r, "must be text")
		return err
	}
}

// Flag reads true or false.
func Flag(to *bool) Member {
	return func(r *Reader) (err error) {
		*to, err = scalar[bool](r, "must be true or false")
		return err
	}
}

// Integer reads a number that is written without a fraction or an exponent.
func Integer(to *int64) Member {
	return func(r *Reader) error {
		const must = "must be a whole number"
		number, err := scalar[json.Number](r, must)
		if err != nil {
			return err
		}
		if *to, err = strconv.ParseInt(number.String(), 10, 64); err != nil {
			return predicate(must)
		}
		return nil
	}
}

// scalar reads a value of that kind.
func scalar[T any](r *Reader, must string) (T, error) {
	tok, err := r.next()
	value, ok := tok.(T)
	if err == nil && !ok {
		err = orNull(tok, predicate(must))
	}
	return value, err
}
