package reservation_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// damage is something that another client does to one key.
type damage struct {
	name string
	do   func(ctx context.Context, c *redis.Client, key string) error
}

// otherTypes replace a key by one of each type.
var otherTypes = []damage{
	typed("string", func(ctx context.Context, c redis.Pipeliner, key string) { c.Set(ctx, key, "x", 0) }),
	typed("list", func(ctx context.Context, c redis.Pipeliner, key string) { c.RPush(ctx, key, "x") }),
	typed("hash", func(ctx context.Context, c redis.Pipeliner, key string) { c.HSet(ctx, key, "x", "y") }),
	typed("zset", func(ctx context.Context, c redis.Pipeliner, key string) {
		c.ZAdd(ctx, key, redis.Z{Score: 1, Member: "x"})
	}),
}

func typed(name string, write func(ctx context.Context, c redis.Pipeliner, key string)) damage {
	return damage{name, func(ctx context.Context, c *redis.Client, key string) error {
		_, err := c.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Del(ctx, key)
			write(ctx, pipe, key)
			return nil
		})
		return err
	}}
}

var digits = regexp.MustCompile(`[0-9]+`)

// otherValues replace all values of a hash.
var otherValues = []damage{
	values("empty", func(string) string { return "" }),
	values("a word", func(string) string { return "x" }),
	values("no numbers", func(old string) string { return digits.ReplaceAllString(old, "nan") }),
	values("endless numbers", func(old string) string { return digits.ReplaceAllString(old, strings.Repeat("9", 400)) }),
}

func values(name string, other func(old string) string) damage {
	return damage{name, func(ctx context.Context, c *redis.Client, key string) error {
		all, err := c.HGetAll(ctx, key).Result()
		if err != nil || len(all) == 0 {
			return err
		}
		for field, value := range all {
			all[field] = other(value)
		}
		return c.HSet(ctx, key, all).Err()
	}}
}

// contents is what keys hold, each as a text that begins with its type. was is what they held before: with it, those that have the same
// type are read without asking for it, and those that are still none by one count.
func contents(t *testing.T, c *redis.Client, keys []string, was map[string]string) map[string]string {
	t.Helper()
	ctx, pipe := stocktest.Soon(t), c.Pipeline()
	out, held := map[string]string{}, map[string]redis.Cmder{}
	var none []string
	for _, key := range keys {
		out[key], _, _ = strings.Cut(was[key], " ")
		if held[key] = read(ctx, pipe, out[key], key); held[key] == nil {
			none = append(none, key)
		}
	}
	there := pipe.Exists(ctx, none...)
	_, _ = pipe.Exec(ctx) // fails where a key has another type than before
	kinds := map[string]*redis.StatusCmd{}
	for _, key := range keys {
		if cmd := held[key]; cmd == nil && (out[key] == "" || there.Err() != nil || there.Val() > 0) || cmd != nil && (cmd.Err() != nil || isEmpty(cmd)) {
			kinds[key] = pipe.Type(ctx, key)
		}
	}
	if len(kinds) > 0 {
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		for key, kind := range kinds {
			out[key], held[key] = kind.Val(), read(ctx, pipe, kind.Val(), key)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range keys {
		switch cmd := held[key].(type) {
		case *redis.StringCmd:
			out[key] += fmt.Sprintf(" %q", cmd.Val())
		case *redis.StringSliceCmd:
			slices.Sort(cmd.Val()) // of a set; the list has one
			out[key] += fmt.Sprintf(" %q", cmd.Val())
		case *redis.MapStringStringCmd:
			out[key] += fmt.Sprintf(" %q", cmd.Val())
		case *redis.ZSliceCmd:
			out[key] += fmt.Sprintf(" %v", cmd.Val())
		case *redis.XMessageSliceCmd:
			out[key] += fmt.Sprintf(" %v", cmd.Val())
		}
	}
	return out
}

// isEmpty reports whether a command has read nothing: the key may be gone.
func isEmpty(cmd redis.Cmder) bool {
	switch cmd := cmd.(type) {
	case *redis.StringCmd:
		return cmd.Val() == ""
	case *redis.StringSliceCmd:
		return len(cmd.Val()) == 0
	case *redis.MapStringStringCmd:
		return len(cmd.Val()) == 0
	case *redis.ZSliceCmd:
		return len(cmd.Val()) == 0
	case *redis.XMessageSliceCmd:
		return len(cmd.Val()) == 0
	}
	return true
}

// read reads all of a key of a type; nil: there is nothing to read.
func read(ctx context.Context, c redis.Pipeliner, kind, key string) redis.Cmder {
	switch kind {
	case "string":
		return c.Get(ctx, key)
	case "list":
		return c.LRange(ctx, key, 0, -1)
	case "set":
		return c.SMembers(ctx, key)
	case "hash":
		return c.HGetAll(ctx, key)
	case "zset":
		return c.ZRangeWithScores(ctx, key, 0, -1)
	case "stream":
		return c.XRange(ctx, key, "-", "+")
	}
	return nil
}

// restore puts keys back as they were set aside under another name: those that differ from before, and the i-th, which may be of
// the same contents.
func restore(t *testing.T, c *redis.Client, keys, aside []string, i int, before, now map[string]string) {
	t.Helper()
	var those, from []string
	for j, key := range keys {
		if j == i || before[key] != now[key] {
			those, from = append(those, key), append(from, aside[j])
		}
	}
	copyKeys(t, c, those, from)
}

// copyKeys makes keys what others are.
func copyKeys(t *testing.T, c *redis.Client, keys, from []string) {
	t.Helper()
	ctx, pipe := stocktest.Soon(t), c.Pipeline()
	for i, key := range keys {
		pipe.Del(ctx, key)
		pipe.Copy(ctx, from[i], key, 0, false)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
}

func differing(a, b map[string]string) (keys []string) {
	for key := range a {
		if a[key] != b[key] {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// allOrNothing does all damage to each of some keys in turn, and calls a script that
// writes to some of them. It fails as a whole, and names the key, or does not need the
// key; with the key as it was it does what it does without damage.
func allOrNothing(t *testing.T, c *redis.Client, keys []string, call func() error) {
	t.Helper()
	aside := make([]string, len(keys))
	for i, key := range keys {
		aside[i] = key + ":before"
	}
	copyKeys(t, c, aside, keys)
	before := contents(t, c, keys, nil)
	if err := call(); err != nil {
		t.Fatalf("without damage: %v", err)
	}
	after := contents(t, c, keys, before)
	written := differing(before, after)
	if len(written) == 0 {
		t.Fatal("without damage it writes nothing")
	}
	copyKeys(t, c, keys, aside)
	for i, key := range keys {
		kind, _, _ := strings.Cut(before[key], " ")
		try := func(d damage, isType bool) (needed bool) {
			t.Helper()
			what := key + " is damaged: " + d.name
			if err := d.do(stocktest.Soon(t), c, key); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			damaged := maps.Clone(before) // the other keys are as they were
			damaged[key] = contents(t, c, keys[i:i+1], nil)[key]
			err := call()
			now := contents(t, c, keys, damaged)
			changed := differing(damaged, now)
			switch {
			case err == nil && isType && slices.Contains(written, key):
				t.Errorf("%s: it does not fail", what)
			case err == nil && isType && slices.Contains(changed, key):
				t.Errorf("%s: it has written there", what)
			case err != nil && len(changed) > 0:
				t.Errorf("%s: it fails and has written to %s: %v", what, changed, err)
			case err != nil && isType && (!strings.Contains(err.Error(), "WRONGTYPE") || !errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), "caddy stockgate doctor")):
				t.Errorf("%s: it says %v", what, err)
			}
			if err == nil {
				restore(t, c, keys, aside, i, before, now)
				return false
			}
			copyKeys(t, c, keys[i:i+1], aside[i:i+1])
			if err := call(); err != nil {
				t.Fatalf("%s, and then as it was: %v", what, err)
			}
			now = contents(t, c, keys, after)
			if wrong := differing(after, now); len(wrong) > 0 {
				t.Errorf("%s, and then as it was: %s are not what they would be without", what, wrong)
			}
			restore(t, c, keys, aside, i, before, now)
			return true
		}
		needed := true // a call that one type does not disturb has nothing to do with the key
		for _, d := range otherTypes {
			if d.name == kind || !needed {
				continue
			}
			needed = try(d, true)
		}
		if kind == "hash" && needed {
			for _, d := range otherValues {
				try(d, false)
			}
		}
	}
}
