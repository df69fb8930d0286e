package command

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
)

func saleCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sale <command>", Short: "Loads, shows, opens, pauses and closes sales"}
	apply := &cobra.Command{
		Use:   "apply <file> [--dry-run] [--force] [--new] [--yes]",
		Short: "Loads a sale from a file, or its changes",
		Long: `
Loads a sale from a YAML or JSON file; - is the standard input. The file is
compared with the one that was applied last: the same file again changes
nothing, and units of 'stock add' stay on top. It is all or nothing, and it never
opens or closes the sale: that is done by 'sale open' and 'sale close'.

	id: double11
	starts_at: 2026-11-11T00:00:00+08:00
	ends_at: 2026-11-12T00:00:00+08:00
	items:
	  - {sku: "20002001", stock: 100, max: 2}
	limits:
	  - {per: buyer, every: sale, max: 2, count: units}

Once a sale is open, a new kind of limit needs --force: it counts from 0.

A change of an open sale that is probably a slip of the pen, such as ten times the stock,
a start that moves into the future or a limit that is gone, is asked about on a terminal;
in a script it needs --yes.

A sale that Redis has lost is refused: its file would sell again what is sold.
'caddy stockgate rebuild' restores it from the ledger. With --new it starts over
from the file: nothing of before counts, so the file must have no more stock than
the shop has not sold.

The stock may come from the shop's database, with 'stock_from' instead of items:

	stock_from:
	  dsn: postgres://reader:{env.SHOP_PASSWORD}@db.example.com/shop
	  query: SELECT sku, units AS stock FROM campaign WHERE name = 'double11'

The columns are sku and stock, and if wanted region, min and max. It is this
command that asks the database, in a transaction that only reads; Caddy gets the
numbers alone. The query must give what is loaded for the sale, not what is left
of it: see docs/sales.md.

It may also come from keys of a Redis in which a script of the shop's own has sold
so far, with 'bought_from' for what each buyer has bought: the sale and its limits
go on from there. This command reads the keys once. --dry-run shows what it
understands. See docs/moving-in.md.`,
		Example: `  $ caddy stockgate sale apply double11.yaml --dry-run
  $ caddy stockgate sale apply double11.yaml
  $ generate-sale | caddy stockgate sale apply -`,
		RunE: action(applyFile, "file"),
	}
	apply.Flags().Bool("dry-run", false, "Only say what would change")
	apply.Flags().Bool("force", false, "Allow a new kind of limit on an open sale")
	apply.Flags().Bool("new", false, "Load a sale that Redis has lost as a new one")
	apply.Flags().BoolP("yes", "y", false, "Do not ask before a change of an open sale that is unusual")

	closing := &cobra.Command{
		Use: "close <sale> [--drop-queue] [--export <file>] [--yes]", Short: "Closes a sale for good",
		Long: "\nCloses a sale for good, and says what stays held. Orders that wait in a line go on to\nthe shop; with --drop-queue they are released. On a terminal it asks first, unless\n--yes is given; in a script it does not ask. With --export it writes the tally:\n" + exportHelp, Example: "  $ caddy stockgate sale close double11 --export double11.csv",
		RunE: action(closeSale, "sale"),
	}
	closing.Flags().BoolP("yes", "y", false, "Do not ask")
	closing.Flags().Bool("drop-queue", false, "Release the orders that wait for the shop")
	closing.Flags().String("export", "", "Write the tally to this file, .csv or .json; - is the standard output")

	group(cmd, newCommand(), apply,
		&cobra.Command{Use: "list", Short: "Lists all sales", RunE: action(listSales)},
		&cobra.Command{Use: "show <sale>", Short: "Shows a sale and where its units are", RunE: action(showSale, "sale")},
		&cobra.Command{Use: "open <sale>", Short: "Opens a sale: it sells inside its window", RunE: action(changeStatus("open"), "sale")},
		&cobra.Command{Use: "pause <sale>", Short: "Pauses a sale; 'open' goes on with it", RunE: action(pauseSale, "sale")},
		closing, scheduleCommand(), cloneCommand(), deleteCommand(), purgeCommand(),
		&cobra.Command{
			Use: "schema", Short: "Prints the JSON Schema of a sale file, for editors",
			Example: "  $ caddy stockgate sale schema > sale.schema.json",
			RunE: action(func(c *call) error {
				_, err := c.cmd.OutOrStdout().Write(sale.Schema)
				return err
			}),
		},
		&cobra.Command{
			Use: "forget-shadow <sale>", Short: "Drops what was sold in shadow",
			Long: `
Drops what dry runs have noted of a sale while a gate was in shadow. The next dry run
begins with the stock and the limits of the sale.`,
			Example: "  $ caddy stockgate sale forget-shadow double11",
			RunE:    action(forgetShadow, "sale"),
		},
		&cobra.Command{
			Use: "align <sale>", Short: "Ends the lead of a sale's clock over Redis's",
			Long: `
When Redis's clock steps while there are holds, their deadlines go on by a clock
of the sale's own, so that none ends early or late: 'doctor' tells the difference.
It ends by itself when no hold is left. This command ends it at once. Every hold
keeps the time that it has left, and the journal tells each. Run it when Redis's
clock is right again. See docs/failover.md#clocks.`,
			RunE: action(alignSale, "sale"),
		},
		&cobra.Command{
			Use: "unfence <sale>", Short: "Sells a fenced sale again, without what Redis has lost",
			Long: `
After a failover or a restart of Redis a sale waits until every edge has said what
it knows, and goes on by itself. It stays fenced where Redis lacks a change that the
journal does not tell in full, such as a sale file, or has other movements than the
edges know: 'doctor' says so. Then run this command, and apply the file again. The
sale sells in between, and cannot be paused before: where that must not be, answer
its route with 503 in the Caddyfile first. What Redis has lost can be sold again:
compare with the shop by 'reconcile'. See docs/failover.md.`,
			RunE: action(unfenceSale, "sale"),
		},
		&cobra.Command{
			Use: "export <sale> <file>", Short: "Writes where a sale's units are to a file",
			Long: exportHelp, Example: "  $ caddy stockgate sale export double11 double11.csv\n  $ caddy stockgate sale export double11 - --json",
			RunE: action(exportSale, "sale", "file"),
		},
	)
	return cmd
}

func listSales(c *call) error {
	var list adminapi.SaleList
	if err := c.ask(http.MethodGet, "sales", nil, &list); err != nil {
		return err
	}
	t := c.table("SALE", "STATUS", "STARTS", "ENDS", "BALANCED")
	for _, s := range list.Sales {
		if s.Status == edge.StatusLost {
			t.row(s.ID, string(s.Status), "", "", yesNo(false))
			continue
		}
		t.row(s.ID, string(s.Status), adminapi.SaleTime(s.StartsAt, s.Timezone), adminapi.SaleTime(s.EndsAt, s.Timezone), yesNo(s.Balanced))
	}
	return t.print()
}

// statusStyles are how the statuses of sales look; others have no colour.
var statusStyles = map[sale.Status]terminal.Style{sale.Open: terminal.Good, sale.Paused: terminal.Warn, edge.StatusLost: terminal.Bad}

func showSale(c *call) error {
	var b adminapi.SaleShown
	if err := c.ask(http.MethodGet, "sales/"+segment(c.args[0]), nil, &b); err != nil {
		return err
	}
	c.printf("%s is %s, from %s to %s (%s)\n", c.paint(terminal.Strong, b.ID), c.paint(statusStyles[b.Status], string(b.Status)), adminapi.SaleTime(b.StartsAt, b.Timezone), adminapi.SaleTime(b.EndsAt, b.Timezone), cmp.Or(b.Timezone, "UTC"))
	for _, l := range b.Limits {
		note := ""
		if l.Shadow {
			note = ", in shadow: refuses nothing"
		}
		c.printf("limit: at most %d %s%s\n", l.Max, l, note)
	}
	if !b.Balanced {
		c.printf("%s", c.paint(terminal.Bad, "THE BOOKS DO NOT BALANCE: stock is not available + held + in doubt + confirmed\n"))
	}
	if !b.OldestInDoubt.IsZero() {
		c.printf("%s", c.paint(terminal.Warn, fmt.Sprintf("in doubt since %s: see 'caddy stockgate holds %s'\n", adminapi.SaleTime(b.OldestInDoubt, b.Timezone), b.ID)))
	}
	if restored := b.RestoredFrom; !restored.IsZero() {
		c.printf("%s", c.paint(terminal.Warn, fmt.Sprintf("restored from a backup of %s: what was sold since looks available, until it is compared with the shop; 'sale open' sells again\n", adminapi.SaleTime(restored, b.Timezone))))
	}
	if accepted := b.LossAccepted; !accepted.IsZero() {
		c.printf("%s", c.paint(terminal.Warn, fmt.Sprintf("goes on since %s without what the disk has lost: that looks available, until it is compared with the shop; 'sale open' sells again\n", adminapi.SaleTime(accepted, b.Timezone))))
	}
	if bypassed := b.Bypassed; !bypassed.IsZero() {
		c.printf("%s", c.paint(terminal.Warn, fmt.Sprintf("until %s the shop sold without reservations: that looks available, until it is compared with the shop; 'sale open' sells again\n", adminapi.SaleTime(bypassed, b.Timezone))))
	}
	for _, sentence := range b.Bypasses {
		c.printf("%s", c.paint(terminal.Bad, sentence+"\n"))
	}
	if b.UnitsAtRisk > 0 {
		c.printf("%s", c.paint(terminal.Warn, fmt.Sprintf("%d units are at risk, the oldest for %v: a failover now would lose them\n", b.UnitsAtRisk, time.Duration(b.AtRiskMs)*time.Millisecond)))
	}
	if b.Unbacked > 0 {
		c.printf("%s", c.paint(terminal.Bad, fmt.Sprintf("%d orders without stock: see 'caddy stockgate holds %s --state unbacked'\n", b.Unbacked, b.ID)))
	}
	c.printQueue(b.Queue)
	c.printWaitlist(b.Waitlist)
	c.showMirror(b.Mirror)
	if m := b.MovedIn; m != nil && !m.Done {
		c.printf("%s", c.paint(terminal.Warn, fmt.Sprintf("not all of %d purchases of before are here, and the sale does not open: apply its file again\n", m.Purchases)))
	} else if m != nil {
		c.printf("moved in with %d purchases of %d units\n", m.Purchases, m.Units)
	}
	c.printf("\n")
	t := c.table("SKU", "REGION", "STOCK", "AVAILABLE", "HELD", "IN DOUBT", "CONFIRMED")
	var sum record.Cell
	for _, cell := range b.Items {
		t.row(cell.SKU, cell.Region, decimal(cell.Stock), decimal(cell.Available), decimal(cell.Held), decimal(cell.InDoubt), decimal(cell.Confirmed))
		sum.Stock += cell.Stock
		sum.Available += cell.Available
		sum.Held += cell.Held
		sum.InDoubt += cell.InDoubt
		sum.Confirmed += cell.Confirmed
	}
	if len(b.Items) > 1 {
		t.row("all", "", decimal(sum.Stock), decimal(sum.Available), decimal(sum.Held), decimal(sum.InDoubt), decimal(sum.Confirmed))
	}
	if err := cmp.Or(t.print(), showBundles(c, &b), showActs(c, &b)); err != nil || len(b.Shadow) == 0 {
		return err
	}
	return showShadow(c, &b)
}

// showBundles prints how many of each bundle there are in the stock of its components.
func showBundles(c *call, shown *adminapi.SaleShown) error {
	if len(shown.Bundles) == 0 {
		return nil
	}
	c.printf("\n")
	t := c.table("BUNDLE", "REGION", "OF", "STOCK FOR", "AVAILABLE FOR")
	for _, b := range shown.Bundles {
		t.row(b.SKU, b.Region, b.Of(), decimal(b.Stock), decimal(b.Available))
	}
	return t.print()
}

// showShadow prints what the shop sold while a gate was in shadow.
func showShadow(c *call, b *adminapi.SaleShown) error {
	c.printf("\nsold by the shop in shadow, which no stock above counts: as the gate would have sold it, and past it\n\n")
	t := c.table("SKU", "REGION", "SOLD", "PAST THE GATE")
	for _, cell := range b.Shadow {
		t.row(cell.SKU, cell.Region, decimal(cell.Sold), decimal(cell.Past))
	}
	return t.print()
}

// changeStatus makes the command that sets a sale's status.
func changeStatus(word string) func(*call) error {
	return func(c *call) error {
		var s adminapi.SaleStatus
		if err := c.ask(http.MethodPost, "sales/"+segment(c.args[0])+"/"+word, nil, &s); err != nil {
			return err
		}
		c.printf("%s is %s\n", s.ID, s.Status)
		for _, warning := range s.Warnings {
			c.printf("warning: %s\n", warning)
		}
		return nil
	}
}

func forgetShadow(c *call) error {
	var f adminapi.ShadowForgotten
	if err := c.ask(http.MethodPost, "sales/"+segment(c.args[0])+"/forget_shadow", nil, &f); err != nil {
		return err
	}
	c.printf("what was sold of %s in shadow is forgotten\n", f.ID)
	return nil
}

func alignSale(c *call) error {
	var a adminapi.SaleAligned
	if err := c.ask(http.MethodPost, "sales/"+segment(c.args[0])+"/align", nil, &a); err != nil {
		return err
	}
	if a.LeadMs == 0 {
		c.printf("the clock of %s was not ahead or behind: nothing was changed\n", a.ID)
		return nil
	}
	c.printf("the clock of %s was %+.3f s from Redis's and follows it again; %d holds keep the time that they have left\n", a.ID, float64(a.LeadMs)/1000, a.Moved)
	return nil
}

func unfenceSale(c *call) error {
	var u adminapi.SaleUnfenced
	if err := c.ask(http.MethodPost, "sales/"+segment(c.args[0])+"/unfence", nil, &u); err != nil {
		return err
	}
	if !u.WasFenced {
		c.printf("%s was not fenced: nothing was changed\n", u.ID)
		return nil
	}
	c.printf("%s is sold again, without what redis has lost: compare it with the shop by 'caddy stockgate reconcile %s'\n", u.ID, u.ID)
	return nil
}

func decimal(units int64) string { return strconv.FormatInt(units, 10) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "NO"
}
