package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/filters/refuse"
)

func tryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "try [--gate <name>] [--answer <file>] [--from <address>] [--set <placeholder>=<value>]... < request.http",
		Short: "Shows what a gate makes of a saved request or answer",
		Long: `
Shows what a gate of the running Caddy reads from a saved request (buyer,
identities, sale, lines), what its filters would say, and with --answer which of
its rules would decide on that answer of the shop. Nothing is reserved, counted
or sent to the shop.

The request comes on standard input as it goes over the wire with HTTP/1.1: the
line POST /path HTTP/1.1, headers, an empty line, the body. Lines may end in a
plain line feed, and Content-Length may be left out. The answer is saved alike.

The gate alone is asked: its matcher is not evaluated, and what other directives
would set has no value unless --set gives it.

Exit status: 0 it would pass; 1 it would be refused; 2 the command line, the
request or the answer is wrong; 3 no answer.`,
		Example: `  $ caddy stockgate try < order.http
  $ caddy stockgate try --gate main --answer sold.http < order.http
  $ caddy stockgate try --set http.auth.user.id=u42 --from 203.0.113.7 < order.http`,
		RunE: action(tryGate),
	}
	cmd.Flags().String("gate", "", "Name of the gate (default: the only one)")
	cmd.Flags().String("answer", "", "File with an answer of the shop")
	cmd.Flags().String("from", "", "IP address that the request comes from (default: 127.0.0.1)")
	cmd.Flags().StringArray("set", nil, "Placeholder that another directive sets, and its value")
	return cmd
}

func tryGate(c *call) error {
	t := adminapi.TryRequest{From: c.text("from")}
	var err error
	if t.Request, err = io.ReadAll(io.LimitReader(c.cmd.InOrStdin(), adminapi.TryBody)); err != nil {
		return usageError{err}
	}
	if len(t.Request) == 0 {
		return usageError{errors.New("no request on standard input: write < request.http")}
	}
	if file := c.text("answer"); file != "" {
		if t.Answer, err = os.ReadFile(file); err != nil {
			return usageError{err}
		}
		if len(t.Answer) == 0 {
			return usageError{fmt.Errorf("%s is empty", file)}
		}
	}
	sets, err := c.cmd.Flags().GetStringArray("set")
	if err != nil {
		return err
	}
	for _, set := range sets {
		name, value, ok := strings.Cut(set, "=")
		if !ok || name == "" {
			return usageError{fmt.Errorf("--set %q: write placeholder=value, such as http.auth.user.id=u42", set)}
		}
		if t.Placeholders == nil {
			t.Placeholders = make(map[string]string)
		}
		t.Placeholders[name] = value
	}
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	path := "try"
	if gate := c.text("gate"); gate != "" {
		path = "gates/" + segment(gate) + "/try"
	}
	var got adminapi.TryAnswer
	if err := c.ask(http.MethodPost, path, body, &got); err != nil {
		return err
	}
	if err := c.showTried(&got); err != nil {
		return err
	}
	if no := got.Refusal; no != nil {
		return fmt.Errorf("it would be refused: %s", no.Reason)
	}
	return nil
}

// showTried prints how a gate decides on a request.
func (c *call) showTried(got *adminapi.TryAnswer) error {
	t := c.table("GATE", got.Gate)
	t.row("buyer", got.Buyer)
	for _, kind := range slices.Sorted(maps.Keys(got.Identities)) {
		t.row(kind, got.Identities[kind])
	}
	if got.Region != "" {
		t.row("region", got.Region)
	}
	t.row("sale", strings.TrimSpace(got.Sale+" "+status(got)))
	t.row("lines", linesText(got.Lines))
	if got.Ref != "" {
		t.row("ref", got.Ref)
	}
	switch no := got.Refusal; {
	case no != nil:
		t.row("verdict", refusalText(no))
	case got.Check:
		t.row("verdict", "passes: this gate only checks")
	case got.Replayed:
		t.row("verdict", "bought already: the shop's stored answer, of reservation "+got.Reservation)
	case got.Reservation != "":
		t.row("verdict", "bought already: forwarded again with the token of reservation "+got.Reservation)
	case got.Unlisted:
		t.row("verdict", "passes without a reservation: no sale lists its items, and the gate has `other_items pass`")
	default:
		t.row("verdict", "passes the filters: stock and limits decide when it reserves")
	}
	if a := got.Answer; a != nil {
		by := "no rule matches"
		if a.Rule != "" {
			by = fmt.Sprintf("by %s of the rule: %s", a.Matched, a.Rule)
		}
		t.row("answer", fmt.Sprintf("%d: %s, %s", a.Status, a.Outcome, by))
	}
	for _, note := range got.Notes {
		t.row("note", note)
	}
	return t.print()
}

func status(got *adminapi.TryAnswer) string {
	if got.SaleStatus == "" {
		return ""
	}
	return "(" + string(got.SaleStatus) + ")"
}

// refusalText formats a refusal in one line.
func refusalText(no *refuse.ProblemDocument) string {
	text := fmt.Sprintf("%d %s: %s", no.Status, no.Reason, no.Title)
	if no.Detail != "" {
		text += " " + no.Detail
	}
	if no.SKU != "" {
		text += " (" + no.SKU + ")"
	}
	if no.RetryAfter > 0 {
		text += fmt.Sprintf(" Retry after %d s.", no.RetryAfter)
	}
	return text
}
