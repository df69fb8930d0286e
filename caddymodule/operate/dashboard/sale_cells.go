package dashboard

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// fetch reads some cells.
func (s *saleReader) fetch(ctx context.Context, d *edgeruntime.Runtime, touched map[string]bool, seq int64, head journal.Head) error {
	fresh := make(map[string]record.Cell, len(touched))
	if len(touched) > 0 {
		names := make([]string, 0, len(touched))
		for name := range touched {
			names = append(names, name)
		}
		values, err := d.Store.Shard().Data(s.id).Values(ctx, shard.CellsKey, names...)
		if err != nil {
			return err
		}
		for i, name := range names {
			if text, ok := values[i].(string); ok {
				if fresh[name], err = record.ParseCell(text); err != nil {
					return err
				}
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, c := range fresh {
		s.put(name, c, true)
	}
	s.seq, s.head = seq, head
	return nil
}

// scan reads all cells.
func (s *saleReader) scan(ctx context.Context, d *edgeruntime.Runtime, l *edge.Listing, head journal.Head) error {
	s.catchUp(ctx, d, head)
	began := time.Now()
	cells := make(map[string]record.Cell, len(s.lines))
	over, err := d.Store.Overview(ctx, s.id, func(name string, c record.Cell) { cells[name] = c })
	if err != nil {
		return err
	}
	s.scanned, s.took = time.Now(), time.Since(began)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.items == nil
	if first {
		s.items = make(map[string]*item, len(cells))
		s.place(l.Sale)
	}
	for name, known := range s.items {
		if _, ok := cells[name]; !ok {
			s.put(name, record.Cell{}, !first)
			if known.order < 0 {
				delete(s.items, name)
			}
		}
	}
	for name, c := range cells {
		s.put(name, c, !first)
	}
	s.inOrder = slices.SortedFunc(maps.Values(s.items), func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.order, b.order), strings.Compare(a.SKU, b.SKU), strings.Compare(a.Region, b.Region))
	})
	s.over, s.seq, s.epoch, s.head = over, head.Last, head.Epoch, head
	return nil
}

// place gives the items their order in the sale.
func (s *saleReader) place(file *sale.Sale) {
	for i := range file.Items {
		for _, name := range file.Items[i].Cells() {
			line := s.lines[name]
			s.items[name] = newItem(line.SKU, line.Region, i)
		}
	}
}

// put notes what a cell is now. moves: a difference is a movement.
func (s *saleReader) put(name string, c record.Cell, moves bool) {
	known, ok := s.items[name]
	if !ok {
		line, listed := s.lines[name]
		if !listed {
			line.SKU, line.Region, _ = strings.Cut(name, "@")
		}
		known = newItem(line.SKU, line.Region, -1)
		s.items[name] = known
	}
	was := known.Cell
	c.SKU, c.Region = was.SKU, was.Region
	known.Cell = c
	in, now := s.of(was.Region), time.Now()
	for i, v := range stockOf(c) {
		in.stock[i] += v - stockOf(was)[i]
	}
	s.sum.Stock += c.Stock - was.Stock
	s.sum.Available += c.Available - was.Available
	s.sum.Held += c.Held - was.Held
	s.sum.InDoubt += c.InDoubt - was.InDoubt
	s.sum.Confirmed += c.Confirmed - was.Confirmed
	if c.Balanced() {
		delete(s.odd, name)
	} else {
		s.odd[name] = true
	}
	if !moves || c == was {
		return
	}
	if c.Available > 0 {
		known.gone = time.Time{}
	} else if was.Available > 0 {
		known.gone = now
	}
	if n := takenOf(c) - takenOf(was); n != 0 {
		known.flow.add(now, n)
		in.flow.add(now, n)
	}
	// any change moves the item, units that were taken the more
	taken := float64(max(0, takenOf(c)-takenOf(was)))
	known.score, known.at = known.moving(now)+taken+0.01, now
	s.recent[name] = known
}

// stockOf is a cell in the form of frames: stock, available, held, in doubt, sold.
func stockOf(c record.Cell) [5]int64 {
	return [5]int64{c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed}
}

// takenOf returns how many units of a cell buyers have.
func takenOf(c record.Cell) int64 { return c.Held + c.InDoubt + c.Confirmed }
