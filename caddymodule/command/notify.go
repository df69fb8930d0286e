package command

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

func notifyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "notify <command>", Short: "Tries the receiver of 'notify'"}
	group(cmd, &cobra.Command{
		Use: "test", Short: "Sends a test message",
		Long: `
The edge sends a message at once, past the ones that wait, and this command prints
the receiver's answer. The exit status is 1 if the receiver does not take it.`,
		Example: "  $ caddy stockgate notify test",
		RunE:    action(testNotify),
	})
	return cmd
}

func testNotify(c *call) error {
	var n adminapi.NotifyTested
	if err := c.ask(http.MethodPost, "notify/test", nil, &n); err != nil {
		return err
	}
	c.printf("the receiver (%s) has taken a test message: it answers %d after %d ms\n", n.Form, n.Answer, n.TookMs)
	return nil
}
