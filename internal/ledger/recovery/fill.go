package recovery

import (
	"context"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
)

// rebuiltFrom are the kinds of movements that say what the records of a ledger do not.
var rebuiltFrom = []string{"loaded", "adjusted", "returned"}

// fill writes the whole sale into a restoration; nil: it only checks that this is
// possible. It fails when the ledger is inconsistent.
func (b *rebuilding) fill(ctx context.Context, r *Restoration) error {
	image, waited := NewImage(b.life.Now, b.file.EndsAt), newPeople()
	err := b.ledger.Reservations(ctx, b.id, func(one *ledger.Reservation) error {
		binds := image.Add(one.ID, &one.Record)
		waited.offer(one)
		if r == nil {
			return nil
		}
		if b.forgets && one.Over(b.life.Now) {
			r.Forget(&one.Record)
			return nil
		}
		return r.Reservation(ctx, one.ID, &one.Record, binds)
	})
	if err != nil {
		return err
	}
	b.out.Reservations, b.out.Until, b.out.Limits = image.States, image.Latest, 0
	stock, err := b.fillStockKinds(ctx, r)
	if err != nil {
		return err
	}
	if err := b.fillCells(ctx, r, image, stock); err != nil {
		return err
	}
	if err := b.fillPeople(ctx, r, waited); err != nil {
		return err
	}
	for field, ids := range image.Others {
		if r == nil {
			break
		}
		if err := r.Others(ctx, field, ids); err != nil {
			return err
		}
	}
	for field, c := range image.Limits {
		b.out.Limits++
		if r == nil {
			continue
		}
		if err := r.Limit(ctx, field, c); err != nil {
			return err
		}
	}
	for field, held := range image.Unpaid {
		if r == nil {
			break
		}
		if err := r.Unpaid(ctx, field, held); err != nil {
			return err
		}
	}
	return nil
}

// fillStockKinds restores adjustments and returns, and sums up the loaded stock.
func (b *rebuilding) fillStockKinds(ctx context.Context, r *Restoration) (stock *record.Totals, err error) {
	stock = record.NewStock()
	adjustments := make(map[string]bool)
	b.out.Returns = 0
	var last *journal.Movement // a return whose units may have left the stock
	var lastEpoch int64
	putReturn := func(restock bool) error {
		m := last
		last = nil
		if m == nil {
			return nil
		}
		b.out.Returns++
		if r == nil {
			return nil
		}
		return r.Return(ctx, m.ID, m.ReturnID(), restock, m.Lines, m.Record.Returned)
	}
	err = b.ledger.MovementsOfKinds(ctx, b.id, rebuiltFrom, func(epoch int64, m *journal.Movement) error {
		if m.Time.After(b.out.Until) {
			b.out.Until = m.Time
		}
		spoilt := epoch == lastEpoch && m.OfReturn(last)
		if err := putReturn(!spoilt); err != nil {
			return err
		}
		if m.Kind == "returned" {
			if m.Record == nil {
				return fmt.Errorf("movement %d of epoch %d (returned %s): %w", m.Seq, epoch, m.ID, ledger.ErrNoRecord)
			}
			last, lastEpoch = m, epoch
			return nil
		}
		stock.AddStock(m.Lines)
		if m.Kind == "adjusted" && !spoilt && len(m.Lines) == 1 {
			adjustments[m.ID] = true
			if r != nil {
				return r.Adjustment(ctx, m.ID, m.Lines[0], stock.Cells[m.Lines[0].Cell].Stock)
			}
		}
		return nil
	})
	if err == nil {
		err = putReturn(true)
	}
	b.out.Adjustments = len(adjustments)
	return stock, err
}

// fillCells puts the cells back, if the stock that was loaded, the ledger's cells and
// its reservations say the same.
func (b *rebuilding) fillCells(ctx context.Context, r *Restoration, image *Image, loaded *record.Totals) error {
	rows, err := b.ledger.Stock(ctx, b.id)
	if err != nil {
		return err
	}
	cells := make(map[string]ledger.Cell)
	for i := range b.file.Items {
		for _, name := range b.file.Items[i].Cells() {
			cells[name] = ledger.Cell{Name: name}
		}
	}
	for _, c := range rows {
		if _, listed := cells[c.Name]; listed || c != (ledger.Cell{Name: c.Name}) {
			cells[c.Name] = c
		}
	}
	for name := range image.Cells {
		if _, ok := cells[name]; !ok {
			cells[name] = ledger.Cell{Name: name}
		}
	}
	b.out.Cells, b.oversold = len(cells), nil
	for name, c := range cells {
		var have record.Cell
		if counted := image.Cells[name]; counted != nil {
			have = *counted
		}
		if stock := loaded.Cells[name]; stock != nil {
			have.Stock = stock.Stock
		}
		have.Balance()
		if want := ledger.CellOf(name, &have); want != c {
			return fmt.Errorf("%w: its cell %s is %+v, its movements and reservations say %+v", ledger.ErrChanged, name, c, want)
		}
		if c.Available < 0 {
			b.oversold = append(b.oversold, c)
		}
		if r == nil {
			continue
		}
		if err := r.Cell(ctx, name, have); err != nil {
			return err
		}
	}
	return nil
}

// advise writes the notes for the operator.
func (b *rebuilding) advise() {
	until := "before the sale's first reservation"
	if !b.out.Until.IsZero() {
		until = b.out.Until.Format(time.RFC3339)
	}
	b.note("Found: %s. The ledger has the sale's movements up to %s (entry %d).", foundText[b.out.Found], until, b.at.Seq)
	m := b.out.Missing
	switch {
	case b.out.Found == FoundAll && m.AtLeast == 0:
	case m.Seen == 0:
		b.note("How much is missing is not known: this edge has not seen the journal itself. Whatever happened after that may be missing. " +
			"If an edge that does not run has a ledger of its own, start it: its log and `caddy stockgate doctor` there say if that one has more.")
	case m.AtLeast > 0:
		b.note("This edge has seen the journal up to entry %d: at least %d movements are missing. How many more is not known: other edges may have seen more.", m.Seen, m.AtLeast)
	default:
		b.note("How much is missing is not known: this edge has seen nothing of the journal that is missing, but other edges may have.")
	}
	if !m.Looked.IsZero() && b.out.Found != FoundAll {
		b.note("When it looked last, at %s, the ledger was %d movements behind, the oldest for %v.", m.Looked.Format(time.RFC3339), m.Waiting,
			time.Duration(m.Oldest)*time.Millisecond)
	}
	for _, c := range b.oversold {
		b.note("%d units of %s are sold beyond its stock, as the ledger had it: none of it is sold before as many have come back or been added.", -c.Available, c.Name)
	}
	if b.out.Status == sale.Paused {
		b.note("The sale is paused. Compare it with the orders that the shop has, and confirm what is missing, before `caddy stockgate sale open %s`: "+
			"units of orders that never reached the ledger look available.", b.id)
	}
}
