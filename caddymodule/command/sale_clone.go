package command

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
)

func cloneCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "clone <sale> <new> [--starts <time>] [--ends <time>] [--file <file>]", Short: "Writes a sale's file again, for another one",
		Long: `
Writes the file of a sale under a new id and with other times: items with the units that
the file loads, whatever is left, limits and all other fields. Sold units, the schedule and
purchases that were taken over are not in it. It applies nothing, and overwrites no file.

On a terminal it asks for the times. Elsewhere --starts is needed; without --ends the new
sale is as long as the old one, by the clock of its time zone.`,
		Example: "  $ caddy stockgate sale clone double11 double12 --starts 2027-12-12T00:00",
		RunE:    action(cloneSale, "sale", "new"),
	}
	timeFlags(cmd)
	cmd.Flags().String("file", "", "File to write; - is the standard output (default: the new id and .yaml)")
	return cmd
}

func cloneSale(c *call) error {
	if err := checkID(c.args[1]); err != nil {
		return usageError{fmt.Errorf("%q as the new id: %w", c.args[1], err)}
	}
	name := c.text("file")
	if name == "" {
		name = c.args[1] + ".yaml"
	}
	if err := notThere(name); err != nil {
		return err
	}
	var answer adminapi.SaleFile
	if _, err := c.fetch(http.MethodGet, "sales/"+segment(c.args[0])+"/file", nil, &answer); err != nil {
		return err
	}
	old, err := sale.Decode(answer.File)
	if err != nil {
		return noAnswerError{fmt.Errorf("the file of %s cannot be read: are Caddy and this command of the same version? %w", c.args[0], err)}
	}
	next := *old
	next.ID = c.args[1]
	a := c.asking()
	next.StartsAt = time.Time{}
	if err := a.time("starts", "It starts at ("+old.ID+": "+old.StartsAt.Format(time.RFC3339)+")", "", &next, &next.StartsAt); err != nil {
		return err
	}
	if err := a.complete("caddy stockgate sale clone " + old.ID + " " + next.ID + " --starts 2027-12-12T00:00"); err != nil {
		return err
	}
	if err := a.ends("It ends at", sameLength(old, next.StartsAt), &next); err != nil {
		return err
	}
	return c.writeSale(name, &next, "")
}

// sameLength is when a sale from a new start on ends that is as long as the old one by the clocks of its time zone,
// daylight saving included.
func sameLength(old *sale.Sale, starts time.Time) string {
	zone := adminapi.SaleZone(old.Timezone)
	shown := func(t time.Time) time.Time {
		t = t.In(zone)
		return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	}
	return shown(starts).Add(shown(old.EndsAt).Sub(shown(old.StartsAt))).Format("2006-01-02T15:04:05")
}
