package reservation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// fill does operations one by one, from noon on.
func (s *server) fill(t *testing.T, sale string, ops []model.Operation) {
	t.Helper()
	s.setTime(noon)
	for _, op := range ops {
		if at, ok := op.(tick); ok {
			s.setTime(int64(at))
		} else if _, replies, err := s.store.Call(stocktest.Soon(t), sale, wire(op)); err != nil || replies[0][0] != "ok" {
			t.Fatalf("%+v: %v, %v", op, replies, err)
		}
	}
}

// While a key that a reserve writes has another type, buyers hear that Redis does not
// answer, and nothing is left to be told later. With the key put back the sale goes on.
func TestReserveOnADamagedShard(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e, c := stocktest.Selling(t, stocktest.Options(b), 10, stocktest.PerBuyer(5)), b.Client()
		file := stocktest.OpenSale("s", 10, stocktest.PerBuyer(5))
		file.Unpaid = &sale.Unpaid{}
		stocktest.Apply(t, e, file)
		stocktest.MustHold(t, e, "before", "Ann", 1)
		for i, key := range e.Store.Shard().ShardKeys("s") {
			if i == 5 || i == 6 || i == 7 || i == 8 || i == 11 || i >= shard.LineKey { // a reserve does not need them, without a queue
				continue
			}
			if err := errors.Join(c.Rename(stocktest.Soon(t), key, key+":kept").Err(), c.RPush(stocktest.Soon(t), key, "x").Err()); err != nil {
				t.Fatal(err)
			}
			id := fmt.Sprint("during", i)
			if _, refusal, err := stocktest.Hold(stocktest.Soon(t), e, id, id, 1); !errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), "stockgate doctor") || refusal != nil {
				t.Errorf("%s is a list: %+v, %v", key, refusal, err)
			}
			if err := e.Store.Shard().CheckKeys(stocktest.Soon(t), "s"); !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), key+" is no ") {
				t.Errorf("%s is a list: %v", key, err)
			}
			if err := errors.Join(c.Del(stocktest.Soon(t), key).Err(), c.Rename(stocktest.Soon(t), key+":kept", key).Err()); err != nil {
				t.Fatal(err)
			}
			if n := e.Backlog(); n != 0 {
				t.Errorf("%s is a list: %d outcomes wait", key, n)
			}
			if got := stocktest.State(t, e.Store, id); got != "" {
				t.Errorf("%s was a list: %s is %s", key, id, got)
			}
			stocktest.MustHold(t, e, fmt.Sprint("after", i), fmt.Sprint("after", i), 1)
		}
		if err := e.Store.Shard().CheckKeys(stocktest.Soon(t), "s"); err != nil {
			t.Error(err)
		}
		stocktest.Balanced(t, c, e.Store, "s")
	})
}

// own makes a stream again, if it is one: in the embedded server copies of a stream share
// what is taken away at their beginning.
func own(t *testing.T, c *redis.Client, key string) {
	t.Helper()
	entries, err := c.XRange(stocktest.Soon(t), key, "-", "+").Result()
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return
	}
	pipe := c.Pipeline()
	pipe.Del(stocktest.Soon(t), key)
	for _, e := range entries {
		pipe.XAdd(stocktest.Soon(t), &redis.XAddArgs{Stream: key, ID: e.ID, Values: e.Values})
	}
	if _, err := pipe.Exec(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
}

// The scripts that stand alone do all or nothing too. That of renew does not care for
// types: it sets aside what is there.
func TestDamagedKeys(t *testing.T) {
	for _, s := range servers(t) {
		t.Run(s.name, func(t *testing.T) {
			c := s.client
			call := func(what *lua.Operation, keys []string, args ...any) func() error {
				return func() error {
					err := c.Eval(stocktest.Soon(t), s.scripts.Of(what).Source, keys, args...).Err()
					if err != nil {
						return fmt.Errorf("%w, see `caddy stockgate doctor`: %w", shard.ErrUnavailable, err)
					}
					return nil
				}
			}
			list := []string{"l:meta", "l:log", "l:forms", "l:1", "l:2"}
			add := []any{"channel", lua.Schema, "secret", "add", "tip1", 100, 10, 4, "any", "k1", 5, "buyer", "k2", 5, "any", "k3"}
			more := []any{"channel", lua.Schema, "secret", "add", "tip2", 100, 10, 4, "any", "k4", 5, "phone", "k5"}
			less := []any{"channel", lua.Schema, "secret", "remove", "tip2", 100, 10, 4, "any", "k1", 5, "buyer", "k2"}
			t.Run("list", func(t *testing.T) {
				if err := call(lua.AddToList, list, add...)(); err != nil {
					t.Fatal(err)
				}
				allOrNothing(t, c, list, call(lua.AddToList, list, more...))
				allOrNothing(t, c, list, call(lua.AddToList, list, less...))
			})
			t.Run("enroll", func(t *testing.T) {
				keys := []string{"secret"}
				if err := call(lua.Enroll, keys, 1, "old", "sealed", "{}")(); err != nil {
					t.Fatal(err)
				}
				allOrNothing(t, c, keys, call(lua.Enroll, keys, 2, "new", "sealed for new", "{}", "old", "sealed", "{}"))
			})
			t.Run("rate", func(t *testing.T) {
				var keys []string
				for _, bucket := range []string{"bucket1", "bucket2", "bucket3"} {
					keys = append(keys, bucket, bucket+".coarse", bucket+".count")
				}
				s.setTime(noon)
				if rate := s.scripts.Of(lua.Rate); s.name == "redis-server" {
					rate.Source = strings.Replace(rate.Source, "call('TIME')", "call('HMGET', 'clock', 'seconds', 'micros')", 1)
				}
				take := call(lua.Rate, keys, 2, 1, 1_000_000, 5, 9, 2, 1_000_000, 5, 9, 1, 3, 1_000_000, 5, 9)
				if err := take(); err != nil {
					t.Fatal(err)
				}
				allOrNothing(t, c, keys, take)
				for _, value := range []string{"x", "", strings.Repeat("9", 400) + " " + strings.Repeat("9", 400)} {
					for _, key := range []string{keys[3], keys[5]} {
						if err := c.Set(stocktest.Soon(t), key, value, 0).Err(); err != nil {
							t.Fatal(err)
						}
					}
					if err := take(); err != nil {
						t.Errorf("a bucket and a count of %.10q: %v", value, err)
					}
				}
			})
			t.Run("trim", func(t *testing.T) {
				keys := s.store.Shard().ShardKeys("trim")
				s.fill(t, "trim", damagedSale())
				trim := call(lua.Trim, keys, lua.Schema, 5, 0, 0, 0)
				allOrNothing(t, c, keys, func() error {
					own(t, c, keys[9])
					return trim()
				})
			})
			t.Run("restore", func(t *testing.T) {
				keys := s.store.Shard().ShardKeys("restore")
				s.fill(t, "restore", damagedSale())
				if err := c.HSet(stocktest.Soon(t), keys[0], "restoring", noon+5).Err(); err != nil {
					t.Fatal(err)
				}
				for _, place := range []int{2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13} {
					allOrNothing(t, c, keys, call(lua.Restore, keys, noon+5, place, "1", "2"))
				}
				allOrNothing(t, c, keys, func() error {
					_, _, err := s.store.Call(stocktest.Soon(t), "restore", reservation.Operation{Name: "rebuilt", Args: []any{noon + 5, noon + 5, "paused", "me"}})
					return err
				})
			})
		})
	}
}
