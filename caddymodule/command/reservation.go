package command

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/adminapi"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

func reservationCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "reservation <command>", Short: "Shows and resolves reservations"}
	show := &cobra.Command{Use: "show <id>", Short: "Shows a reservation", RunE: action(showReservation, "id")}
	confirm := &cobra.Command{
		Use:   "confirm <id>",
		Short: "Says that the shop has the order: the units are sold",
		Long: `
Says that the shop has the order: the units are sold. Units that were given back
meanwhile are taken again; when they are sold to others the answer is
refund_needed, and nothing changes.`,
		RunE: action(confirmReservation, "id"),
	}
	release := &cobra.Command{
		Use:   "release <id> [--force]",
		Short: "Says that the shop does not have the order: the units go back on sale",
		Long: `
Says that the shop does not have the order: the units go back on sale. Until the
reservation's deadline the shop may still take the order: then this needs --force.
Make sure first that the shop will not take it.`,
		RunE: action(releaseReservation, "id"),
	}
	release.Flags().Bool("force", false, "Release before the deadline")
	group(cmd, show, confirm, release, returnCommand(), extendCommand())
	return cmd
}

func showReservation(c *call) error {
	var r reservation.Record
	if err := c.ask(http.MethodGet, "reservations/"+segment(c.args[0]), nil, &r); err != nil {
		return err
	}
	t := c.table("RESERVATION", r.ID)
	t.row("sale", r.Sale)
	t.row("state", string(r.State))
	t.row("cause", r.Cause)
	t.row("lines", linesText(r.Lines))
	t.row("reserved", adminapi.LocalTime(r.Created))
	t.row("changed", adminapi.LocalTime(r.Changed))
	t.row("deadline", adminapi.LocalTime(r.Deadline))
	t.row("token expires", adminapi.LocalTime(r.Exp))
	t.row("outcome by", string(r.Mode))
	t.row("buyer (hashed)", r.Buyer)
	if r.Ref != "" {
		t.row("ref", r.Ref)
	}
	if len(r.Returned) > 0 {
		t.row("returned", linesText(r.Returned))
	}
	return t.print()
}

func confirmReservation(c *call) error { return c.resolve("confirm", "") }

func releaseReservation(c *call) error {
	if c.flag("force") {
		return c.resolve("release", "?force=1")
	}
	return c.resolve("release", "")
}

func (c *call) resolve(word, query string) error {
	var r reservation.Record
	if err := c.ask(http.MethodPost, "reservations/"+segment(c.args[0])+"/"+word+query, nil, &r); err != nil {
		return err
	}
	c.printf("%s is %s\n", r.ID, r.State)
	return nil
}

// linesText formats the lines of a reservation: 2×20002001@beijing.
func linesText(all []sale.Line) string {
	shown := make([]string, len(all))
	for i, l := range all {
		shown[i] = fmt.Sprintf("%d×%s", l.Quantity, l.Cell())
	}
	return strings.Join(shown, " ")
}
