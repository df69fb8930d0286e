package fence

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// SilentEdge is one that other edges have outlived: it was not stopped, is not heard any more, and none has come
// in its place.
type SilentEdge struct {
	// ID begins with the name of its machine.
	ID string
	// Heard is when it was last heard, by Redis's own time, and For how long ago that is.
	Heard time.Time
	For   time.Duration
	// Sales are those that it sold, in their order.
	Sales []string
}

// heardOf is what a sale's heartbeats say of an edge that is silent.
type heardOf struct {
	edge string
	ms   int64
}

// readSilent reads what lua/fence.lua answers.
func readSilent(text string) (all []heardOf) {
	for line := range strings.Lines(text) {
		at, edge, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		ms, _ := strconv.ParseInt(at, 10, 64)
		all = append(all, heardOf{edge, ms})
	}
	return all
}

// Silent returns the edges that are silent in sales that are not over, those that are so for the longest time first.
// This edge knows it from its last heartbeats.
func (k *Keeper) Silent(sales iter.Seq2[string, int64]) []SilentEdge {
	found := make(map[string]*SilentEdge)
	for sale := range sales {
		m := k.known(sale)
		if m == nil {
			continue
		}
		said := m.silent.Load()
		if said == nil {
			continue
		}
		now, ok := m.clock.Now()
		if !ok {
			now = time.Now().UnixMilli()
		}
		for _, h := range *said {
			s := found[h.edge]
			if s == nil {
				s = &SilentEdge{ID: h.edge}
				found[h.edge] = s
			}
			s.Sales = append(s.Sales, sale)
			if at := time.UnixMilli(h.ms); at.After(s.Heard) {
				s.Heard, s.For = at, max(0, time.UnixMilli(now).Sub(at))
			}
		}
	}
	all := make([]SilentEdge, 0, len(found))
	for _, s := range found {
		slices.Sort(s.Sales)
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b SilentEdge) int {
		if c := a.Heard.Compare(b.Heard); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}

// Forget drops a silent edge from all sales: an operator knows of it. It reports whether it was silent in one.
func (k *Keeper) Forget(ctx context.Context, edge string) (bool, error) {
	k.mu.Lock()
	members := slices.Collect(maps.Values(k.members))
	k.mu.Unlock()
	found := false
	var failed error
	for _, m := range members {
		said := m.silent.Load()
		if said == nil || !slices.ContainsFunc(*said, func(h heardOf) bool { return h.edge == edge }) {
			continue
		}
		found = true
		r, _, _, err := k.shard.Beat(ctx, m.sale, &shard.Beat{Edge: edge, Does: "forget"})
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
		case r.Code() == lua.OK:
			m.hear(r.Text(3))
		case r.Code() != lua.NoSale && r.Code() != lua.NoFence:
			failed = errors.Join(failed, refused(m.sale, r))
		}
	}
	return found, failed
}

// known returns the member of a sale; nil: there is none.
func (k *Keeper) known(sale string) *member {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.members[sale]
}

// hear notes which edges are silent.
func (m *member) hear(text string) {
	if text == "" {
		m.silent.Store(nil)
		return
	}
	said := readSilent(text)
	m.silent.Store(&said)
}
