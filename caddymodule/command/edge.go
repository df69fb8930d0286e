package command

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

func edgeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "edge <command>", Short: "Ends the warning about an edge that does not come back"}
	group(cmd, &cobra.Command{
		Use: "forget <edge>", Short: "Ends the warning about an edge that does not come back",
		Long: `
'doctor' and the dashboard warn about an edge that is not heard any more although it
was not stopped, until it is heard again, another one has started on its machine, or
the sale is over. This command ends the warning about an edge that does not come back,
by the name that the warning has. The edge itself is not asked or changed: if it is
heard again, it sells.`,
		Example: "  $ caddy stockgate edge forget web-2-4TLTJ7CGQPNFGCUZQOWUJJGFDU",
		RunE:    action(forgetEdge, "edge"),
	})
	return cmd
}

func forgetEdge(c *call) error {
	var f adminapi.EdgeForgotten
	if err := c.ask(http.MethodDelete, "edges/"+segment(c.args[0]), nil, &f); err != nil {
		return err
	}
	if !f.WasSilent {
		c.printf("no warning names the edge %s: nothing was changed\n", f.ID)
		return nil
	}
	c.printf("%s is forgotten\n", f.ID)
	return nil
}
