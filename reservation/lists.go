package reservation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/lua"
)

const (
	// MaxListEntries is how many entries a named list may have.
	MaxListEntries = 10_000_000
	// listBatch is how many entries one call changes: about a millisecond of Redis.
	listBatch = 500
	// listLog is how many calls an edge may miss before it must read the whole list
	// again. The log takes at most 8 MiB.
	listLog = 1024
)

var (
	// ErrListFull: the list has as many entries as it may. Entries of earlier
	// batches of the same call are in it.
	ErrListFull = fmt.Errorf("a list has at most %d entries", MaxListEntries)
	// ErrListSecret: the entries were hashed with another secret than this edge's,
	// so nobody can be found in the list.
	ErrListSecret = errors.New("the list was made with another identity secret")
)

// Secret is what this edge hashes identities with, once it has agreed on it with the
// others; ErrStarting before.
func (e *Edge) Secret() (*Secret, error) {
	if s := e.secret.Load(); s != nil {
		return s, nil
	}
	return nil, ErrStarting
}

// ListAdd adds entries to a named list, which needs no other making. Redis holds
// keyed hashes of them. It returns how many were not in the list yet. Up to 500
// entries are one step; a longer call that fails has done the steps before, and may
// be repeated.
func (s *Store) ListAdd(ctx context.Context, secret *Secret, list string, entries []ListEntry) (int, error) {
	return s.listChange(ctx, secret, list, "add", entries)
}

// ListRemove removes entries from a named list, as ListAdd adds them. It returns how
// many were in the list.
func (s *Store) ListRemove(ctx context.Context, secret *Secret, list string, entries []ListEntry) (int, error) {
	return s.listChange(ctx, secret, list, "remove", entries)
}

func (s *Store) listChange(ctx context.Context, secret *Secret, list, op string, entries []ListEntry) (int, error) {
	for i, e := range entries {
		if err := e.check(); err != nil {
			return 0, fmt.Errorf("%w: entry %d: %w", ErrRefused, i+1, err)
		}
	}
	changed := 0
	for len(entries) > 0 {
		n := min(len(entries), listBatch)
		c, err := s.listStep(ctx, secret, list, op, entries[:n])
		changed += c
		if err != nil {
			return changed, err
		}
		entries = entries[n:]
	}
	return changed, nil
}

func (s *Store) listStep(ctx context.Context, secret *Secret, list, op string, entries []ListEntry) (int, error) {
	keys := append(make([]string, 0, 3+len(entries)), s.listMetaKey(list), s.listLogKey(list), s.listFormsKey(list))
	places := make(map[int]int, len(entries)) // of the parts, in keys
	args := append(make([]any, 0, 7+3*len(entries)), s.listChannel(list), lua.Schema, secret.listPrint(), op, rand.Text(), MaxListEntries, listLog)
	for _, e := range entries {
		key := e.key(secret)
		p := listPart(&key)
		if places[p] == 0 {
			keys = append(keys, s.listPartKey(list, p))
			places[p] = len(keys)
		}
		args = append(args, places[p], e.form(), key[:])
	}
	raw, err := s.eval(ctx, s.redis, s.scripts.List, keys, args, s.options.ReplicaAcks)
	if err != nil {
		return 0, err
	}
	switch r := reply(raw); r.code() {
	case lua.OK:
		return int(r.number(1)), nil
	case lua.TooMany:
		return 0, fmt.Errorf("%w: %w: it has %d", ErrRefused, ErrListFull, r.number(1))
	case lua.Foreign:
		return 0, fmt.Errorf("%w: %w", ErrRefused, ErrListSecret)
	case lua.NewerSchema:
		return 0, ErrNewerSchema
	default:
		return 0, fmt.Errorf("%w: list gave %q", ErrUnavailable, r.code())
	}
}

// ListCount returns how many entries a list has; 0 for one that nobody has made.
func (s *Store) ListCount(ctx context.Context, list string) (int64, error) {
	m, err := s.listMeta(ctx, list)
	return m.count, err
}

// ListHas says whether just this entry is in the list: an address that a listed
// prefix contains is not.
func (s *Store) ListHas(ctx context.Context, secret *Secret, list string, e ListEntry) (bool, error) {
	m, err := s.listMeta(ctx, list)
	if err != nil {
		return false, err
	}
	if err := m.readable(secret); err != nil {
		return false, err
	}
	return s.listHasAny(ctx, list, []listKey{e.key(secret)})
}

// listHasAny asks for several keys in one round trip.
func (s *Store) listHasAny(ctx context.Context, list string, keys []listKey) (bool, error) {
	pipe := s.redis.Pipeline()
	answers := make([]*redis.BoolCmd, len(keys))
	for i := range keys {
		answers[i] = pipe.SIsMember(ctx, s.listPartKey(list, listPart(&keys[i])), keys[i][:])
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return false, explain(err)
	}
	for _, a := range answers {
		if a.Val() {
			return true, nil
		}
	}
	return false, nil
}

// ListScan calls yield with the keyed hashes of a list's entries, up to some ten
// thousand at a time, until it fails. What is added meanwhile may be left out, and
// what is removed be among them.
func (s *Store) ListScan(ctx context.Context, list string, yield func(keys [][16]byte) error) error {
	m, err := s.listMeta(ctx, list)
	if err != nil {
		return err
	}
	at := 0
	for at < listParts {
		var keys []listKey
		if keys, at, err = s.listRead(ctx, list, m.count, at); err != nil {
			return err
		}
		if err := yield(keys); err != nil {
			return err
		}
	}
	return nil
}

// listRead reads some parts of a list of about so many entries, from part at on, and
// returns which part comes next. Parts are read whole: each is short, and no cursor
// of SSCAN must survive the changes between two calls.
func (s *Store) listRead(ctx context.Context, list string, count int64, at int) ([]listKey, int, error) {
	const atOnce = 5000 // entries: a millisecond or two of Redis
	n := int(min(max(1, atOnce*listParts/max(count, 1)), int64(listParts-at), 64))
	pipe := s.redis.Pipeline()
	answers := make([]*redis.StringSliceCmd, n)
	for i := range answers {
		answers[i] = pipe.SMembers(ctx, s.listPartKey(list, at+i))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, at, explain(err)
	}
	var keys []listKey
	for _, a := range answers {
		for _, member := range a.Val() {
			if len(member) == len(listKey{}) {
				keys = append(keys, listKey([]byte(member)))
			}
		}
	}
	return keys, at + n, nil
}

// listPosition is a change of a list: its number and its name.
type listPosition struct {
	seq int64
	tip string
}

// listMeta is what a list's meta hash says.
type listMeta struct {
	listPosition
	count  int64
	secret string
	schema int64
}

func (s *Store) listMeta(ctx context.Context, list string) (listMeta, error) {
	fields, err := s.redis.HMGet(ctx, s.listMetaKey(list), "seq", "tip", "count", "secret", "schema").Result()
	if err != nil {
		return listMeta{}, explain(err)
	}
	var m listMeta
	for i, n := range []*int64{&m.seq, nil, &m.count, nil, &m.schema} {
		text, _ := fields[i].(string)
		if n == nil || text == "" {
			continue
		}
		if *n, err = strconv.ParseInt(text, 10, 64); err != nil {
			return listMeta{}, fmt.Errorf("list %s is damaged in redis: %w", list, err)
		}
	}
	m.tip, _ = fields[1].(string)
	m.secret, _ = fields[3].(string)
	return m, nil
}

// readable says why nobody can be found in the list; nil: who is in it can.
func (m *listMeta) readable(secret *Secret) error {
	switch {
	case m.schema > lua.Schema:
		return ErrNewerSchema
	case m.secret != "" && m.secret != secret.listPrint():
		return ErrListSecret
	}
	return nil
}
