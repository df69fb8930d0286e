package list

import (
	"context"
	"encoding/binary"
	"net/netip"
	"sync/atomic"
	"time"
)

// Key is the keyed hash under which an entry is kept elsewhere. Entries with the
// same key are the same.
type Key = [16]byte

// HashStore stores a list elsewhere, by keyed hashes of its entries: reading it there
// reveals no phone number. It must be safe for concurrent use.
type HashStore interface {
	// Ready says why the list cannot be looked up at present; nil: it can.
	Ready() error
	// HashText and HashPrefix give the key of an entry. They are only called while
	// the store is ready.
	HashText(kind, value string) Key
	HashPrefix(netip.Prefix) Key
	// HasAny reports whether the list has one of the keys, now. began is when the first lookup
	// of the attempt began: the store's own bound of a lookup counts from then.
	HasAny(ctx context.Context, began time.Time, keys []Key) (bool, error)
}

// Hashed is a list that is stored elsewhere. It has a Bloom filter of the list's keys,
// which the goroutine that follows the list fills. The store is asked when the filter
// says "maybe", and always while there is no filter.
//
// Forms, Begin, Fill, Add, Swap and Drop belong to one goroutine, lookups to any.
type Hashed struct {
	List
	store  HashStore
	now    atomic.Pointer[reflection]
	next   *filter // being filled
	filled int     // keys in next
}

// reflection is what a mirror shows. Only the filter changes in it.
type reflection struct {
	forms   formSet
	filter  *filter // nil: ask
	entries *atomic.Int64
}

// NewHashed makes the mirror of a list. Until it is told the forms of its entries
// it is empty.
func NewHashed(k HashStore) *Hashed {
	m := &Hashed{store: k}
	m.List.in = (*hashedMembers)(m)
	m.now.Store(&reflection{})
	return m
}

// Forms says which forms of entries the list has: any, buyer, phone, email, address,
// device, ip4/24, ip6/64. Keys of other forms are never looked up. Unknown names are
// ignored: no lookup here uses them.
func (m *Hashed) Forms(names []string) {
	r := *m.now.Load()
	r.forms = formSet{}
	for _, name := range names {
		if f := parseForm(name); f != 0 {
			r.forms.add(f)
		}
	}
	m.now.Store(&r)
}

// Begin begins a new filter for so many entries, beside the one in use.
func (m *Hashed) Begin(entries int) { m.next, m.filled = newFilter(entries), 0 }

// Fill puts keys that the list has into the new filter.
func (m *Hashed) Fill(keys []Key) {
	for i := range keys {
		m.next.add(fold(&keys[i]))
	}
	m.filled += len(keys)
}

// Add puts keys that were added to the list into the filter in use and, if there is
// one, into the new one.
func (m *Hashed) Add(keys []Key) {
	if r := m.now.Load(); r.filter != nil {
		for i := range keys {
			r.filter.add(fold(&keys[i]))
		}
		r.entries.Add(int64(len(keys)))
	}
	if m.next != nil {
		m.Fill(keys)
	}
}

// Swap puts the new filter into use.
func (m *Hashed) Swap() {
	r := *m.now.Load()
	r.filter, r.entries = m.next, new(atomic.Int64)
	r.entries.Store(int64(m.filled))
	m.next = nil
	m.now.Store(&r)
}

// Drop discards the filter in use, because entries may be missing from it. Until the
// next Swap every lookup asks the store.
func (m *Hashed) Drop() {
	r := *m.now.Load()
	r.filter, r.entries = nil, nil
	m.now.Store(&r)
}

// hashedMembers looks into a hashed list.
type hashedMembers Hashed

func (m *hashedMembers) hasText(ctx context.Context, began time.Time, f form, value string) (bool, error) {
	if err := m.store.Ready(); err != nil {
		return false, err
	}
	r := m.now.Load()
	if !r.forms.has(f) {
		return false, nil
	}
	key := m.store.HashText(f.kind(), value)
	if !r.maybe(&key) {
		return false, nil
	}
	return m.store.HasAny(ctx, began, []Key{key})
}

func (m *hashedMembers) hasAddr(ctx context.Context, began time.Time, a netip.Addr) (bool, error) {
	if err := m.store.Ready(); err != nil {
		return false, err
	}
	r := m.now.Load()
	var asked []Key
	for most := a.BitLen(); ; {
		p, ok := r.forms.longest(a, most)
		if !ok {
			break
		}
		if key := m.store.HashPrefix(p); r.maybe(&key) {
			asked = append(asked, key)
		}
		most = p.Bits() - 1
	}
	if len(asked) == 0 {
		return false, nil
	}
	return m.store.HasAny(ctx, began, asked)
}

func (m *hashedMembers) stats() Stats {
	r := m.now.Load()
	if r.filter == nil {
		return Stats{}
	}
	return Stats{Entries: int(r.entries.Load()), Filter: r.filter.bytes}
}

func (r *reflection) maybe(key *Key) bool { return r.filter == nil || r.filter.maybe(fold(key)) }

// fold takes the part of a key that the filter looks at. Two keys of one list that
// share it make a false positive, no more.
func fold(key *Key) uint64 { return binary.BigEndian.Uint64(key[:8]) }
