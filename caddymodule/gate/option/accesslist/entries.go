package accesslist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/filters/list"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/lists"
)

// MaxValue is how many bytes an entry may have, without its kind.
const MaxValue = list.MaxValue

// Entries are entries of lists in Redis.
type Entries []lists.Entry

// ParseEntries reads entries, each written as in a file. rules are those by which gates read identities. An error names
// the entry by its number.
func ParseEntries(texts []string, rules sale.IdentityRules) (Entries, error) {
	entries := make(Entries, len(texts))
	for i, text := range texts {
		e, err := list.Parse(text, rules.Normalise)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		entries[i] = lists.Entry(e)
	}
	return entries, nil
}

// EntriesFor are the entries under which lists may have an identity: of its kind, and of any kind. What
// cannot be an entry is in no list.
func EntriesFor(kind, value string, rules sale.IdentityRules) (entries Entries) {
	for _, as := range []string{kind, list.Any} {
		if e, err := list.Parse(as+":"+value, rules.Normalise); err == nil && (as != list.Any || kind != list.IP) {
			entries = append(entries, lists.Entry(e))
		}
	}
	return entries
}

// CanBeValue reports whether an entry can have a value.
func CanBeValue(value string) bool {
	return value != "" && len(value) <= MaxValue && utf8.ValidString(value)
}

// OfKind are the entries of a kind.
func (e Entries) OfKind(kind string) Entries {
	return slices.DeleteFunc(slices.Clone(e), func(e lists.Entry) bool { return e.Kind != kind })
}

// Count returns how many entries a list in Redis has.
func (l *List) Count(ctx context.Context, d *edgeruntime.Runtime) (int64, error) {
	return lists.New(d.Store.Shard()).Count(ctx, l.Name)
}

// Change adds entries to a list in Redis, or removes them, and returns how many have changed. Up to 500 are one step;
// what an error leaves undone may be done again.
func (l *List) Change(ctx context.Context, d *edgeruntime.Runtime, remove bool, entries Entries) (int, error) {
	secret, err := d.Secret()
	if err != nil {
		return 0, err
	}
	if remove {
		return lists.New(d.Store.Shard()).Remove(ctx, secret, l.Name, entries)
	}
	return lists.New(d.Store.Shard()).Add(ctx, secret, l.Name, entries)
}

// Kinds returns the kinds of the entries that a list in Redis has of some. unsearchable says why a list has nothing that
// can be found: it was made with another identity secret.
func (l *List) Kinds(ctx context.Context, d *edgeruntime.Runtime, entries Entries) (kinds []string, unsearchable, err error) {
	secret, err := d.Secret()
	if err != nil {
		return nil, nil, err
	}
	has, err := lists.New(d.Store.Shard()).Has(ctx, secret, l.Name, entries)
	switch {
	case errors.Is(err, lists.ErrForeignSecret):
		return nil, err, nil
	case err != nil:
		return nil, nil, err
	}
	for i, e := range entries {
		if has[i] {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds, nil, nil
}
