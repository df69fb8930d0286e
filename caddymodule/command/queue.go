package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

func queueCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "queue <command>", Short: "Shows and stops the line of orders that wait for the shop, or releases them"}
	drain := &cobra.Command{
		Use: "drain <sale> [--yes]", Short: "Releases the orders that wait",
		Long: `
Releases the orders of a sale that wait now: their units go back on sale, and their
buyers are told that they have not ordered. What is at the shop goes on, and orders
that come later wait as before: pause the sale first where none should come. On a
terminal it asks first, unless --yes is given; in a script it does not ask.`,
		Example: "  $ caddy stockgate sale pause double11\n  $ caddy stockgate queue drain double11",
		RunE:    action(drainQueue, "sale"),
	}
	drain.Flags().BoolP("yes", "y", false, "Do not ask")
	group(cmd,
		&cobra.Command{Use: "show <sale>", Short: "Shows how many orders wait, and at which pace they go", RunE: action(showQueue, "sale")},
		&cobra.Command{
			Use: "pause <sale>", Short: "Stops the line until 'resume'",
			Long: `
Lets no order of a sale go to the shop until 'queue resume', at any edge. What is at
the shop goes on. The sale goes on too: new orders wait, as long as there is room.
To stop new orders, pause the sale.`,
			RunE: action(changeQueue("pause"), "sale"),
		},
		&cobra.Command{
			Use: "resume <sale>", Short: "Lets the line go on",
			Long: "\nEnds 'queue pause', and the wait for which the shop itself has asked.", RunE: action(changeQueue("resume"), "sale"),
		},
		drain,
	)
	return cmd
}

func queuePath(sale string) string { return "sales/" + segment(sale) + "/queue" }

// queueIs says what a line does, and how it looks.
func queueIs(q *adminapi.QueueState) (terminal.Style, string) {
	switch {
	case q.Paused:
		return terminal.Warn, "paused: 'caddy stockgate queue resume " + q.ID + "' goes on"
	case q.LaterMs > 0:
		return terminal.Warn, fmt.Sprintf("the shop has asked for no order for %v", ago(q.LaterMs))
	case q.Skipped > 0:
		return terminal.Warn, countOrders(q.Skipped) + " skipped, because no edge that runs has their gate: 'caddy stockgate doctor' says what to do"
	case q.Waiting > 0 && q.Pace == 0:
		return terminal.Warn, "no order went to the shop lately: 'caddy stockgate doctor' says why"
	}
	return terminal.Good, "going"
}

func ago(ms int64) time.Duration { return (time.Duration(ms) * time.Millisecond).Round(time.Second) }

func showQueue(c *call) error {
	var q adminapi.QueueState
	if err := c.ask(http.MethodGet, queuePath(c.args[0]), nil, &q); err != nil {
		return err
	}
	_, is := queueIs(&q)
	t := c.table("QUEUE", q.ID)
	t.row("line", is)
	t.row("waiting", decimal(q.Waiting))
	if q.Skipped > 0 {
		t.row("skipped", decimal(q.Skipped))
	}
	t.row("at the shop", decimal(q.AtShop))
	t.row("oldest", ago(q.OldestMs).String())
	t.row("pace", fmt.Sprintf("%.1f orders a second", q.Pace))
	t.row("memory", fmt.Sprintf("%d bytes in Redis", q.Bytes))
	return t.print()
}

// printQueue is the line of `sale show` about a queue; nil: there is none.
func (c *call) printQueue(q *adminapi.QueueState) {
	if q == nil {
		return
	}
	style, is := queueIs(q)
	c.printf("queue: %s, %d at the shop, %.1f a second; %s\n", waiting(q), q.AtShop, q.Pace, c.paint(style, is))
}

// waiting says how many orders wait, and for how long the first has.
func waiting(q *adminapi.QueueState) string {
	switch q.Waiting {
	case 0:
		return "no order waits"
	case 1:
		return fmt.Sprintf("1 order waits, for %v", ago(q.OldestMs))
	}
	return fmt.Sprintf("%d orders wait, the oldest for %v", q.Waiting, ago(q.OldestMs))
}

func changeQueue(word string) func(*call) error {
	return func(c *call) error {
		var q adminapi.QueueState
		if err := c.ask(http.MethodPost, queuePath(c.args[0])+"/"+word, nil, &q); err != nil {
			return err
		}
		if word == "pause" {
			c.printf("the line of %s is paused: %s, and %d are at the shop; the sale goes on\n", q.ID, waiting(&q), q.AtShop)
		} else {
			c.printf("the line of %s goes on: %s\n", q.ID, waiting(&q))
		}
		return nil
	}
}

func drainQueue(c *call) error {
	id := c.args[0]
	var q adminapi.QueueState
	if _, err := c.fetch(http.MethodGet, queuePath(id), nil, &q); err != nil {
		return err
	}
	if q.Waiting > 0 && !c.flag("yes") && c.onTerminal() {
		if err := c.agreed(id, "Draining the line of "+id+" is for good: "+waiting(&q)+". Their buyers are told that they have not ordered."); err != nil {
			return err
		}
	}
	d, err := c.drain(q)
	if err == nil && c.flag("json") {
		var text []byte
		if text, err = json.Marshal(d); err == nil {
			fmt.Fprintf(c.cmd.OutOrStdout(), "%s\n", text)
		}
	}
	if err != nil {
		return err
	}
	c.printf("%s\n", drained(d))
	return nil
}

// drain releases the orders that wait by a state of the line, in as many requests as that takes.
func (c *call) drain(q adminapi.QueueState) (*adminapi.QueueDrained, error) {
	sum := &adminapi.QueueDrained{QueueState: q}
	for left := q.Waiting; left > 0 && sum.Waiting > 0; left -= adminapi.MaxDrain {
		var d adminapi.QueueDrained
		if _, err := c.fetch(http.MethodPost, fmt.Sprintf("%s/drain?most=%d", queuePath(q.ID), min(left, adminapi.MaxDrain)), nil, &d); err != nil {
			if sum.Released > 0 {
				err = fmt.Errorf("%w; %s were released before, and the same command goes on", err, countOrders(sum.Released))
			}
			return nil, err
		}
		sum.QueueState, sum.Released = d.QueueState, sum.Released+d.Released
	}
	return sum, nil
}

// drained says what a drain has done.
func drained(d *adminapi.QueueDrained) string {
	text := fmt.Sprintf("%s of %s released", countOrders(d.Released), d.ID)
	if d.Waiting > 0 {
		text += fmt.Sprintf("; %s came meanwhile and wait", countOrders(d.Waiting))
	}
	if d.AtShop > 0 {
		text += fmt.Sprintf("; %s at the shop go on", countOrders(d.AtShop))
	}
	return text
}

func countOrders(n int64) string { return plural(int(n), "order") }

// lineGoesOn says, in a line that begins with a line feed, that orders of a sale wait; empty: none does.
func lineGoesOn(q *adminapi.QueueState) string {
	if q == nil || q.Waiting == 0 {
		return ""
	}
	return fmt.Sprintf("\n  %s for the shop, and the line goes on: 'caddy stockgate queue pause %s' stops it, and 'caddy stockgate queue drain %s' releases what waits", waiting(q), q.ID, q.ID)
}

// pauseSale pauses a sale, and says that its line goes on.
func pauseSale(c *call) error {
	if err := changeStatus("pause")(c); err != nil || c.flag("json") {
		return err
	}
	var q adminapi.QueueState
	if _, err := c.fetch(http.MethodGet, queuePath(c.args[0]), nil, &q); err != nil {
		return fmt.Errorf("it is paused, and whether orders wait in its line cannot be read: %w", err)
	}
	if text := lineGoesOn(&q); text != "" {
		c.printf("%s\n", text[1:])
	}
	return nil
}
