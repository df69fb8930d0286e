package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

func scheduleCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "schedule <command>", Short: "Plans acts of a sale: open, pause, resume, close, stock"}
	add := &cobra.Command{
		Use:   "add <sale> <time> <act> [<sku>] [<change>] [--region <region>]",
		Short: "Plans an act for a time",
		Long: `
Plans an act of a sale for a time. The acts are kept in Redis with the sale: edges that run
at the time do it, one of them each, also where edges or Redis were restarted since.

The time has an offset, as in a sale file, or is one in the time zone of the sale. Redis's
clock decides when it has come.

	open     opens the sale: it sells inside its window
	pause    pauses it
	resume   opens it where it is paused, and not where it is a draft
	close    closes it for good
	stock    changes the stock of an item: +50 or 50 adds units, -5 takes them away,
	         =40 is what the stock becomes, sold units included

The same act for the same time is planned once. An act that has become impossible at its
time fails: 'sale show' and the doctor say so. One that no edge could do at its time is done
late, in order; after the end of the sale only 'close' is.`,
		Example: `  $ caddy stockgate sale schedule add double11 2027-11-10T23:59 open
  $ caddy stockgate sale schedule add double11 2027-11-11T12:00 stock 20001001 +50
  $ caddy stockgate sale schedule add double11 2027-11-12T00:05:00+08:00 close`,
	}
	add.Flags().String("region", "", "Region whose stock changes")
	withNegatives(add, func(cmd *cobra.Command, given []string) error {
		if n := len(given); n != 3 && n != 5 || n == 3 && given[2] == "stock" {
			return finish(cmd, usageError{fmt.Errorf("it takes a sale, a time and an act, and behind stock an item and a change: %s", cmd.UseLine())})
		}
		return perform(cmd, given, planAct, "sale", "time", "act", "sku", "change")
	})
	group(cmd, add,
		&cobra.Command{Use: "list <sale>", Short: "Lists the acts that are to come, and the last ones", RunE: action(listActs, "sale")},
		&cobra.Command{
			Use: "cancel <sale> <act>", Short: "Takes an act back, by its number",
			Long: "\nTakes an act back that is to come. Of an act that failed it ends the alarm of the doctor.", Example: "  $ caddy stockgate sale schedule cancel double11 3",
			RunE: action(cancelAct, "sale", "act"),
		})
	return cmd
}

func schedulePath(sale string) string { return "sales/" + segment(sale) + "/schedule" }

func planAct(c *call) error {
	plan := reservation.PlannedAct{At: c.args[1], Act: c.args[2], Region: c.text("region")}
	if len(c.args) > 3 {
		plan.SKU, plan.Change = c.args[3], c.args[4]
	}
	body, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	var planned adminapi.ActPlanned
	if err := c.ask(http.MethodPost, schedulePath(c.args[0]), body, &planned); err != nil {
		return err
	}
	already := ""
	if planned.Already {
		already = ", as it was before: nothing was changed"
	}
	a := planned.Act
	c.printf("act %d of %s: %s at %s%s\n", a.Number, planned.ID, a.What(), adminapi.SaleTime(a.At, planned.Timezone), already)
	for _, warning := range planned.Warnings {
		c.printf("warning: %s\n", warning)
	}
	return nil
}

func cancelAct(c *call) error {
	if n, err := strconv.ParseInt(c.args[1], 10, 64); err != nil || n < 1 {
		return usageError{fmt.Errorf("%q is no number of an act, as 'caddy stockgate sale schedule list %s' has them", c.args[1], c.args[0])}
	}
	var cancelled adminapi.ActCancelled
	if err := c.ask(http.MethodDelete, schedulePath(c.args[0])+"/"+c.args[1], nil, &cancelled); err != nil {
		return err
	}
	a, says := cancelled.Act, "is taken back"
	if a.Failed {
		says = "had failed, and is forgotten"
	}
	c.printf("act %d of %s %s: %s at %s\n", a.Number, cancelled.ID, says, a.What(), adminapi.SaleTime(a.At, cancelled.Timezone))
	return nil
}

func listActs(c *call) error {
	var s adminapi.SaleSchedule
	if err := c.ask(http.MethodGet, schedulePath(c.args[0]), nil, &s); err != nil {
		return err
	}
	return c.printActs(s.Scheduled, s.Performed, s.Timezone)
}

// shownActs is how many acts of before `sale show` has.
const shownActs = 5

// showActs prints the coming acts and the last ones, if there are any.
func showActs(c *call, b *adminapi.SaleShown) error {
	if len(b.Scheduled)+len(b.Performed) == 0 {
		return nil
	}
	c.printf("\n")
	return c.printActs(b.Scheduled, b.Performed[max(0, len(b.Performed)-shownActs):], b.Timezone)
}

// printActs prints acts by time: past ones first.
func (c *call) printActs(coming, done []reservation.ScheduledAct, zone string) error {
	t := c.table("ACT", "AT", "WHAT", "BY", "STATE")
	for i := range done {
		t.act(&done[i], zone, done[i].Outcome())
	}
	for i := range coming {
		state := "to come"
		if coming[i].Stale {
			state = "NOT TO COME: the sale was restored or rebuilt since; plan it again"
		}
		t.act(&coming[i], zone, state)
	}
	return t.print()
}

func (t *table) act(a *reservation.ScheduledAct, zone, state string) {
	t.row(decimal(a.Number), adminapi.SaleTime(a.At, zone), a.What(), a.By, state)
}
