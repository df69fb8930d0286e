package reservation

import (
	"context"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Tallied is a cell, with its returned and adjusted units.
type Tallied struct {
	record.Cell
	// Returned are units that were confirmed once and have come back.
	Returned int64 `json:"returned"`
	// Adjusted are the units added to the stock, or removed from it, other than by the
	// file: by `stock add`, and by returns that do not go back on sale. Stock minus
	// Adjusted is what the file has loaded.
	Adjusted int64 `json:"adjusted"`
}

// Tally is where the units of a sale are, all at one moment.
type Tally struct {
	ID       string      `json:"id"`
	Status   sale.Status `json:"status"`
	StartsAt time.Time   `json:"starts_at"`
	EndsAt   time.Time   `json:"ends_at"`
	// At is when it was made, by the sale's clock, and Seq the journal's newest number
	// then.
	At  time.Time `json:"at"`
	Seq int64     `json:"seq"`
	// Final says that the sale is closed and no hold is open: only a return can still
	// change a number.
	Final    bool      `json:"final"`
	Items    []Tallied `json:"items"`
	Balanced bool      `json:"balanced"`
	// HeldUntil is the last deadline of all holds; zero: none is held.
	HeldUntil time.Time `json:"held_until,omitzero"`
	// Unbacked counts orders that the shop took without stock.
	Unbacked int64 `json:"unbacked,omitempty"`
}

// Sum adds up all cells.
func (t *Tally) Sum() (sum Tallied) {
	for _, c := range t.Items {
		sum.Add(c.Cell)
		sum.Returned += c.Returned
		sum.Adjusted += c.Adjusted
	}
	return sum
}

// tallyTries bounds how often a tally is tried while the sale changes.
const tallyTries = 20

// Tally counts a sale. It fails with a shard.ErrRefused if the sale sells so fast that it
// changes during every try.
func (s *Store) Tally(ctx context.Context, id string) (*Tally, error) {
	for range tallyTries {
		before, err := s.place(ctx, id)
		if err != nil {
			return nil, err
		}
		t, err := s.tally(ctx, id, before.lead)
		if err != nil {
			return nil, err
		}
		after, err := s.place(ctx, id)
		if err != nil {
			return nil, err
		}
		if before.seq == after.seq && before.epoch == after.epoch {
			t.Seq, t.At = after.seq, s.journal.JournalNow(id, after.clock, after.lead)
			return t, nil
		}
	}
	return nil, shard.Refused("sale %s moves while it is counted: pause or close it, or ask again when less happens", id)
}

// journalPlace is the position of a shard's journal and clock.
type journalPlace struct{ epoch, seq, clock, lead int64 }

func (s *Store) place(ctx context.Context, id string) (p journalPlace, err error) {
	meta, err := s.shard.Data(id).Meta(ctx, "epoch", "seq", "clock", "lead")
	if err != nil {
		return p, err
	}
	return journalPlace{meta.Number(0), meta.Number(1), meta.Number(2), meta.Number(3)}, nil
}

// tally counts once; it may read values of different moments.
func (s *Store) tally(ctx context.Context, id string, lead int64) (*Tally, error) {
	file, err := s.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	b, err := s.SaleStock(ctx, id)
	if err != nil {
		return nil, err
	}
	returned, err := s.returned(ctx, id)
	if err != nil {
		return nil, err
	}
	last, held, err := s.shard.Data(id).Last(ctx, shard.DeadlinesKey)
	if err != nil {
		return nil, err
	}
	t := &Tally{ID: id, Status: b.Status, StartsAt: b.StartsAt, EndsAt: b.EndsAt, Balanced: b.Balanced, Unbacked: b.Unbacked, Items: make([]Tallied, len(b.Items))}
	if held {
		t.HeldUntil = time.UnixMilli(last.Score - lead)
	}
	loaded := file.Sale.Cells()
	for i, c := range b.Items {
		cell := sale.Cell(c.SKU, c.Region)
		t.Items[i] = Tallied{Cell: c, Returned: returned[cell], Adjusted: c.Stock - loaded[cell]}
	}
	sum := t.Sum()
	t.Final = b.Status == sale.Closed && sum.Held == 0 && sum.InDoubt == 0 && b.Unbacked == 0
	return t, nil
}

// returned sums up the returned units by cell.
func (s *Store) returned(ctx context.Context, id string) (map[string]int64, error) {
	const page = 1000
	units := make(map[string]int64)
	seen := make(map[string]bool)
	var asking []string
	ask := func() error {
		found, err := s.records(ctx, id, asking)
		for _, r := range found {
			for _, l := range r.Returned {
				units[l.Cell()] += l.Quantity
			}
		}
		asking = asking[:0]
		return err
	}
	err := s.shard.Data(id).Each(ctx, shard.ReturnsKey, "", page, func(field, _ string) error {
		if name, _, _ := strings.Cut(field, "|"); !seen[name] { // reservation|return
			seen[name] = true
			if asking = append(asking, name); len(asking) == page {
				return ask()
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return units, ask()
}
