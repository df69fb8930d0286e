package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// driftEvery is how often the cells of a sale are checked: an alarm is raised within twice this
// time. A cell costs about a microsecond, so large sales are checked less often: a thousand
// cells a second.
const (
	driftEvery = 4 * time.Second
	cellEvery  = time.Millisecond
)

// driftPause is the time between two checks of a sale with this many cells.
func driftPause(cells int) time.Duration {
	return max(driftEvery, time.Duration(cells)*cellEvery)
}

// The ways in which cells can drift.
const (
	driftBalance = "balance"
	driftLedger  = "ledger"
)

// DriftMetrics receives how many cells of a sale are wrong. Implementations must be
// safe for concurrent use.
type DriftMetrics interface {
	// Drift reports how many cells contradict themselves (what balance: their columns do not
	// add up, or one is negative), or differ from the ledger (what ledger).
	Drift(sale, what string, cells int)
	// NoDrift reports that the sale is no longer checked.
	NoDrift(sale, what string)
}

// drift is the state of one check of one sale's cells.
type drift struct {
	sale, what string
	on         bool      // the alarm is on
	next       time.Time // when the cells are checked again
}

// say reports drifting cells, once when the drift begins and once when it has ended.
func (d *drift) say(log *zap.Logger, m DriftMetrics, cells []string) {
	switch {
	case len(cells) > 0 && !d.on:
		const some = 5
		log.Error("the stock of a sale does not add up: run `caddy stockgate reconcile "+d.sale+"`", zap.String("sale", d.sale),
			zap.String("against", d.what), zap.Int("cells", len(cells)), zap.Strings("first", cells[:min(len(cells), some)]))
	case len(cells) == 0 && d.on:
		log.Info("the stock of the sale adds up again", zap.String("sale", d.sale), zap.String("against", d.what))
	}
	d.on = len(cells) > 0
	m.Drift(d.sale, d.what, len(cells))
}

// unbalanced reports whether the columns of a cell do not add up, or it cannot be read.
func unbalanced(text string) bool {
	c, err := record.ParseCell(text)
	return err != nil || !c.Balanced()
}

// errMoved says that the cells could not be compared at one position.
var errMoved = errors.New("the ledger or the sale has moved on")

// compareCells compares the cells in Redis with the ledger and the journal after it,
// each chunk up to exactly the movement at which it was read.
func (s *following) compareCells(ctx context.Context) ([]string, error) {
	stock, err := s.ledger.Stock(ctx, s.sale)
	if err != nil {
		return nil, err
	}
	// a batch may have taken longer than the lease: then another drainer has drained this
	if at, err := s.ledger.Position(ctx, s.sale); err != nil || at != s.at {
		return nil, cmp.Or(err, errMoved)
	}
	s.pause = driftPause(len(stock))
	must := make(map[string]*Cell, len(stock))
	for i := range stock {
		must[stock[i].Name] = &stock[i]
	}
	cells := slices.Collect(maps.Keys(must))
	err = s.stock.EachCell(ctx, s.sale, func(name, _ string) {
		if must[name] == nil {
			cells = append(cells, name)
		}
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(cells)
	var wrong []string
	at := s.at.Seq
	for names := range slices.Chunk(slices.Compact(cells), reservation.MaxExamine) {
		asked := make([]reservation.Named, len(names))
		for i, name := range names {
			asked[i] = reservation.Named{Part: reservation.PartCell, Name: name}
		}
		seen, err := s.stock.Examine(ctx, s.sale, asked)
		if err != nil {
			return nil, err
		}
		if seen.Epoch != s.at.Epoch {
			return nil, errMoved // the drainer reports it
		}
		if at, err = s.foldCells(ctx, must, at, seen.Seq); err != nil {
			return nil, err
		}
		for i, name := range names {
			want := Cell{}
			if c := must[name]; c != nil {
				want = *c
			}
			if text := seen.Values[i].Text; !sameCell(text, want) {
				wrong = append(wrong, fmt.Sprintf("%s: %.100q, the ledger says %d %d %d %d %d", name, text,
					want.Stock, want.Available, want.Held, want.InDoubt, want.Confirmed))
			}
		}
	}
	return wrong, nil
}

// foldCells brings cells from one entry of the journal to another.
func (s *following) foldCells(ctx context.Context, cells map[string]*Cell, from, to int64) (int64, error) {
	for from < to {
		batch, err := s.journals.Movements(ctx, s.sale, from, int(min(to-from, batchMost)))
		if err != nil {
			return from, err
		}
		if len(batch) == 0 {
			return from, &journal.GapError{Sale: s.sale, Want: from + 1}
		}
		changes, err := Fold(batch)
		if err != nil {
			return from, err
		}
		for _, c := range changes.Cells {
			have := cells[c.Name]
			if have == nil {
				have = &Cell{Name: c.Name}
				cells[c.Name] = have
			}
			have.add(&c)
		}
		from = batch[len(batch)-1].Seq
	}
	return from, nil
}

// add adds what movements have changed.
func (c *Cell) add(change *Cell) {
	c.Stock += change.Stock
	c.Available += change.Available
	c.Held += change.Held
	c.InDoubt += change.InDoubt
	c.Confirmed += change.Confirmed
}

// sameCell reports whether a cell in Redis is as it should be. A missing cell has no units.
func sameCell(text string, want Cell) bool {
	if text == "" {
		want.Name = ""
		return want == Cell{}
	}
	c, err := record.ParseCell(text)
	return err == nil && want == CellOf(want.Name, &c)
}

// watch compares the cells when it is time to. A failure is retried: the drainer
// reports that Redis or the ledger does not answer.
func (s *following) watch(ctx context.Context) {
	if time.Since(s.watched) < max(driftEvery, s.pause) {
		return
	}
	s.watched = time.Now()
	call, cancel := context.WithTimeout(ctx, max(callFor, s.pause)) // pause is longer for a large sale
	defer cancel()
	wrong, err := s.compareCells(call)
	switch {
	case err == nil:
		s.drift.say(s.log, s.metrics, wrong)
	case ctx.Err() == nil:
		s.log.Debug("the cells could not be compared with the ledger", zap.String("sale", s.sale), zap.Error(err))
	}
}

// watchIdle compares the cells of an idle sale if this drainer has the sale or no drainer has
// it. It keeps the lease, so that one edge reports drift. It ignores an error of the
// database: nothing else needs the database while the sale is idle.
func (s *following) watchIdle(ctx context.Context, epoch int64) {
	if s.ours.IsZero() && time.Since(s.watched) < max(driftEvery, s.pause) {
		return
	}
	if !s.sure(epoch) {
		if ours, err := s.take(ctx); err != nil || !ours {
			s.watched = time.Now()
			s.lost()
			return
		}
	}
	s.watch(ctx)
}

// watchBalance checks that the cells of a sale add up, when it is time to. Every edge does this.
func (k *Trimmer) watchBalance(ctx context.Context, sale string) {
	d := k.drifts[sale]
	if d == nil {
		d = &drift{sale: sale, what: driftBalance}
		k.drifts[sale] = d
	}
	if time.Now().Before(d.next) {
		return
	}
	cells := 0
	var wrong []string
	err := k.cells.EachCell(ctx, sale, func(name, text string) {
		cells++
		if unbalanced(text) {
			wrong = append(wrong, fmt.Sprintf("%s: %.100q", name, text))
		}
	})
	d.next = time.Now().Add(driftPause(cells))
	if err != nil {
		return
	}
	slices.Sort(wrong)
	d.say(k.log, k.metrics, slices.Compact(wrong))
}
