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
	{"string", func(ctx context.Context, c *redis.Client, key string) error { return c.Set(ctx, key, "x", 0).Err() }},
	{"list", func(ctx context.Context, c *redis.Client, key string) error { return c.RPush(ctx, key, "x").Err() }},
	{"hash", func(ctx context.Context, c *redis.Client, key string) error { return c.HSet(ctx, key, "x", "y").Err() }},
	{"zset", func(ctx context.Context, c *redis.Client, key string) error {
		return c.ZAdd(ctx, key, redis.Z{Score: 1, Member: "x"}).Err()
	}},
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
		for field, value := range all {
			if err == nil {
				err = c.HSet(ctx, key, field, other(value)).Err()
			}
		}
		return err
	}}
}

// contents is what keys hold, each as a text that begins with its type.
func contents(t *testing.T, c *redis.Client, keys []string) map[string]string {
	t.Helper()
	ctx, pipe := stocktest.Soon(t), c.Pipeline()
	var kinds []*redis.StatusCmd
	for _, key := range keys {
		kinds = append(kinds, pipe.Type(ctx, key))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	held := map[string]redis.Cmder{}
	for i, key := range keys {
		switch kinds[i].Val() {
		case "string":
			held[key] = pipe.Get(ctx, key)
		case "list":
			held[key] = pipe.LRange(ctx, key, 0, -1)
		case "set":
			held[key] = pipe.SMembers(ctx, key)
		case "hash":
			held[key] = pipe.HGetAll(ctx, key)
		case "zset":
			held[key] = pipe.ZRangeWithScores(ctx, key, 0, -1)
		case "stream":
			held[key] = pipe.XRange(ctx, key, "-", "+")
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && len(held) > 0 {
		t.Fatal(err)
	}
	out := map[string]string{}
	for i, key := range keys {
		out[key] = kinds[i].Val()
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
	before := contents(t, c, keys)
	if err := call(); err != nil {
		t.Fatalf("without damage: %v", err)
	}
	after := contents(t, c, keys)
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
			damaged[key] = contents(t, c, keys[i:i+1])[key]
			err := call()
			now := contents(t, c, keys)
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
			now = contents(t, c, keys)
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
			if err := c.Del(stocktest.Soon(t), key).Err(); err != nil {
				t.Fatal(err)
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
