package drive

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/bench/peer"
)

// plainScript is the least that does not oversell.
const plainScript = `local left = tonumber(redis.call('GET', KEYS[1]))
if left < tonumber(ARGV[1]) then return -1 end
return redis.call('DECRBY', KEYS[1], ARGV[1])`

// units are more than a run sells.
const units = 1_000_000_000

// plain reserves by one call of a script each, on as many connections as there are
// attempts at once.
func plain(ctx context.Context, p Plan) (reserveFunc, func() error, error) {
	client := redis.NewClient(&redis.Options{Addr: p.Redis, Protocol: 2, PoolSize: p.AtOnce})
	text, keys := plainScript, []string{"stock"}
	args := func(int64) []any { return []any{1} }
	if p.Way == Limited {
		text, keys = peer.ReserveScript, []string{"stock", "bought"}
		args = func(n int64) []any { return []any{"a", 1, buyer(n), 2} }
	}
	sha, err := client.ScriptLoad(ctx, text).Result()
	if err == nil && p.Way == Limited {
		err = client.HSet(ctx, "stock", "a", units).Err()
	} else if err == nil {
		err = client.Set(ctx, "stock", units, 0).Err()
	}
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, _ int, n int64) error {
		left, err := client.EvalSha(ctx, sha, keys, args(n)...).Int64()
		if err == nil && left < 0 {
			err = fmt.Errorf("the script refused: %d", left)
		}
		return err
	}, client.Close, nil
}

func buyer(n int64) string { return fmt.Sprintf("buyer-%012d", n) }
