package recovery

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Options say what Reconcile does.
type Options struct {
	// Repair repairs what can be repaired.
	Repair bool
	// By names the operator, for the journal.
	By string
	// Shop gives the shop's orders; nil: they are not compared.
	Shop *Shop
}

// run is one reconciliation of one sale.
type run struct {
	store  *reservation.Store
	ledger ledger.Ledger // nil: none
	sale   string
	options
	report  *Report
	history *history
	ahead   []journal.Movement // read, and not in the history yet

	listed     map[string]bool   // the cells of the sale's file
	skus       map[string]string // the SKU of each of them
	cells      map[string]string // the cell of each name of an item; empty: it has several
	bundles    bool              // the sale has some
	takenOut   map[string]int64  // units by adjustment; nil: not read yet
	suspects   map[reservation.Named]bool
	scanError  error
	tombstones map[string]int64 // by reservation, of those with a record
}

type options = Options

// Reconcile compares a sale in Redis with its history, and repairs it if o.Repair is set.
// It may run during the sale, and may be interrupted at any point: the next run does the
// rest. l is nil if there is no ledger. An error means that the comparison was not
// completed; the report then has what was found so far.
func Reconcile(ctx context.Context, store *reservation.Store, l ledger.Ledger, id string, o Options) (*Report, error) {
	r := &run{
		store: store, ledger: l, sale: id, options: o,
		report:     &Report{Sale: id, Run: runID(), Differences: []Difference{}},
		suspects:   make(map[reservation.Named]bool),
		tombstones: make(map[string]int64),
	}
	err := r.all(ctx)
	if errors.Is(err, errStop) {
		err = nil
	}
	r.report.Agrees = r.report.Left == 0 && err == nil
	return r.report, err
}

// runID names a run, in the order of time.
func runID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return time.Now().UTC().Format("20060102T150405.000000")
	}
	return id.String()
}

func (r *run) all(ctx context.Context) error {
	if err := r.store.Shard().CheckKeys(ctx, r.sale); err != nil {
		return err
	}
	if err := r.readFile(ctx); err != nil {
		return err
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	if err := r.scan(ctx); err != nil {
		return err
	}
	if err := r.resolve(ctx); err != nil {
		return err
	}
	for _, text := range r.history.contradictions {
		r.report.add(Difference{
			Kind: "journal", Text: "the movements contradict themselves: " + text,
			Cause:  "the operation met a reservation or a cell that had been changed or deleted in redis",
			Repair: "none: compare this reservation with the shop's order, then confirm, release or return it",
		})
	}
	return r.shop(ctx)
}

// readFile reads the cells of the sale's file: they exist even without units.
func (r *run) readFile(ctx context.Context) error {
	_, status, text, err := r.store.Journal().SaleDocument(ctx, r.sale)
	if err != nil {
		return err
	}
	if err := r.checkTakeOver(sale.Status(status)); err != nil {
		return err
	}
	r.listed, r.skus, r.cells = make(map[string]bool), make(map[string]string), make(map[string]string)
	file, err := sale.Decode([]byte(text))
	if err != nil {
		r.report.Notes = append(r.report.Notes, "the sale's file in redis cannot be read: which cells must be there without units is not known")
		return nil
	}
	r.unbundle(file)
	for _, item := range file.Items {
		if item.IsBundle() {
			continue
		}
		only := item.SKU
		for region := range item.Regions {
			only = sale.Cell(item.SKU, region)
		}
		if len(item.Regions) > 1 {
			only = ""
		}
		for _, name := range append([]string{item.SKU}, item.IDs...) {
			r.cells[name] = only
		}
		if len(item.Regions) == 0 {
			r.listed[item.SKU], r.skus[item.SKU] = true, item.SKU
		}
		for region := range item.Regions {
			cell := sale.Cell(item.SKU, region)
			r.listed[cell], r.skus[cell] = true, item.SKU
		}
	}
	return nil
}

// each yields everything in a part; errors are in scanError.
func (r *run) each(ctx context.Context, part reservation.ShardPart) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for cursor := uint64(0); ; {
			names, values, next, err := r.store.Scan(ctx, r.sale, part, cursor)
			if err != nil {
				r.scanError = err
				return
			}
			for i := range names {
				if !yield(names[i], values[i]) {
					return
				}
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

func (r *run) suspect(part reservation.ShardPart, name string) {
	r.suspects[reservation.Named{Part: part, Name: name}] = true
}
