package reservation

import (
	"cmp"
	"context"
	"fmt"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/shard"
	"time"
)

// pieceFor is how long Redis may take for some of a sale's cells.
const pieceFor = 2 * time.Second

// EachCell calls yield for every cell of a sale, with its text as it is kept. It asks for
// some at a time, so that neither Redis nor this process is held up by 100,000 of them; it
// fails when Redis takes longer than two seconds for one piece. Every cell is as it was at one
// moment, but not all are of the same: for that there is Books.
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

// Overview is what a sale's books say in short.
type Overview struct {
	// Sum is that of all cells, its SKU *. While cells are being taken out of the sale
	// one of them may count twice.
	Sum      record.Cell
	Balanced bool // in every cell, see Books
	// OldestInDoubt is since when the oldest unresolved doubt exists; zero: none.
	OldestInDoubt time.Time
	// Unbacked counts orders that the shop took without stock.
	Unbacked int64
	// Lead is how far the sale's clock of deadlines is ahead of Redis's own time.
	Lead time.Duration
}

// Overview looks at a sale's cells as EachCell does, and gives each to yield by its name.
func (s *Store) Overview(ctx context.Context, id string, yield func(name string, c record.Cell)) (*Overview, error) {
	keys := s.shard.ShardKeys(id)
	pipe := s.shard.Redis.Pipeline() // not MULTI: a full Redis refuses it
	meta := pipe.HMGet(ctx, keys[shard.MetaKey], "version", "lead")
	oldest := pipe.ZRangeWithScores(ctx, keys[shard.InDoubtKey], 0, 0)
	unbacked := pipe.ZCard(ctx, keys[shard.UnbackedKey])
	head, cancel := context.WithTimeout(ctx, pieceFor)
	defer cancel()
	if _, err := pipe.Exec(head); err != nil {
		return nil, shard.Explain(err)
	}
	if meta.Val()[0] == nil {
		return nil, shard.ErrNoSale
	}
	o := &Overview{Sum: record.Cell{SKU: "*"}, Balanced: true, Unbacked: unbacked.Val(), Lead: time.Duration(leadOf(meta.Val()[1])) * time.Millisecond}
	if z := oldest.Val(); len(z) > 0 {
		o.OldestInDoubt = time.UnixMilli(int64(z[0].Score) - leadOf(meta.Val()[1]))
	}
	var unreadable error
	err := s.EachCell(ctx, id, func(name, text string) {
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
