package command

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
)

// askStock runs the query of a sale file. The command runs it, never the server: only the
// command's machine needs to reach the shop's database and to know its password.
func askStock(f sale.StockFrom) (*sale.Table, error) {
	dsn, err := fillAddress("dsn", f.DSN)
	if err != nil {
		return nil, err
	}
	db, err := openStock(dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), f.Timeout)
	defer cancel()
	t, err := queryStock(ctx, db, f.Query)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("the shop's database has not answered within %v: make the query faster, or give it longer with `timeout`", f.Timeout)
	}
	return t, err
}

// fillAddress fills in the placeholders of an address. It says which one is empty, and
// repeats nothing else.
func fillAddress(name, address string) (string, error) {
	known := caddy.NewReplacer()
	var missing error
	filled, err := known.ReplaceFunc(address, func(placeholder string, value any) (any, error) {
		if value == nil || value == "" {
			missing = fmt.Errorf("%s: {%s} is empty: set the variable, or write the file, before the command runs", name, placeholder)
			if !strings.HasPrefix(placeholder, "env.") && !strings.HasPrefix(placeholder, "file.") {
				missing = errors.New(name + ": it has a placeholder that is not known: there are {env.NAME} and {file./path}; write a brace that is none as \\{ or %7B")
			}
			return nil, missing
		}
		return value, nil
	})
	if missing != nil {
		return "", missing
	}
	return filled, err
}

// openStock opens the database of an address.
func openStock(dsn string) (*sql.DB, error) {
	kinds := make(map[string]bool)
	for _, info := range caddy.GetModules(app.LedgersNamespace) {
		kind, ok := info.New().(app.StockDatabase)
		if !ok {
			continue
		}
		if kind.OpensStock(dsn) {
			return kind.OpenStock(dsn)
		}
		kinds[info.ID.Name()] = true
	}
	if len(kinds) == 0 {
		return nil, errors.New("dsn: this Caddy was built without a database from which stock can be taken")
	}
	return nil, fmt.Errorf("dsn: it is the address of no database that this Caddy knows: there are %s, as in postgres://user:{env.PASSWORD}@host/database, mysql://user:{env.PASSWORD}@host/database or sqlite:/path/to/file",
		strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
}

// queryStock runs a query in a transaction that only reads, and returns its rows, one
// more than a sale may have if there are too many.
func queryStock(ctx context.Context, db *sql.DB, query string) (*sale.Table, error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("the shop's database does not answer: %w", err)
	}
	defer tx.Rollback()
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("the query fails: %w", err)
	}
	defer rows.Close()
	t := new(sale.Table)
	if t.Columns, err = rows.Columns(); err != nil {
		return nil, fmt.Errorf("the query fails: %w", err)
	}
	for len(t.Rows) <= sale.MaxItems && rows.Next() {
		values, into := make([]any, len(t.Columns)), make([]any, len(t.Columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, fmt.Errorf("the query fails: %w", err)
		}
		t.Rows = append(t.Rows, values)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("the query fails: %w", err)
	}
	return t, nil
}

// moving takes over what a shop's own script has sold so far. The command reads the shop's
// Redis, never the server.
type moving struct {
	c      *call
	from   sale.MoveFrom
	source app.MoveInSource // nil: not asked
	seen   *sale.MoveSeen
	before bool // the sale has taken over everything in an earlier apply
}

func (m *moving) close() {
	if m.source != nil {
		m.source.Close()
	}
}

// ask says what the keys of a file say. They are read once: a sale that has taken them over
// keeps the stock that it has loaded then.
func (m *moving) ask(from sale.MoveFrom) (*sale.MovedStock, error) {
	m.from = from
	r, err := m.c.request(http.MethodGet, "sales/"+segment(from.Sale), nil)
	if err != nil {
		return nil, err
	}
	if r.status != http.StatusNotFound {
		var shown adminapi.SaleShown
		switch err := r.read(http.MethodGet, &shown); {
		case err != nil:
			return nil, err
		case shown.MovedIn != nil && shown.MovedIn.Done:
			m.before = true
			return m.keep(shown.MovedIn)
		case shown.Status != sale.Draft:
			return nil, fmt.Errorf("the sale is %s, and did not take its stock from a Redis when it was a draft: write `stock` into the items", shown.Status)
		}
	}
	if from.Stock != nil {
		keys := *from.Stock
		if keys.Redis, err = fillAddress("stock_from.redis", keys.Redis); err != nil {
			return nil, err
		}
		from.Stock = &keys
	}
	if from.Bought != nil {
		keys := *from.Bought
		if keys.Redis, err = fillAddress("bought_from.redis", keys.Redis); err != nil {
			return nil, err
		}
		from.Bought = &keys
	}
	if m.source, err = app.OpenMoveIn(from); err != nil {
		return nil, err
	}
	done := m.c.working("reading the shop's Redis")
	seen, moved, err := m.source.Look(m.c.cmd.Context())
	done()
	m.seen = seen
	return moved, err
}

// keep is the stock that the sale has loaded when it took it over.
func (m *moving) keep(was *adminapi.SaleMovedIn) (*sale.MovedStock, error) {
	moved := &sale.MovedStock{Stock: make(map[string]int64, len(m.from.Counted)), In: was.MovedIn}
	for _, sku := range m.from.Counted {
		units, ok := was.Loaded[sku]
		if !ok {
			return nil, fmt.Errorf("stock_from: item %s is new, and the shop's Redis is read only once: write its stock into the file", sku)
		}
		moved.Stock[sku] = units
	}
	return moved, nil
}

// shownItems is how many items a report lists.
const shownItems = 50

// report says what was understood.
func (m *moving) report(next *sale.Sale) {
	c := m.c
	if m.before {
		c.printf("what the shop's Redis has was taken over before, and is not read again\n")
	}
	if m.seen == nil {
		return
	}
	if len(m.seen.Counted) > 0 && !c.flag("json") {
		t := c.table("SKU", "KEY", "IS", "LEFT", "BOUGHT", "LOADED")
		for _, k := range m.seen.Counted[:min(len(m.seen.Counted), shownItems)] {
			t.row(k.SKU, strconv.QuoteToASCII(k.Key), k.Form, decimal(k.Left), decimal(m.seen.Bought[k.SKU]), decimal(k.Left+m.seen.Bought[k.SKU]))
		}
		_ = t.print()
		if more := len(m.seen.Counted) - shownItems; more > 0 {
			c.printf("and %d more items\n", more)
		}
	}
	for _, k := range m.seen.Counted {
		if bought := m.seen.Bought[k.SKU]; k.Ordered >= 0 && m.from.Bought != nil && k.Ordered != bought {
			c.printf("warning: item %s: the shop's Redis counts %d units as ordered, and bought_from has buyers of %d: the limits go on without the difference\n", k.SKU, k.Ordered, bought)
		}
	}
	if m.from.Bought == nil {
		c.printf("without bought_from nothing is known of what buyers have bought: limits begin at 0\n")
		return
	}
	c.printf("%d purchases with %d units", m.seen.Purchases, m.seen.Units)
	if m.seen.Skipped > 0 {
		c.printf("; %d records of other items, of 0 units or in the form of skip are left out", m.seen.Skipped)
	}
	c.printf("\n")
	for _, p := range m.seen.Examples {
		c.printf("  such as: %s %s has bought %d of %s\n", m.from.Bought.Identity, strconv.Quote(p.Buyer), p.Units, p.SKU)
	}
	for _, l := range next.Limits {
		for kind := range l.Per.All {
			switch {
			case l.Every == "order":
			case kind != m.from.Bought.Identity:
				c.printf("warning: limit %s: begins at 0 for each %s: bought_from says only the %s of a buyer\n", l, kind, m.from.Bought.Identity)
			case l.Every != "sale":
				c.printf("limit %s: what was bought before counts as bought now\n", l)
			}
		}
	}
}

// pending reports whether purchases are still to be entered.
func (m *moving) pending(next *sale.Sale) bool {
	return m.seen != nil && next.MovedIn != nil && !next.MovedIn.Done
}

// enter enters the purchases into the draft, and returns the file that says so.
func (m *moving) enter(next *sale.Sale) ([]byte, error) {
	done := m.c.working("entering what was bought before")
	defer done()
	given := int64(0)
	err := m.source.Each(m.c.cmd.Context(), adminapi.MaxMoveIn, func(some []sale.MovePurchase) error {
		var ask adminapi.MoveIn
		for _, p := range some {
			ask.Purchases = append(ask.Purchases, adminapi.BoughtBefore{
				Name: p.Name, Kind: m.from.Bought.Identity, Value: p.Buyer, Orders: p.Orders, Lines: []sale.Line{{SKU: p.SKU, Quantity: p.Units}},
			})
		}
		body, err := json.Marshal(ask)
		if err != nil {
			return err
		}
		var entered adminapi.MovedIn
		if _, err := m.c.fetch(http.MethodPost, "sales/"+segment(next.ID)+"/move_in", body, &entered); err != nil {
			return err
		}
		given += int64(len(some))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%d of %d purchases are entered; sale %s does not open before all are, and applying the file again goes on: %w", given, next.MovedIn.Purchases, next.ID, err)
	}
	all := *next
	all.MovedIn = &sale.MovedIn{Purchases: next.MovedIn.Purchases, Units: next.MovedIn.Units, Done: true}
	return json.Marshal(&all)
}

// showMirror says how the shop's own Redis follows a sale.
func (c *call) showMirror(m *adminapi.SaleMirror) {
	switch {
	case m == nil:
		return
	case !m.Running:
		c.printf("%s", c.paint(terminal.Warn, fmt.Sprintf("mirror: no edge writes the shop's Redis now, the last did at %s\n", adminapi.LocalTime(m.At))))
	case m.Error != "":
		c.printf("%s", c.paint(terminal.Bad, fmt.Sprintf("mirror: the shop's Redis lacks changes since %s: %s\n", adminapi.LocalTime(m.Behind), m.Error)))
	default:
		c.printf("mirror: the shop's Redis follows\n")
	}
	if m.Drift > 0 {
		c.printf("%s", c.paint(terminal.Warn, fmt.Sprintf("mirror: something else has written its keys %d times, the last time at %s: %s had %s, and the mirror had written %s\n",
			m.Drift, adminapi.LocalTime(m.DriftAt), m.DriftKey, m.Had, m.Wrote)))
	}
}
