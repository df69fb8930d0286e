package movein

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

// boughtColumns are the columns of a query of purchases, in any order and case.
var boughtColumns = []string{"buyer", "units", "sku", "ref"}

// rows reads purchases by the query of a file.
type rows struct {
	from   *sale.MoveFrom
	listed map[string]bool // by SKU
	only   string          // the SKU, where the file has a single one
}

func newRows(from *sale.MoveFrom) *rows {
	r := &rows{from: from, listed: from.SKUs()}
	if len(r.listed) == 1 {
		for r.only = range r.listed {
		}
	}
	return r
}

func (r *rows) scan(ctx context.Context, within time.Duration, each func([]sale.MovePurchase) error) (skipped int64, err error) {
	s := &rowScan{rows: r, seen: &once{seed: maphash.MakeSeed(), known: make(map[uint64]struct{})}, each: each}
	err = r.from.Bought.Rows(ctx, within, s.columns, s.row)
	if err == nil && s.number == 0 && !r.from.Bought.AbsentIsNone {
		err = errors.New("the query gives no rows. If that means that nothing was sold, write `absent: none`")
	}
	if err == nil {
		err = s.flush()
	}
	return s.skipped, err
}

// rowScan is one run of a query.
type rowScan struct {
	*rows
	at      map[string]int
	number  int
	seen    *once
	some    []sale.MovePurchase
	skipped int64
	each    func([]sale.MovePurchase) error
}

func (s *rowScan) columns(names []string) error {
	s.at = make(map[string]int, len(names))
	for i, name := range names {
		name = strings.ToLower(name)
		if !slices.Contains(boughtColumns, name) {
			return fmt.Errorf("the query gives a column %s: there are buyer, units, sku and ref; name it with AS, or leave it out", shown(name))
		}
		if _, twice := s.at[name]; twice {
			return fmt.Errorf("the query gives the column %s twice", name)
		}
		s.at[name] = i
	}
	for _, name := range boughtColumns[:3] {
		if _, given := s.at[name]; !given && (name != "sku" || s.only == "") {
			return fmt.Errorf("the query gives no column %s: name it with AS", name)
		}
	}
	return nil
}

func (s *rowScan) row(values []any) error {
	s.number++
	p, err := s.read(values)
	if err != nil {
		return fmt.Errorf("row %d of the query %w", s.number, err)
	}
	if s.from.Regional[p.SKU] {
		return fmt.Errorf("row %d of the query is of item %s, which has regions: what was bought is taken over only for items without", s.number, shown(p.SKU))
	}
	if !s.listed[p.SKU] || p.Units == 0 {
		s.skipped++
		return nil
	}
	isNew, err := s.seen.isNew(p.Name)
	switch {
	case err != nil:
		return err
	case !isNew:
		return fmt.Errorf("row %d of the query has %s: sum the units up with GROUP BY, or give each purchase a ref of its own", s.number, s.repeats(&p))
	}
	if s.some = append(s.some, p); len(s.some) < page {
		return nil
	}
	return s.flush()
}

// repeats says what a row has that another one had.
func (s *rowScan) repeats(p *sale.MovePurchase) string {
	if _, named := s.at["ref"]; named {
		return "a ref, a buyer and an item that another row has"
	}
	return fmt.Sprintf("a buyer that another row of item %s has", shown(p.SKU))
}

func (s *rowScan) flush() error {
	if len(s.some) == 0 {
		return nil
	}
	some := s.some
	s.some = nil
	return s.each(some)
}

// read makes a purchase of a row. Its name is made of what tells it from others, so that the same row is the same purchase
// whatever the order of the rows is.
func (s *rowScan) read(values []any) (sale.MovePurchase, error) {
	p := sale.MovePurchase{SKU: s.only}
	texts := map[string]string{}
	for _, name := range []string{"buyer", "sku", "ref"} {
		i, given := s.at[name]
		if !given {
			continue
		}
		text, err := sale.QueryText(values[i])
		if err != nil {
			return p, fmt.Errorf("has a wrong %s: it %w", name, err)
		}
		texts[name] = text
	}
	p.Buyer = texts["buyer"]
	if _, given := s.at["sku"]; given {
		if p.SKU = texts["sku"]; !sale.IsName(p.SKU) {
			return p, fmt.Errorf("has the sku %s: it must be 1 to 128 printable ASCII characters without space", shown(p.SKU))
		}
	}
	units, err := sale.QueryUnits(values[s.at["units"]])
	if err == nil && units > sale.MaxUnits {
		err = fmt.Errorf("must be at most %d", int64(sale.MaxUnits))
	}
	if err != nil {
		return p, fmt.Errorf("has wrong units: they %w", err)
	}
	p.Units = units
	p.Name = strings.Join([]string{"query", texts["ref"], p.SKU, p.Buyer}, "\x00")
	if len(p.Name) > maxName {
		return p, errors.New("has a buyer, sku and ref that are too long")
	}
	return p, complete(&p, s.from.Bought)
}
