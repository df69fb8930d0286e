package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

func personCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "person <command>", Short: "Shows or erases what Stockgate has of one buyer"}
	const identities = " --buyer <buyer>|--phone <phone>|--email <email>|--device <device>|--home-address <address>|--ip <ip>"
	show := &cobra.Command{
		Use: "show" + identities, Short: "Shows what Stockgate has of a person",
		Long: `
Shows what the sales in Redis, the lists in Redis and this edge's ledger have of a
person, and what was not searched. Redis has keyed hashes: the value is hashed as the
gates do it, in the spelling that 'identities' of the configuration makes of it. Several
identities are one person. - reads the value from standard input, so that no list of
processes has it.

Redis is searched by reading every record and counter: 1,000,000 take some seconds.`,
		Example: "  $ caddy stockgate person show --buyer u42\n  $ caddy stockgate person show --buyer u42 --phone '+86 138 0013 8000'",
		RunE:    action(showPerson),
	}
	erase := &cobra.Command{
		Use: "erase" + identities + " [--lists] [--dry-run] [--yes]", Short: "Removes what neither the books nor a limit need of a person",
		Long: `
Removes the shop's answers to orders of a person that Redis keeps for retries and for
places in a queue, and with --lists the person's entries of lists in Redis. A retry under the
key of such an order hears already_ordered then.

Reservations, movements and counters stay: stock and purchase limits follow from them. They
have keyed hashes, and refs as the shop wrote them. The command says what is kept, and
until when. The same again removes nothing more.`,
		Example: "  $ caddy stockgate person erase --buyer u42 --dry-run\n  $ caddy stockgate person erase --buyer u42 --lists",
		RunE:    action(erasePerson),
	}
	for _, c := range []*cobra.Command{show, erase} {
		for _, kind := range adminapi.PersonKinds {
			c.Flags().String(personFlag(kind), "", "Their "+kind+"; - reads it from standard input")
		}
	}
	erase.Flags().Bool("lists", false, "Remove their entries of lists in Redis too: a denylist lets them buy then")
	erase.Flags().Bool("dry-run", false, "Only say what would be removed")
	erase.Flags().BoolP("yes", "y", false, "Do not ask")
	group(cmd, show, erase)
	return cmd
}

// personFlag is the flag of a kind of identity: --address is where the commands find Caddy.
func personFlag(kind string) string {
	if kind == "address" {
		return "home-address"
	}
	return kind
}

// personRequest reads the identities.
func (c *call) personRequest() (*adminapi.PersonRequest, error) {
	asked, read := &adminapi.PersonRequest{Identities: make(map[string]string)}, false
	for _, kind := range adminapi.PersonKinds {
		value := c.text(personFlag(kind))
		switch {
		case value == "":
			continue
		case value == "-" && read:
			return nil, usageError{errors.New("only one value can be -: standard input is read once")}
		case value == "-":
			read = true
			line, _ := bufio.NewReader(c.cmd.InOrStdin()).ReadString('\n')
			if value = strings.TrimRight(line, "\r\n"); value == "" {
				return nil, usageError{fmt.Errorf("standard input has no %s in its first line", kind)}
			}
		}
		asked.Identities[kind] = value
	}
	if len(asked.Identities) == 0 {
		return nil, usageError{errors.New("which person? Name at least one identity, such as --buyer u42 or --phone 13800138000")}
	}
	return asked, nil
}

// askPerson asks stretch by stretch, and adds the answers up. With --json it prints the sum.
func (c *call) askPerson(word string, asked *adminapi.PersonRequest) (*adminapi.PersonData, error) {
	sum := &adminapi.PersonData{Sales: []adminapi.PersonSale{}}
	for {
		body, err := json.Marshal(asked)
		if err != nil {
			return nil, err
		}
		var part adminapi.PersonData
		if _, err := c.fetch(http.MethodPost, "person/"+word, body, &part); err != nil {
			return nil, err
		}
		part.Sales, part.Kept = append(sum.Sales, part.Sales...), append(sum.Kept, part.Kept...)
		part.Unsearched = append(sum.Unsearched, part.Unsearched...)
		if part.Erased != nil && sum.Erased != nil {
			part.Erased.Answers += sum.Erased.Answers
		}
		sum = &part
		if asked.After = part.Next; part.Next == "" {
			break
		}
	}
	if c.flag("json") {
		return sum, json.NewEncoder(c.cmd.OutOrStdout()).Encode(sum)
	}
	return sum, nil
}

func showPerson(c *call) error {
	asked, err := c.personRequest()
	if err != nil {
		return err
	}
	found, err := c.askPerson("show", asked)
	if err != nil {
		return err
	}
	return c.printPerson(found)
}

func erasePerson(c *call) error {
	asked, err := c.personRequest()
	if err != nil {
		return err
	}
	asked.DryRun, asked.Lists = c.flag("dry-run"), c.flag("lists")
	if !asked.DryRun && !c.flag("yes") && c.onTerminal() {
		if err := c.agreed("erase", "Erasing is for good: a retry of an order gets no answer of the shop any more."); err != nil {
			return err
		}
	}
	found, err := c.askPerson("erase", asked)
	if err != nil || found.Erased == nil {
		return err
	}
	done := "Removed"
	if found.Erased.DryRun {
		done = "Would be removed"
	}
	c.printf("%s: %s of the shop, %s of lists\n", done, plural(found.Erased.Answers, "answer"), entries(found.Erased.ListEntries))
	if len(found.Kept) > 0 {
		kept := c.table("SALE", "KEPT", "UNTIL")
		for _, k := range found.Kept {
			kept.row(k.Sale, k.What, k.Until)
		}
		if err := kept.print(); err != nil {
			return err
		}
	}
	c.printUnsearched(found)
	return nil
}

func (c *call) printPerson(found *adminapi.PersonData) error {
	t := c.table("WHERE", "WHAT", "ITEMS", "REF", "SINCE", "UNTIL")
	for i := range found.Sales {
		s := &found.Sales[i]
		for j := range s.Reservations {
			r := &s.Reservations[j]
			t.row(s.ID, string(r.State)+" "+r.ID, linesText(r.Lines), r.Ref, adminapi.LocalTime(r.Created), "")
		}
		for _, a := range s.Answers {
			t.row(s.ID, fmt.Sprintf("answer of %d bytes to %s", a.Bytes, a.Reservation), "", "", "", adminapi.LocalTime(a.Until))
		}
		for _, n := range s.Counters {
			t.row(s.ID, counterText(&n), "", "", "", timeUnless(n.Ends))
		}
		if s.Shadow > 0 {
			t.row(s.ID, plural(s.Shadow, "counter")+" of dry runs", "", "", "", "")
		}
	}
	for _, l := range found.Lists {
		t.row("list "+l.List, "an entry of kind "+l.Kind, "", "", "", "")
	}
	for _, r := range found.Ledger {
		t.row("ledger", fmt.Sprintf("%s: %s and %s by %s", r.Sale, plural(int(r.Reservations), "reservation"), plural(int(r.Movements), "movement"), r.Kind), "", "", "", "")
	}
	if err := t.print(); err != nil {
		return err
	}
	c.printUnsearched(found)
	return nil
}

func counterText(n *reservation.TracedCounter) string {
	if n.Limit == "" {
		return "unpaid holds by " + n.Kind + ": " + strconv.FormatInt(n.Units, 10)
	}
	return "limit " + n.Limit + ": " + strconv.FormatInt(n.Units, 10)
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return strconv.Itoa(n) + " entries"
}

// timeUnless is a time, empty where there is none.
func timeUnless(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return adminapi.LocalTime(t)
}

func (c *call) printUnsearched(found *adminapi.PersonData) {
	c.printf("\nNot searched:\n")
	for _, what := range found.Unsearched {
		c.printf("  %s\n", what)
	}
}
