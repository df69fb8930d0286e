package command

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

func waitlistCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "waitlist <command>", Short: "Shows the waiting list of a sale, and stops its offers"}
	group(cmd,
		&cobra.Command{Use: "show <sale>", Short: "Shows how many people wait, and the offers", RunE: action(showWaitlist, "sale")},
		&cobra.Command{
			Use: "pause <sale>", Short: "Stops offers until 'resume'",
			Long: `
Lets no more offers be made to people on the waiting list of a sale until 'waitlist
resume', at any edge. Open offers stay as they are and may be accepted, and people
enter and leave as before. Units that come back stay on the shelf until offers go on:
no other buyer gets them while people wait. The sale goes on too. To stop it, pause the sale.`,
			RunE: action(changeOffers("pause"), "sale"),
		},
		&cobra.Command{Use: "resume <sale>", Short: "Lets offers go on", RunE: action(changeOffers("resume"), "sale")},
	)
	return cmd
}

func waitlistPath(sale string) string { return "sales/" + segment(sale) + "/waitlist" }

func showWaitlist(c *call) error {
	var w adminapi.WaitlistState
	if err := c.ask(http.MethodGet, waitlistPath(c.args[0]), nil, &w); err != nil {
		return err
	}
	_, is := offersAre(&w)
	t := c.table("WAITING LIST", w.ID)
	t.row("people", fmt.Sprintf("%d of at most %d", w.People, w.Most))
	t.row("with an offer", fmt.Sprintf("%d, of %s each", w.Offered, w.Offer))
	t.row("offers", is)
	t.row("entered", decimal(w.Entered))
	t.row("offers made", decimal(w.Offers))
	t.row("accepted", decimal(w.Accepted))
	t.row("lapsed", decimal(w.Lapsed))
	t.row("left", decimal(w.Left))
	if w.Closed > 0 {
		t.row("closed", decimal(w.Closed))
	}
	if w.Other > 0 {
		t.row("other ends", decimal(w.Other))
	}
	return t.print()
}

// offersAre reports in words whether offers are made.
func offersAre(w *adminapi.WaitlistState) (terminal.Style, string) {
	if since := w.OffersPausedSince; !since.IsZero() {
		return terminal.Warn, fmt.Sprintf("paused since %s: 'caddy stockgate waitlist resume %s' goes on", since.UTC().Format(time.RFC3339), w.ID)
	}
	return terminal.Good, "made"
}

// printWaitlist is the line of `sale show` about a waiting list; nil: there is none.
func (c *call) printWaitlist(w *adminapi.WaitlistState) {
	if w == nil {
		return
	}
	c.printf("waiting list: %d of at most %d people, %d of them with an offer of %s; %d offers accepted, %d lapsed\n", w.People, w.Most, w.Offered, w.Offer, w.Accepted, w.Lapsed)
	if style, is := offersAre(w); style == terminal.Warn {
		c.printf("offers: %s\n", c.paint(style, is))
	}
}

// peopleWait says how many people wait who have no offer.
func peopleWait(w *adminapi.WaitlistState) string {
	if n := w.People - w.Offered; n != 1 {
		return fmt.Sprintf("%d people wait", n)
	}
	return "1 person waits"
}

func changeOffers(word string) func(*call) error {
	return func(c *call) error {
		var w adminapi.WaitlistState
		if err := c.ask(http.MethodPost, waitlistPath(c.args[0])+"/"+word, nil, &w); err != nil {
			return err
		}
		if word == "pause" {
			c.printf("offers of %s are paused: %s, and %s open; the sale goes on\n", w.ID, peopleWait(&w), plural(w.Offered, "offer"))
		} else {
			c.printf("offers of %s go on: %s\n", w.ID, peopleWait(&w))
		}
		return nil
	}
}
