package command

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/shopdb"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
)

// moving takes over what a shop has sold so far. The command reads the shop's Redis and
// database, never the server.
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
			return nil, tooLate(from, shown.Status)
		}
	}
	if from.Stock != nil {
		keys := *from.Stock
		if keys.Redis, err = shopdb.Fill("stock_from.redis", keys.Redis); err != nil {
			return nil, err
		}
		from.Stock = &keys
	}
	if from.Bought != nil {
		keys := *from.Bought
		if keys.Query != "" {
			keys.Rows = boughtRows(&keys)
		} else if keys.Redis, err = shopdb.Fill("bought_from.redis", keys.Redis); err != nil {
			return nil, err
		}
		from.Bought = &keys
	}
	if m.source, err = app.OpenMoveIn(from); err != nil {
		return nil, err
	}
	done := m.c.working("reading what the shop has sold")
	seen, moved, err := m.source.Look(m.c.cmd.Context())
	done()
	m.seen = seen
	return moved, err
}

// tooLate says why a sale that is no draft takes nothing over.
func tooLate(from sale.MoveFrom, status sale.Status) error {
	if from.Stock != nil {
		return fmt.Errorf("the sale is %s, and did not take its stock from a Redis when it was a draft: write `stock` into the items", status)
	}
	return fmt.Errorf("bought_from: the sale is %s, and what buyers have bought before is taken over only into a draft: leave bought_from out of the file", status)
}

// boughtRows runs the query of purchases.
func boughtRows(b *sale.BoughtKeys) sale.BoughtRows {
	return func(ctx context.Context, within time.Duration, columns func([]string) error, row func([]any) error) error {
		q := shopdb.Query{Name: "dsn", Address: b.DSN, Text: b.Query, Timeout: within, Longer: "`timeout`"}
		return q.Run(ctx, columns, row)
	}
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
		c.printf("what was sold before was taken over already, and is not read again\n")
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
