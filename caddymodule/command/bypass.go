package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

func bypassCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bypass [<off>] [<gate>] [--for <duration>] [--reason <text>]",
		Short: "Lets the orders of a gate pass without a reservation",
		Long: `
Lets the orders of a gate pass to the shop without a reservation and without a token,
for a time: for when Redis is away, or a rule refuses honest buyers, and the shop is to
sell by itself. It needs no Redis, is about this edge alone, and survives a reload and a
restart. Run it at each edge. Of lists, rates, challenges, limits and stock none counts;
max_in_flight does.

Redis does not know what the shop sells meanwhile. So when the bypass ends and orders
have passed, the sales of the gate are paused before it sells again: compare them with
the shop, and open them. A shop that verifies tokens refuses these orders, unless its
check is turned off too.

'off' ends a bypass of this edge. Without a gate it means the only one. Without any
argument the command lists the bypasses of all edges.`,
		Example: `  $ caddy stockgate bypass pay --for 15m --reason "redis is down"
  $ caddy stockgate bypass
  $ caddy stockgate bypass off pay`,
		RunE: func(cmd *cobra.Command, given []string) error {
			if len(given) > 2 || len(given) == 2 && !slices.Contains(given, "off") {
				return finish(cmd, usageError{fmt.Errorf("it takes one gate at a time, and off to end a bypass: %s", cmd.UseLine())})
			}
			return perform(cmd, given, bypassGate, "gate")
		},
	}
	cmd.Flags().String("for", "", "How long, 1s to 24h, such as 15m: it ends by itself")
	cmd.Flags().String("reason", "", "Why, for the log, the journal and other operators")
	return cmd
}

// bypassPath is the path of a gate's bypass; without a name it means the only gate.
func (c *call) bypassPath() string {
	if len(c.args) == 0 {
		return "bypass"
	}
	return "gates/" + segment(c.args[0]) + "/bypass"
}

func bypassGate(c *call) error {
	length, reason := c.text("for"), c.text("reason")
	if at := slices.Index(c.args, "off"); at >= 0 && (len(c.args) == 2 || length == "") {
		if length != "" {
			return usageError{errors.New("off ends a bypass at once, and --for begins one: leave one of them out")}
		}
		c.args = slices.Delete(slices.Clone(c.args), at, at+1)
		return endBypass(c)
	}
	switch _, err := time.ParseDuration(length); {
	case length == "" && len(c.args) == 0 && reason == "":
		return listBypasses(c)
	case length == "":
		return usageError{errors.New("say for how long, such as --for 15m: a bypass ends by itself")}
	case err != nil:
		return usageError{fmt.Errorf("--for %q: write a length of time such as 15m", length)}
	}
	body, err := json.Marshal(adminapi.BypassRequest{For: length, Reason: reason})
	if err != nil {
		return err
	}
	var begun adminapi.BypassBegun
	if err := c.ask(http.MethodPost, c.bypassPath(), body, &begun); err != nil {
		return err
	}
	c.printf("%s\n", c.paint(terminal.Warn, upper(begun.Sentence())+"."))
	if len(begun.Deciding) > 0 {
		c.printf("At this edge decide as before: %s.\n", strings.Join(begun.Deciding, ", "))
	}
	c.printf("Other edges go on as before: run this at each. `%s` ends it.\n", begun.Off())
	if !begun.Check {
		c.printf("A shop that verifies tokens refuses these orders: turn that off there too. When the bypass has ended, compare the sales with the shop before you open them.\n")
	}
	return nil
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func listBypasses(c *call) error {
	var list adminapi.BypassList
	if err := c.ask(http.MethodGet, "bypasses", nil, &list); err != nil {
		return err
	}
	for i := range list.Bypasses {
		c.printf("%s\n", list.Bypasses[i].Sentence())
	}
	switch {
	case list.Unread != "":
		return errors.New(list.Unread)
	case len(list.Bypasses) == 0:
		c.printf("no gate is bypassed\n")
	}
	return nil
}

func endBypass(c *call) error {
	var ended adminapi.Bypass
	if err := c.ask(http.MethodDelete, c.bypassPath(), nil, &ended); err != nil {
		return err
	}
	if ended.Check || ended.Orders == 0 && !ended.Restarted {
		c.printf("%s decides again: no order has passed.\n", upper(ended.Title()))
		return nil
	}
	c.printf("The bypass of %s has ended: %d orders have passed, of which the shop has taken %d.\n", ended.Title(), ended.Orders, ended.Taken)
	c.printf("Its sales are paused as soon as Redis answers. Compare each with the shop, `caddy stockgate reconcile SALE --shop FILE`, and open it.\n")
	return nil
}
