package lists

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

const (
	// MaxEntries is how many entries a named list may have.
	MaxEntries = 10_000_000
	// listBatch is how many entries one call changes. It takes Redis about a millisecond.
	listBatch = 500
	// listLog is how many calls an edge may miss before it must read the whole list again. The
	// log takes at most 8 MiB.
	listLog = 1024
)

var (
	// ErrFull says that the list has as many entries as it may have. Entries of earlier batches
	// of the same call are in it.
	ErrFull = fmt.Errorf("a list has at most %d entries", MaxEntries)
	// ErrForeignSecret says that the entries were hashed with another secret than this edge's,
	// so that no lookup can match them.
	ErrForeignSecret = errors.New("the list was made with another identity secret")
)

// Lists are the named lists in one Redis, which all edges share. They are safe for concurrent
// use.
type Lists struct{ shard *shard.Client }

// New returns the lists in a Redis.
func New(shard *shard.Client) *Lists { return &Lists{shard} }

// Add adds entries to a named list, and makes the list if it does not exist. Redis stores keyed
// hashes of the entries. Add returns how many were not in the list yet. It adds up to 500
// entries in one step. A longer call that fails has done the steps before the failure, and may
// be repeated.
func (l *Lists) Add(ctx context.Context, secret *identity.Secret, list string, entries []Entry) (int, error) {
	return l.listChange(ctx, secret, list, "add", entries)
}

// Remove removes entries from a named list, in the same steps as Add. It returns how many were
// in the list.
func (l *Lists) Remove(ctx context.Context, secret *identity.Secret, list string, entries []Entry) (int, error) {
	return l.listChange(ctx, secret, list, "remove", entries)
}

func (l *Lists) listChange(ctx context.Context, secret *identity.Secret, list, op string, entries []Entry) (int, error) {
	for i, e := range entries {
		if err := e.check(); err != nil {
			return 0, fmt.Errorf("%w: entry %d: %w", shard.ErrRefused, i+1, err)
		}
	}
	changed := 0
	for len(entries) > 0 {
		n := min(len(entries), listBatch)
		c, err := l.listStep(ctx, secret, list, op, entries[:n])
		changed += c
		if err != nil {
			return changed, err
		}
		entries = entries[n:]
	}
	return changed, nil
}

func (l *Lists) listStep(ctx context.Context, secret *identity.Secret, list, op string, entries []Entry) (int, error) {
	keys := append(make([]string, 0, 3+len(entries)), l.listMetaKey(list), l.listLogKey(list), l.listFormsKey(list))
	places := make(map[int]int, len(entries)) // of the parts, in keys
	args := append(make([]any, 0, 7+3*len(entries)), l.listChannel(list), lua.Schema, secret.ListPrint(), op, rand.Text(), MaxEntries, listLog)
	for _, e := range entries {
		key := e.key(secret)
		p := listPart(&key)
		if places[p] == 0 {
			keys = append(keys, l.listPartKey(list, p))
			places[p] = len(keys)
		}
		args = append(args, places[p], e.form(), key[:])
	}
	raw, err := l.shard.Eval(ctx, lua.AddToList, keys, args, l.shard.Options.ReplicaAcks)
	if err != nil {
		return 0, err
	}
	switch r := shard.Reply(raw); r.Code() {
	case lua.OK:
		return int(r.Number(1)), nil
	case lua.TooMany:
		return 0, fmt.Errorf("%w: %w: it has %d", shard.ErrRefused, ErrFull, r.Number(1))
	case lua.Foreign:
		return 0, fmt.Errorf("%w: %w", shard.ErrRefused, ErrForeignSecret)
	case lua.NewerSchema:
		return 0, shard.NewerSchema(r.Number(1))
	default:
		return 0, fmt.Errorf("%w: list gave %q", shard.ErrUnavailable, r.Code())
	}
}

// Count returns how many entries a list has; 0 if it does not exist.
func (l *Lists) Count(ctx context.Context, list string) (int64, error) {
	m, err := l.listMeta(ctx, list)
	return m.count, err
}

// listHasAny looks up several keys in one round trip. Attempts wait for it: it takes a
// connection of theirs.
func (l *Lists) listHasAny(ctx context.Context, list string, keys []identity.ListKey) (bool, error) {
	return l.shard.HasAny(ctx, len(keys), func(i int) (string, []byte) { return l.listPartKey(list, listPart(&keys[i])), keys[i][:] })
}

// listRead reads some parts of a list of about count entries, from part at on, and returns the
// next part. It reads parts whole: each is short, and no cursor of SSCAN must survive changes
// between two calls.
func (l *Lists) listRead(ctx context.Context, list string, count int64, at int) ([]identity.ListKey, int, error) {
	const atOnce = 5000 // entries: a millisecond or two of Redis
	n := int(min(max(1, atOnce*listParts/max(count, 1)), int64(listParts-at), 64))
	parts := make([]string, n)
	for i := range parts {
		parts[i] = l.listPartKey(list, at+i)
	}
	answers, err := l.shard.Members(ctx, parts)
	if err != nil {
		return nil, at, err
	}
	var keys []identity.ListKey
	for _, members := range answers {
		for _, member := range members {
			if len(member) == len(identity.ListKey{}) {
				keys = append(keys, identity.ListKey([]byte(member)))
			}
		}
	}
	return keys, at + n, nil
}

// listPosition is one change of a list: its number and its name.
type listPosition struct {
	seq int64
	tip string
}

// listMeta is the meta hash of a list.
type listMeta struct {
	listPosition
	count  int64
	secret string
	schema int64
}

func (l *Lists) listMeta(ctx context.Context, list string) (listMeta, error) {
	fields, err := l.shard.HashFields(ctx, l.listMetaKey(list), "seq", "tip", "count", "secret", "schema")
	if err != nil {
		return listMeta{}, err
	}
	var m listMeta
	for i, n := range []*int64{&m.seq, nil, &m.count, nil, &m.schema} {
		text := fields.Text(i)
		if n == nil || text == "" {
			continue
		}
		if *n, err = strconv.ParseInt(text, 10, 64); err != nil {
			return listMeta{}, fmt.Errorf("list %s is damaged in redis: %w", list, err)
		}
	}
	m.tip, m.secret = fields.Text(1), fields.Text(3)
	return m, nil
}

// readable returns why lookups in the list cannot work; nil: they work.
func (m *listMeta) readable(secret *identity.Secret) error {
	switch {
	case m.schema > lua.Schema:
		return shard.NewerSchema(m.schema)
	case m.secret != "" && m.secret != secret.ListPrint():
		return ErrForeignSecret
	}
	return nil
}

// Has reports for each entry whether a list has it, just as it was added.
func (l *Lists) Has(ctx context.Context, secret *identity.Secret, list string, entries []Entry) ([]bool, error) {
	m, err := l.listMeta(ctx, list)
	if err == nil {
		err = m.readable(secret)
	}
	if err != nil {
		return nil, err
	}
	has := make([]bool, len(entries))
	for i, e := range entries {
		if has[i], err = l.listHasAny(ctx, list, []identity.ListKey{e.key(secret)}); err != nil {
			return nil, err
		}
	}
	return has, nil
}
