package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

func reservationCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "reservation <command>", Short: "Shows and resolves reservations"}
	show := &cobra.Command{Use: "show <id>", Short: "Shows a reservation", RunE: action(showReservation, "id")}
	confirm := &cobra.Command{
		Use:   "confirm <id>",
		Short: "Confirms that the shop has the order",
		Long: `
Says that the shop has the order: the units are sold. Units that were given back
meanwhile are taken again; when they are sold to others the answer is
refund_needed, and nothing changes.`,
		RunE: action(confirmReservation, "id"),
	}
	release := &cobra.Command{
		Use:   "release <id> [--force]",
		Short: "Puts the units of a hold back on sale",
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
	if r.More != "" {
		t.row("sold beyond it", r.More)
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

func returnCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "return <reservation> [<sku>=<units>...] [--id <id>] [--region <region>] [--no-restock]",
		Short: "Takes units of a confirmed reservation back",
		Long: `
Takes units of a confirmed reservation back; without any, all that are left. They
go on sale again, and the buyer's purchase limits are given back; with --no-restock
they leave the stock.

Every return has an id, made here unless --id gives one. The same id again changes
nothing: when no answer came, repeat the command with the id it names.`,
		Example: `  $ caddy stockgate reservation return 0198c1de-… 20002001=1
  $ caddy stockgate reservation return 0198c1de-… --no-restock`,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return finish(cmd, usageError{fmt.Errorf("it takes a reservation: %s", cmd.UseLine())})
		}
		return perform(cmd, args, returnUnits, "reservation", "sku")
	}
	cmd.Flags().String("id", "", "Id of the return (default: a new one)")
	cmd.Flags().String("region", "", "Region of the units")
	cmd.Flags().Bool("no-restock", false, "The units do not go on sale again")
	return cmd
}

func returnUnits(c *call) error {
	ask := adminapi.ReturnRequest{ID: c.text("id"), Restock: !c.flag("no-restock")}
	for _, arg := range c.args[1:] {
		at := strings.LastIndex(arg, "=") // a SKU may have one too
		units, err := strconv.ParseInt(arg[at+1:], 10, 64)
		if at < 1 || err != nil || units < 1 {
			return usageError{fmt.Errorf("%q is not a SKU and a number of units, such as 20002001=1", arg)}
		}
		ask.Lines = append(ask.Lines, sale.Line{SKU: arg[:at], Quantity: units, Region: c.text("region")})
	}
	if c.text("region") != "" && ask.Lines == nil {
		return usageError{errors.New("--region is for the units that are named")}
	}
	if ask.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		ask.ID = id.String()
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	var r reservation.Record
	err = c.ask(http.MethodPost, "reservations/"+segment(c.args[0])+"/return", body, &r)
	if _, ok := errors.AsType[noAnswerError](err); ok {
		return fmt.Errorf("%w (repeat it with --id %s: it is made once)", err, ask.ID)
	}
	if err != nil {
		return err
	}
	c.printf("%s: %s returned of %s (id %s)\n", r.ID, linesText(r.Returned), linesText(r.Lines), ask.ID)
	if r.More != "" {
		c.printf("units that the shop sold beyond it are returned by the id %s\n", r.More)
	}
	return nil
}

func extendCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "extend <id> <time>",
		Short: "Holds a reservation for this long from now",
		Long: `
Puts the deadline of a held reservation off: it is held for so long from now, up to
the sale's max_hold after it was made. A later deadline stays.`,
		Example: `  $ caddy stockgate reservation extend 0198c1de-… 10m`,
		RunE:    action(extendReservation, "id", "time"),
	}
}

func extendReservation(c *call) error {
	body, err := json.Marshal(map[string]string{"hold_for": c.args[1]})
	if err != nil {
		return err
	}
	var r reservation.Record
	if err := c.ask(http.MethodPost, "reservations/"+segment(c.args[0])+"/extend", body, &r); err != nil {
		return err
	}
	c.printf("%s is held until %s\n", r.ID, adminapi.LocalTime(r.Deadline))
	return nil
}
