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
	"github.com/stockgate/stockgate/internal/store/record"
)

func holdsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "holds [<sale>] [--state in_doubt|held|unbacked] [--cause <cause>] [--older <time>] [--confirm|--release|--confirm-from <file>]",
		Short: "Lists and resolves reservations that need an operator",
		Long: `
Lists reservations of a sale, or of all sales, the oldest first:

	in_doubt  nothing shows whether the shop took the order: ask the shop, then
	          confirm or release
	held      the shop has not answered yet, or has until the deadline
	unbacked  the shop took the order after its units had been sold to others

--cause and --older narrow the list. With --confirm or --release the same command
resolves what it would list; it needs the sale, and --all where neither a cause nor
an age is given. Until its deadline the shop may still take an order: such a hold is
not released without --force; make sure first that the shop will not take it.

--confirm-from confirms what a file of the shop's orders names (- is the standard
input): a CSV with a header that has a column reservation, id or ref, or one that
--column names; or a bare list of reservation ids or refs. The file is checked
before anything is confirmed. Then it says which names no reservation goes by, by
which refs those of several buyers go (these are not changed: name the right
reservation by its id), and how many holds are in doubt and not in the file.

--dry-run says what would happen. Exit status 1: not all of it is resolved.`,
		Example: `  $ caddy stockgate holds double11 --older 10m
  $ caddy stockgate holds double11 --cause timeout --older 10m --release --dry-run
  $ caddy stockgate holds double11 --confirm-from orders.csv --column order_no`,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return finish(cmd, usageError{fmt.Errorf("it takes at most one argument: %s", cmd.UseLine())})
		}
		return perform(cmd, args, manageHolds, "sale")
	}
	flags := cmd.Flags()
	flags.String("state", string(record.InDoubt), "State of the reservations")
	flags.String("cause", "", "Only those with this cause")
	flags.String("older", "", "Only those that have been in this state for so long, such as 10m")
	flags.Int("limit", adminapi.HoldsDefault, fmt.Sprintf("How many are listed, at most %d", adminapi.MaxHolds))
	flags.Bool("confirm", false, "Confirm them: the shop has the orders")
	flags.Bool("release", false, "Release them: the shop does not have the orders")
	flags.String("confirm-from", "", "Confirm what this file of orders names")
	flags.String("column", "", "Column of that file that has the reservation ids or refs")
	flags.Bool("all", false, "Resolve all, whatever their cause and age")
	flags.Bool("force", false, "Release before the deadline too")
	flags.Bool("dry-run", false, "Only say what would happen")
	return cmd
}

// manageHolds lists, confirms or releases, as the flags say.
func manageHolds(c *call) error {
	chosen := 0
	for _, flag := range []string{"confirm", "release", "confirm-from"} {
		if c.cmd.Flags().Changed(flag) {
			chosen++
		}
	}
	for _, flag := range []string{"confirm", "release"} {
		if c.cmd.Flags().Changed(flag) && !c.flag(flag) {
			return usageError{fmt.Errorf("say --%s or leave it out", flag)}
		}
	}
	if chosen > 1 {
		return usageError{errors.New("--confirm, --release and --confirm-from exclude each other")}
	}
	from := c.text("confirm-from")
	unfit := func(flags ...string) error {
		for _, flag := range flags {
			if c.cmd.Flags().Changed(flag) {
				return usageError{fmt.Errorf("--%s does not go with this", flag)}
			}
		}
		return nil
	}
	var err error
	switch {
	case chosen == 0:
		if err = unfit("all", "force", "dry-run", "column"); err == nil {
			err = listHolds(c)
		}
		return err
	case len(c.args) == 0:
		return usageError{errors.New("resolving needs the sale: name it")}
	case c.cmd.Flags().Changed("confirm-from"):
		if err = unfit("state", "cause", "older", "all", "force", "limit"); err == nil {
			err = confirmFrom(c, from)
		}
		return err
	case c.flag("confirm"):
		if err = unfit("force", "limit", "column"); err == nil {
			err = resolveHolds(c, "confirm")
		}
		return err
	}
	if err = unfit("limit", "column"); err == nil {
		err = resolveHolds(c, "release")
	}
	return err
}

func listHolds(c *call) error {
	limit, err := c.cmd.Flags().GetInt("limit")
	if err != nil {
		return err
	}
	query := url.Values{"state": {c.text("state")}, "limit": {decimal(int64(limit))}}
	for _, name := range []string{"cause", "older"} {
		if c.text(name) != "" {
			query.Set(name, c.text(name))
		}
	}
	path := "holds?"
	if len(c.args) == 1 {
		path = "sales/" + segment(c.args[0]) + "/holds?"
	}
	var list adminapi.HoldList
	if err := c.ask(http.MethodGet, path+query.Encode(), nil, &list); err != nil {
		return err
	}
	t := c.table("RESERVATION", "SALE", "STATE", "AGE", "SINCE", "DEADLINE", "LINES", "CAUSE", "REF", "BUYER")
	for _, r := range list.Holds {
		t.row(r.ID, r.Sale, string(r.State), age(time.Since(r.Changed)), adminapi.LocalTime(r.Changed), adminapi.LocalTime(r.Deadline), linesText(r.Lines), r.Cause, r.Ref, r.Buyer)
	}
	if err := t.print(); err != nil {
		return err
	}
	if list.More {
		c.printf("there are more: --limit shows up to %d\n", adminapi.MaxHolds)
	}
	return nil
}

// age writes how long ago something was, as short as a table needs it.
func age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return sale.Span(d.Truncate(time.Second)).String()
	case d < 48*time.Hour:
		return sale.Span(d.Truncate(time.Minute)).String()
	}
	return decimal(int64(d/(24*time.Hour))) + "d"
}

// resolveHolds confirms or releases the holds that the flags select, a part at a time. It may
// be interrupted and repeated.
func resolveHolds(c *call, word string) error {
	ask := adminapi.BulkRequest{State: c.text("state"), Cause: c.text("cause"), Older: c.text("older"), All: c.flag("all"), Force: c.flag("force"), DryRun: c.flag("dry-run")}
	var sum adminapi.BulkAnswer
	for {
		answer, err := c.bulk(word, &ask)
		if err != nil {
			return unlessDone(&sum, err)
		}
		addUp(&sum, answer)
		if ask.After = answer.Next; ask.After == "" {
			break
		}
	}
	return c.report(word, &sum)
}

// bulk requests one part.
func (c *call) bulk(word string, ask *adminapi.BulkRequest) (*adminapi.BulkAnswer, error) {
	body, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	answer := new(adminapi.BulkAnswer)
	return answer, c.ask(http.MethodPost, "sales/"+segment(c.args[0])+"/holds/"+word, body, answer)
}

// addUp adds the answer about one part to the sum of those before it.
func addUp(b, more *adminapi.BulkAnswer) {
	b.DryRun, b.InDoubt = more.DryRun, more.InDoubt
	b.Matched += more.Matched
	b.Changed += more.Changed
	b.FromInDoubt += more.FromInDoubt
	b.Already += more.Already
	b.NotFound = append(b.NotFound, more.NotFound...)
	b.Ambiguous = append(b.Ambiguous, more.Ambiguous...)
	b.TooSoon = append(b.TooSoon, more.TooSoon...)
	b.Conflict = append(b.Conflict, more.Conflict...)
	b.RefundNeeded = append(b.RefundNeeded, more.RefundNeeded...)
	b.Late = append(b.Late, more.Late...)
}

// unlessDone adds to an error how many reservations were changed before it.
func unlessDone(b *adminapi.BulkAnswer, err error) error {
	if b.Matched > 0 && !b.DryRun {
		err = fmt.Errorf("%w; %d reservations before that are done, the same again does no harm", err, b.Changed)
	}
	return err
}

// report prints the sum. It returns an error if a reservation is not resolved.
func (c *call) report(word string, b *adminapi.BulkAnswer) error {
	past := map[string]string{"confirm": "confirmed", "release": "released"}[word]
	if b.DryRun {
		c.printf("dry run: nothing was changed\n")
	}
	c.printf("%s: %d\nalready %s: %d\n", past, b.Changed, past, b.Already)
	left := 0
	for _, kind := range []struct {
		names []string
		what  string
	}{
		{b.NotFound, "not found"},
		{ambiguousTexts(b.Ambiguous), "refs that several buyers have used (name the reservation by its id)"},
		{b.TooSoon, "the shop may still sell them (wait for their deadlines, or --force)"},
		{b.Conflict, "resolved otherwise meanwhile"},
		{b.RefundNeeded, "their units are sold to others: refund needed"},
		{b.Late, "ended before: confirmed if their units are still there"},
	} {
		if left += len(kind.names); len(kind.names) > 0 {
			c.printf("%s: %d\n%s", kind.what, len(kind.names), someOf(kind.names))
		}
	}
	if left > 0 && !b.DryRun {
		return fmt.Errorf("%d are not %s", left, past)
	}
	return nil
}

// ambiguousTexts name the reservations of each ref.
func ambiguousTexts(refs []adminapi.AmbiguousRef) []string {
	texts := make([]string, len(refs))
	for i, a := range refs {
		words := make([]string, len(a.Reservations))
		for j, r := range a.Reservations {
			words[j] = fmt.Sprintf("%s (%s, buyer %s)", r.ID, r.State, r.Buyer)
		}
		if a.More {
			words = append(words, "and more")
		}
		texts[i] = a.Ref + ": " + strings.Join(words, ", ")
	}
	return texts
}

// someOf lists names, one per line, up to a number that fits on a screen.
func someOf(names []string) string {
	const most = 20
	text := "  " + strings.Join(names[:min(len(names), most)], "\n  ") + "\n"
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf("  and %d more (--json has them all)\n", more)
	}
	return text
}
