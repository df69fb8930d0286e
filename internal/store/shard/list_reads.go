package shard

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// HasAny reports whether any of some sets has its member, in one round trip. Attempts wait for it: it
// takes a connection of theirs.
func (s *Client) HasAny(ctx context.Context, n int, at func(i int) (set string, member []byte)) (bool, error) {
	pipe := behind(s.reserve).Pipeline()
	answers := make([]*redis.BoolCmd, n)
	for i := range answers {
		set, member := at(i)
		answers[i] = pipe.SIsMember(ctx, set, member)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return false, Explain(err)
	}
	for _, a := range answers {
		if a.Val() {
			return true, nil
		}
	}
	return false, nil
}

// Members reads some sets in one round trip.
func (s *Client) Members(ctx context.Context, sets []string) ([][]string, error) {
	pipe := behind(s.redis).Pipeline()
	answers := make([]*redis.StringSliceCmd, len(sets))
	for i, set := range sets {
		answers[i] = pipe.SMembers(ctx, set)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, Explain(err)
	}
	out := make([][]string, len(sets))
	for i, a := range answers {
		out[i] = a.Val()
	}
	return out, nil
}

// HashFields reads fields of the hash of a list.
func (s *Client) HashFields(ctx context.Context, key string, fields ...string) (Fields, error) {
	v, err := behind(s.redis).HMGet(ctx, key, fields...).Result()
	return v, Explain(err)
}

// HashNames reads the names in the hash of a list.
func (s *Client) HashNames(ctx context.Context, key string) ([]string, error) {
	names, err := behind(s.redis).HKeys(ctx, key).Result()
	return names, Explain(err)
}
