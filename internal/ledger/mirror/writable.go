package mirror

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// maxNumber is the longest text of an int64.
const maxNumber = len("-9223372036854775808")

// errNoNumber: a key has something else than the mirror would write.
var errNoNumber = errors.New("which is no whole number, and is not overwritten: give the mirror another key, or delete this one if nothing needs it")

// writable leaves out the keys that have no number, for the first time that this edge writes them
// under its lease. Redis itself refuses only keys of another type: GETSET would replace a cached
// document with a number, and drop its time to live. Of a hash, the field is named, and is
// overwritten whatever it has.
func (m *mirroring) writable(ctx context.Context, some []redisNumber) (rest []redisNumber, failed error) {
	pipe := m.client.Pipeline()
	reads := make(map[redisNumber]*redis.StringCmd)
	for _, at := range some {
		if _, known := m.wrote[at]; !known && at.field == "" {
			reads[at] = pipe.GetRange(ctx, at.key, 0, int64(maxNumber)) // a byte more than a number has
		}
	}
	if len(reads) == 0 {
		return some, nil
	}
	_, _ = pipe.Exec(ctx) // each command has its error
	for _, at := range some {
		read := reads[at]
		if read == nil {
			rest = append(rest, at)
			continue
		}
		have, err := read.Result()
		if err == nil && have != "" {
			if _, odd := strconv.ParseInt(have, 10, 64); odd != nil {
				err = fmt.Errorf("has %s, %w", cut(have), errNoNumber)
			}
		}
		if err != nil {
			failed = worse(failed, at, err)
			continue
		}
		rest = append(rest, at)
	}
	return rest, failed
}

// worse is the error that is told: that of the first key, unless Redis did not answer for a later one.
func worse(failed error, at redisNumber, err error) error {
	if failed != nil && (!isRefused(failed) || isRefused(err)) {
		return failed
	}
	if errors.Is(err, errNoNumber) {
		return fmt.Errorf("the key %s %w", cut(at.key), err)
	}
	return fmt.Errorf("the key %s: %w", cut(at.key), err)
}

// isRefused reports whether an error is about one key, so that the others can be written.
func isRefused(err error) bool {
	var refused redis.Error
	return errors.As(err, &refused) || errors.Is(err, errNoNumber)
}
