package list

import (
	"context"
	"net/netip"
	"time"
)

// set is a list in memory. It never changes: a newer one takes its place.
type set struct {
	forms   formSet
	filter  *filter
	exact   *exact
	entries int
}

func (s *set) hasText(_ context.Context, _ time.Time, f form, value string) (bool, error) {
	if !s.forms.has(f) {
		return false, nil
	}
	var room [maxKey]byte
	return s.has(appendText(room[:0], f, value)), nil
}

func (s *set) hasAddr(_ context.Context, _ time.Time, a netip.Addr) (bool, error) {
	var room [1 + 16]byte
	for most := a.BitLen(); ; {
		p, ok := s.forms.longest(a, most)
		if !ok {
			return false, nil
		}
		if s.has(appendPrefix(room[:0], p)) {
			return true, nil
		}
		most = p.Bits() - 1
	}
}

func (s *set) has(key []byte) bool {
	hash := s.exact.hash(key)
	return s.filter.maybeFrozen(hash) && s.exact.has(hash, key)
}

func (s *set) stats() Stats {
	return Stats{Entries: s.entries, Filter: s.filter.bytes, Exact: s.exact.bytes()}
}
