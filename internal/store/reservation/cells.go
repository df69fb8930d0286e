package reservation

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// pieceFor is the timeout of one call for some of a sale's cells.
const pieceFor = 2 * time.Second

// EachCell calls yield for every cell of a sale, with its text as stored. It reads some
// cells at a time, so that 100,000 of them block neither Redis nor this process, and fails
// if Redis takes longer than two seconds for one call. The cells are read at different
// moments; SaleStock reads all at one.
func (s *Store) EachCell(ctx context.Context, id string, yield func(name, text string)) error {
	for cursor := uint64(0); ; {
		piece, cancel := context.WithTimeout(ctx, pieceFor)
		names, texts, next, err := s.Scan(piece, id, PartCell, cursor)
		cancel()
		if err != nil {
			return err
		}
		for i, name := range names {
			yield(name, texts[i])
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// Overview is the sums of a sale's cells.
type Overview struct {
	// Sum is the sum of all cells; its SKU is *. While cells are being removed from the
	// sale, one of them may count twice.
	Sum      record.Cell
	Balanced bool // in every cell, see SaleStock
	// OldestInDoubt is when the oldest hold in doubt became so; zero: none is in doubt.
	OldestInDoubt time.Time
	// Unbacked counts orders that the shop took without stock.
	Unbacked int64
	// Lead is how far the sale's clock of deadlines is ahead of Redis's own time.
	Lead time.Duration
}

// Overview sums up a sale's cells, which it reads as EachCell does. It calls yield for each
// cell. It fails with shard.ErrNoSale if Redis does not have the sale.
func (s *Store) Overview(ctx context.Context, id string, yield func(name string, c record.Cell)) (*Overview, error) {
	head, cancel := context.WithTimeout(ctx, pieceFor)
	defer cancel()
	h, err := s.shard.Data(id).StockHead(head, "version", "lead")
	if err != nil {
		return nil, err
	}
	if !h.Meta.Has(0) {
		return nil, shard.ErrNoSale
	}
	lead := h.Meta.Number(1)
	o := &Overview{Sum: record.Cell{SKU: "*"}, Balanced: true, Unbacked: h.Unbacked, Lead: time.Duration(lead) * time.Millisecond}
	if h.OldestInDoubt != 0 {
		o.OldestInDoubt = time.UnixMilli(h.OldestInDoubt - lead)
	}
	var unreadable error
	err = s.EachCell(ctx, id, func(name, text string) {
		c, err := record.ParseCell(text)
		if err != nil {
			unreadable = fmt.Errorf("cell %s of sale %s: %w", name, id, err)
			return
		}
		o.Balanced = o.Balanced && c.Balanced()
		o.Sum.Add(c)
		yield(name, c)
	})
	if err = cmp.Or(err, unreadable); err != nil {
		return nil, err
	}
	return o, nil
}
