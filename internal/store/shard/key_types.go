package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// KeyTypesError says that another client has replaced keys of a sale by keys of other types. No
// script writes anything to such a sale that would affect them.
type KeyTypesError struct {
	Sale string
	// Keys are the keys of another type. Want is the type that each must have: hash, zset or
	// stream.
	Keys, Want []string
}

func (e *KeyTypesError) Error() string {
	named := make([]string, len(e.Keys))
	for i, key := range e.Keys {
		named[i] = fmt.Sprintf("%s is no %s", key, e.Want[i])
	}
	next := fmt.Sprintf("run 'caddy stockgate reconcile %s --repair', which makes them again", e.Sale)
	if slices.ContainsFunc(e.Keys, func(key string) bool { return strings.HasSuffix(key, ":meta") || strings.HasSuffix(key, ":journal") }) {
		next = fmt.Sprintf("restore the sale with 'caddy stockgate rebuild %s --from ledger'", e.Sale)
	}
	return fmt.Sprintf("another client has written to the keys of sale %s: %s. Find that client, delete these keys with 'redis-cli DEL', then %s",
		e.Sale, strings.Join(named, ", "), next)
}

// Is treats the error as a refusal of an operator's request.
func (e *KeyTypesError) Is(target error) bool { return target == ErrRefused }

// CheckKeys returns a KeyTypesError when keys of a sale have other types than they must have.
// It needs no rights beyond those for selling.
func (s *Client) CheckKeys(ctx context.Context, sale string) error {
	keys, wrong := s.ShardKeys(sale), &KeyTypesError{Sale: sale}
	pipe := behind(s.redis).Pipeline()
	asked, want := make([]redis.Cmder, len(keys)), make([]string, len(keys))
	for place, key := range keys {
		switch place {
		case DeadlinesKey, InDoubtKey, UnbackedKey, TombstonesKey, LineKey, AtShopKey:
			asked[place], want[place] = pipe.ZCard(ctx, key), "zset"
		case JournalKey:
			asked[place], want[place] = pipe.XRangeN(ctx, key, "-", "+", 1), "stream"
		default:
			asked[place], want[place] = pipe.HLen(ctx, key), "hash"
		}
	}
	_, _ = pipe.Exec(ctx)
	for place, cmd := range asked {
		switch err := cmd.Err(); {
		case isWrongType(err):
			wrong.Keys, wrong.Want = append(wrong.Keys, keys[place]), append(wrong.Want, want[place])
		case err != nil && !errors.Is(err, redis.Nil):
			return Explain(err)
		}
	}
	if len(wrong.Keys) > 0 {
		return wrong
	}
	return nil
}

// isWrongType says that a key has another type than a command expects. A script checks the
// types before it writes, so it has done nothing. The embedded server puts a text of its own
// before a script's error.
func isWrongType(err error) bool {
	var said redis.Error
	return errors.As(err, &said) && strings.Contains(said.Error(), "WRONGTYPE ")
}
