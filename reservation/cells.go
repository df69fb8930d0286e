package reservation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Cell is the stock of one item, in one region where it has regions.
type Cell struct {
	SKU       string `json:"sku"`
	Region    string `json:"region,omitempty"`
	Stock     int64  `json:"stock"`
	Available int64  `json:"available"`
	Held      int64  `json:"held"`
	InDoubt   int64  `json:"in_doubt"`
	Confirmed int64  `json:"confirmed"`
}

// Balanced says whether every unit of the cell is somewhere.
func (c Cell) Balanced() bool {
	return c.Stock == c.Available+c.Held+c.InDoubt+c.Confirmed &&
		c.Available >= 0 && c.Held >= 0 && c.InDoubt >= 0 && c.Confirmed >= 0
}

// ParseCell reads a cell as it is kept.
func ParseCell(packed string) (Cell, error) {
	var n [5]int64
	for i := range n {
		word, rest, more := strings.Cut(packed, " ")
		v, err := strconv.ParseInt(word, 10, 64)
		if err != nil || more != (i < len(n)-1) {
			return Cell{}, errors.New("its numbers cannot be read")
		}
		n[i], packed = v, rest
	}
	return Cell{Stock: n[0], Available: n[1], Held: n[2], InDoubt: n[3], Confirmed: n[4]}, nil
}

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
	Sum      Cell
	Balanced bool // in every cell, see Books
	// OldestInDoubt is since when the oldest unresolved doubt exists; zero: none.
	OldestInDoubt time.Time
	// Unbacked counts orders that the shop took without stock.
	Unbacked int64
	// Lead is how far the sale's clock of deadlines is ahead of Redis's own time.
	Lead time.Duration
}

// Overview looks at a sale's cells as EachCell does, and gives each to yield by its name.
func (s *Store) Overview(ctx context.Context, id string, yield func(name string, c Cell)) (*Overview, error) {
	keys := s.shardKeys(id)
	pipe := s.redis.Pipeline() // not MULTI: a full Redis refuses it
	meta := pipe.HMGet(ctx, keys[metaKey], "version", "lead")
	oldest := pipe.ZRangeWithScores(ctx, keys[inDoubtKey], 0, 0)
	unbacked := pipe.ZCard(ctx, keys[unbackedKey])
	head, cancel := context.WithTimeout(ctx, pieceFor)
	defer cancel()
	if _, err := pipe.Exec(head); err != nil {
		return nil, explain(err)
	}
	if meta.Val()[0] == nil {
		return nil, ErrNoSale
	}
	o := &Overview{Sum: Cell{SKU: "*"}, Balanced: true, Unbacked: unbacked.Val(), Lead: time.Duration(leadOf(meta.Val()[1])) * time.Millisecond}
	if z := oldest.Val(); len(z) > 0 {
		o.OldestInDoubt = time.UnixMilli(int64(z[0].Score) - leadOf(meta.Val()[1]))
	}
	var unreadable error
	err := s.EachCell(ctx, id, func(name, text string) {
		c, err := ParseCell(text)
		if err != nil {
			unreadable = fmt.Errorf("cell %s of sale %s: %w", name, id, err)
			return
		}
		o.Balanced = o.Balanced && c.Balanced()
		o.Sum.add(c)
		yield(name, c)
	})
	if err = cmp.Or(err, unreadable); err != nil {
		return nil, err
	}
	return o, nil
}

func (c *Cell) add(other Cell) {
	c.Stock += other.Stock
	c.Available += other.Available
	c.Held += other.Held
	c.InDoubt += other.InDoubt
	c.Confirmed += other.Confirmed
}
