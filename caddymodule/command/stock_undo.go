package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
)

// undoPrefix begins the id of the change that takes another one back.
const undoPrefix = "undo-"

func undoStockCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undo <sale> [--id <id>] [--yes]",
		Short: "Takes back the last 'stock add' of a sale",
		Long: `
Takes back what the last 'stock add' of a sale has changed, or the one that --id names,
by a change in the other direction, which the journal has too. It is refused where fewer
of the units are still available: what is held or sold stays. On a terminal it asks
first, unless --yes is given; in a script it does not ask. Once taken back, the same
command changes nothing: an earlier one must be named.

What a sale's file loads is changed by 'sale apply'.`,
		Example: "  $ caddy stockgate stock undo double11",
		RunE:    action(undoStock, "sale"),
	}
	cmd.Flags().String("id", "", "Id of the change (default: the last one)")
	cmd.Flags().BoolP("yes", "y", false, "Do not ask")
	return cmd
}

// stockMovement is a change of a cell's stock in the journal.
type stockMovement struct {
	Seq   int64     `json:"seq"`
	Kind  string    `json:"kind"`
	Time  time.Time `json:"time"`
	ID    string    `json:"id"`
	Cause string    `json:"cause"`
	Lines []struct {
		Cell  string `json:"cell"`
		Units int64  `json:"units"`
	} `json:"lines"`
}

func undoStock(c *call) error {
	changes, err := c.stockChanges(c.text("id"))
	if err != nil {
		return err
	}
	m := &changes[0]
	switch undone := len(changes) > 1; {
	case undone && c.text("id") != "":
		c.printf("%s was taken back before, on %s: nothing was changed\n", m.ID, adminapi.LocalTime(changes[1].Time))
		return nil
	case strings.HasPrefix(m.ID, undoPrefix):
		return fmt.Errorf("the last change of %s's stock has taken %s back already: name an earlier one with --id, as 'caddy stockgate journal tail %s' shows it", c.args[0], strings.TrimPrefix(m.ID, undoPrefix), c.args[0])
	case len(undoPrefix)+len(m.ID) > sale.MaxName:
		return fmt.Errorf("the id %s is too long to be named in another: take it back with 'stock add'", m.ID)
	}
	cell, units := m.Lines[0].Cell, m.Lines[0].Units
	sku, region, err := c.itemOf(cell)
	if err != nil {
		return err
	}
	if !c.flag("yes") && c.onTerminal() {
		if err := c.agreed(c.args[0], fmt.Sprintf("%+d units of %s, of %s (%s), are to be taken back.", units, cell, adminapi.LocalTime(m.Time), m.Cause)); err != nil {
			return err
		}
	}
	return c.changeStock(sku, adminapi.StockChange{ID: undoPrefix + m.ID, Delta: -units, Region: region})
}

// stockChanges finds the newest change by 'stock add', or the one with an id, and behind it the one that has taken it
// back, if there is one. It reads the journal backwards.
func (c *call) stockChanges(id string) ([]stockMovement, error) {
	var state adminapi.JournalState
	if _, err := c.fetch(http.MethodGet, "sales/"+segment(c.args[0])+"/journal", nil, &state); err != nil {
		return nil, err
	}
	var back *stockMovement
	for last := state.Last; last > 0; {
		after := max(last-adminapi.JournalPage+1, 0)
		page, err := c.stockPage(state.Epoch, after, last-after)
		if err != nil {
			return nil, err
		}
		for i := len(page) - 1; i >= 0; i-- {
			m := &page[i]
			switch {
			case m.Kind != "adjusted" || len(m.Lines) != 1 || i == 0 && after > 0 || isOfReturn(page, i):
			case id != "" && m.ID == undoPrefix+id:
				back = m
			case id != "" && m.ID == id && back != nil:
				return []stockMovement{*m, *back}, nil
			case id != "" && m.ID == id, id == "" && !isOfReconcile(m):
				return []stockMovement{*m}, nil
			}
		}
		if last = after + 1; after == 0 { // the first one of the page is the last of the next: what is before it tells what it is
			break
		}
	}
	if id != "" {
		return nil, fmt.Errorf("the journal of %s has no change of stock with the id %s", c.args[0], id)
	}
	return nil, fmt.Errorf("the stock of %s was not changed by 'stock add': its file is changed by 'sale apply'", c.args[0])
}

// stockPage reads movements behind a number. Those that neither journal nor ledger has are an error.
func (c *call) stockPage(epoch, after, limit int64) ([]stockMovement, error) {
	query := url.Values{"after": {decimal(after)}, "limit": {decimal(limit)}, "epoch": {decimal(epoch)}}
	var page adminapi.MovementPage[stockMovement]
	if _, err := c.fetch(http.MethodGet, "sales/"+segment(c.args[0])+"/journal/movements?"+query.Encode(), nil, &page); err != nil {
		return nil, fmt.Errorf("the change is not found in what is kept of the journal; give its id, item and units to 'stock add': %w", err)
	}
	return page.Movements, nil
}

// isOfReturn tells a 'stock add' from units that came back and are not sold again, which follow their return.
func isOfReturn(page []stockMovement, i int) bool {
	if i == 0 || page[i-1].Kind != "returned" {
		return false
	}
	returned, _, _ := strings.Cut(page[i-1].Cause, " ")
	return returned == page[i].ID
}

// isOfReconcile tells units that reconcile has taken out.
func isOfReconcile(m *stockMovement) bool { return strings.Contains(m.Cause, ", reconcile: order ") }

// itemOf returns the item and the region of a cell.
func (c *call) itemOf(cell string) (sku, region string, err error) {
	var shown adminapi.SaleShown
	if _, err := c.fetch(http.MethodGet, "sales/"+segment(c.args[0]), nil, &shown); err != nil {
		return "", "", err
	}
	for _, i := range shown.Items {
		if sale.Cell(i.SKU, i.Region) == cell {
			return i.SKU, i.Region, nil
		}
	}
	return "", "", fmt.Errorf("%s has no stock of %s any more: nothing can be taken back", c.args[0], cell)
}

// changeStock changes the stock of an item, and says what it is then.
func (c *call) changeStock(sku string, change adminapi.StockChange) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	var changed adminapi.StockChanged
	err = c.ask(http.MethodPost, "sales/"+segment(c.args[0])+"/items/"+segment(sku)+"/stock", body, &changed)
	if _, ok := errors.AsType[noAnswerError](err); ok {
		return fmt.Errorf("%w (repeat it with --id %s: it is made once)", err, change.ID)
	}
	if err != nil {
		return err
	}
	name := changed.SKU
	if changed.Region != "" {
		name += " in " + changed.Region
	}
	c.printf("%s has %d units after %+d (id %s)\n", name, changed.Stock, changed.Delta, changed.ID)
	for _, warning := range changed.Warnings {
		c.printf("warning: %s\n", warning)
	}
	return nil
}
