package shard

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// copyAtOnce is about how many elements of a key are copied in one round trip.
const copyAtOnce = 200

// ErrChanged says that keys have changed while they were copied.
var ErrChanged = errors.New("another process has written to the keys that are copied")

// StockKeys returns all keys under the prefix, in order, except shared rates, leases and what edges say of themselves, which end soon, and the
// note of a move.
func (s *Client) StockKeys(ctx context.Context) ([]string, error) {
	all, err := s.allKeys(ctx)
	if err != nil {
		return nil, err
	}
	rates, leases := s.RateKey(""), s.LeaseKey("")
	all = slices.DeleteFunc(all, func(key string) bool {
		return key == s.moveKey() || key == s.DrainersKey() || key == s.conditionsKey() || strings.HasPrefix(key, rates) || strings.HasPrefix(key, leases)
	})
	slices.Sort(all)
	return slices.Compact(all), nil
}

// allKeys returns the keys under the prefix, some of them twice.
func (s *Client) allKeys(ctx context.Context) (all []string, err error) {
	var mu sync.Mutex
	err = eachServer(ctx, s, func(ctx context.Context, c redis.Cmdable) error {
		for cursor := uint64(0); ; {
			keys, next, err := c.Scan(ctx, cursor, globEscape.Replace(s.prefix)+":*", 1000).Result()
			if err != nil {
				return err
			}
			mu.Lock()
			all = append(all, keys...)
			mu.Unlock()
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	})
	return all, Explain(err)
}

var globEscape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)

// eachServer calls do for the server, or for each master of a cluster at the same time.
func eachServer(ctx context.Context, s *Client, do func(context.Context, redis.Cmdable) error) error {
	if cluster, ok := behind(s.redis).(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return do(ctx, c) })
	}
	return do(ctx, behind(s.redis))
}

// CopyTo copies keys, with the times at which they expire, to another Redis, which has none of them. The versions of
// the two servers do not matter.
func (s *Client) CopyTo(ctx context.Context, to *Client, keys []string) error {
	for _, key := range keys {
		err := s.elements(ctx, key, func(kind string, some [][]string) error { return to.addElements(ctx, key, kind, some) })
		if err == nil {
			err = s.copyRest(ctx, to, key)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// SameAs compares keys with their copies, element by element. It returns an ErrChanged with the first that differs.
func (s *Client) SameAs(ctx context.Context, copies *Client, keys []string) error {
	for _, key := range keys {
		here, err := s.digest(ctx, key)
		if err != nil {
			return err
		}
		there, err := copies.digest(ctx, key)
		if err != nil {
			return err
		}
		if here != there && here.n > 0 { // it may have expired
			return fmt.Errorf("%w: %s has %d elements, and its copy %d", ErrChanged, key, here.n, there.n)
		}
	}
	return nil
}

// digest identifies the content of a key, whatever the order of its elements.
type digest struct {
	kind string
	n    int
	sum  [sha256.Size]byte
	last string // a stream's newest id, which may be of an entry that is gone
}

func (s *Client) digest(ctx context.Context, key string) (d digest, err error) {
	err = s.elements(ctx, key, func(kind string, some [][]string) error {
		d.kind = kind
		for _, parts := range some {
			h := sha256.New()
			for _, part := range parts {
				_ = binary.Write(h, binary.BigEndian, int64(len(part)))
				h.Write([]byte(part))
			}
			for i, b := range h.Sum(nil) {
				d.sum[i] ^= b
			}
		}
		d.n += len(some)
		return nil
	})
	if err == nil && d.kind == "stream" {
		d.last, err = s.lastID(ctx, key)
	}
	return d, err
}

// elements yields the content of a key, some elements at a time: of a hash its fields and values, of a sorted set members and
// scores, of a stream ids and what follows them. Nothing is yielded of a key that does not exist.
func (s *Client) elements(ctx context.Context, key string, yield func(kind string, some [][]string) error) error {
	kind, err := behind(s.redis).Type(ctx, key).Result()
	if err != nil {
		return Explain(err)
	}
	switch kind {
	case "none":
		return nil
	case "string":
		text, err := behind(s.redis).Get(ctx, key).Result()
		if err != nil {
			return Explain(err)
		}
		return yield(kind, [][]string{{text}})
	case "stream":
		return s.entries(ctx, key, func(some [][]string) error { return yield(kind, some) })
	}
	for cursor := uint64(0); ; {
		some, next, err := s.scanKey(ctx, key, kind, cursor)
		if err != nil {
			return Explain(err)
		}
		if err := yield(kind, some); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

func (s *Client) scanKey(ctx context.Context, key, kind string, cursor uint64) (some [][]string, next uint64, err error) {
	var flat []string
	parts := 2
	switch kind {
	case "hash":
		flat, next, err = behind(s.redis).HScan(ctx, key, cursor, "", copyAtOnce).Result()
	case "zset":
		flat, next, err = behind(s.redis).ZScan(ctx, key, cursor, "", copyAtOnce).Result()
		for i := 1; i < len(flat); i += 2 { // servers write the same number in different ways
			score, err := strconv.ParseFloat(flat[i], 64)
			if err != nil {
				return nil, 0, err
			}
			flat[i] = strconv.FormatFloat(score, 'g', 17, 64)
		}
	case "set":
		parts = 1
		flat, next, err = behind(s.redis).SScan(ctx, key, cursor, "", copyAtOnce).Result()
	default:
		return nil, 0, fmt.Errorf("it is a %s: stockgate has no such key, another client has written it", kind)
	}
	return slices.Collect(slices.Chunk(flat, parts)), next, err
}

// entries yields the entries of a stream, each an id and then its fields and values in their order.
func (s *Client) entries(ctx context.Context, key string, yield func(some [][]string) error) error {
	if err := yield(nil); err != nil { // it may have none
		return err
	}
	for from := "-"; ; {
		raw, err := behind(s.redis).Do(ctx, "XRANGE", key, from, "+", "COUNT", copyAtOnce).Slice()
		if err != nil {
			return Explain(err)
		}
		some := make([][]string, len(raw))
		for i, entry := range raw {
			pair, _ := entry.([]any)
			if len(pair) != 2 {
				return fmt.Errorf("%w: XRANGE gave %d values of an entry", ErrUnavailable, len(pair))
			}
			id, _ := pair[0].(string)
			some[i] = []string{id}
			fields, _ := pair[1].([]any)
			for _, f := range fields {
				text, _ := f.(string)
				some[i] = append(some[i], text)
			}
			from = "(" + id
		}
		if err := yield(some); err != nil || len(raw) < copyAtOnce {
			return err
		}
	}
}

// addElements adds elements as they were yielded.
func (s *Client) addElements(ctx context.Context, key, kind string, some [][]string) error {
	if len(some) == 0 {
		return nil
	}
	if kind == "stream" {
		pipe := behind(s.redis).Pipeline()
		for _, entry := range some {
			pipe.Do(ctx, words([]any{"XADD", key}, entry...)...)
		}
		_, err := pipe.Exec(ctx)
		return Explain(err)
	}
	add := map[string]string{"hash": "HSET", "zset": "ZADD", "set": "SADD", "string": "SET"}[kind]
	command := []any{add, key}
	for _, parts := range some {
		if kind == "zset" {
			parts = []string{parts[1], parts[0]}
		}
		command = words(command, parts...)
	}
	return Explain(behind(s.redis).Do(ctx, command...).Err())
}

func words(command []any, more ...string) []any {
	for _, word := range more {
		command = append(command, word)
	}
	return command
}

// copyRest copies a stream's newest id, and when a key expires.
func (s *Client) copyRest(ctx context.Context, to *Client, key string) error {
	last, err := s.lastID(ctx, key)
	if err != nil {
		return err
	}
	if last != "" {
		if err := to.setLastID(ctx, key, last); err != nil {
			return err
		}
	}
	left, err := behind(s.redis).PTTL(ctx, key).Result()
	if err != nil || left <= 0 {
		return Explain(err)
	}
	return Explain(behind(to.redis).PExpire(ctx, key, left).Err())
}

// lastID is the newest id that a stream has had; empty: the key is no stream.
func (s *Client) lastID(ctx context.Context, key string) (string, error) {
	kind, err := behind(s.redis).Type(ctx, key).Result()
	if err != nil || kind != "stream" {
		return "", Explain(err)
	}
	info, err := behind(s.redis).XInfoStream(ctx, key).Result()
	if err != nil {
		return "", Explain(err)
	}
	return info.LastGeneratedID, nil
}

// setLastID sets the newest id of a stream, which may have no entries.
func (s *Client) setLastID(ctx context.Context, key, last string) error {
	n, err := behind(s.redis).Exists(ctx, key).Result()
	if err != nil {
		return Explain(err)
	}
	if n == 0 {
		pipe := behind(s.redis).TxPipeline()
		pipe.XAdd(ctx, &redis.XAddArgs{Stream: key, ID: last, Values: []string{"m", ""}})
		pipe.XDel(ctx, key, last)
		_, err := pipe.Exec(ctx)
		return Explain(err)
	}
	return Explain(behind(s.redis).Do(ctx, "XSETID", key, last).Err())
}

// DropKeys deletes keys.
func (s *Client) DropKeys(ctx context.Context, keys []string) error {
	for some := range slices.Chunk(keys, copyAtOnce) {
		pipe := behind(s.redis).Pipeline() // in a cluster, their servers differ
		for _, key := range some {
			pipe.Unlink(ctx, key)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return Explain(err)
		}
	}
	return nil
}
