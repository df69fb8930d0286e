package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

func moveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "move --to <address>|<directory> [--sentinel <master>|--cluster] [--username <user>] [--password-file <file>] [--tls] [--undo]",
		Short: "Moves all stock to another Redis, or to a store",
		Long: `
Moves all stock, with everything that was promised, from the store of this machine to
a Redis for several edges, or back into a directory: sales, reservations, limits,
orders in line, journals, lists and the identity secret. The destination must have no
keys under the same key_prefix. The source sells nothing from then on.

Before: pause every open sale, and end all other edges of a Redis. The command waits
until the shop has answered the orders that it was sent. Afterwards: write 'redis' in the
place of 'store' into the Caddyfile, or the other way round, reload, and open the
sales.

If the move fails, the stock stays, and you can open its sales. If Caddy is killed
during it, the stock is frozen: run the same command again, or give up with --undo.

--to is host:port, several with commas, a redis:// or rediss:// URL, or the whole path
of a directory, which Caddy makes.`,
		Example: `  $ caddy stockgate sale pause double11
  $ caddy stockgate move --to redis://10.0.0.5:6379
  $ caddy stockgate move --to /var/lib/stockgate`,
		RunE: action(moveStock),
	}
	cmd.Flags().String("to", "", "Where the stock goes: an address, a URL, or a directory")
	cmd.Flags().String("sentinel", "", "The master's name, where --to has the addresses of its sentinels")
	cmd.Flags().Bool("cluster", false, "--to has nodes of a Redis Cluster")
	cmd.Flags().String("username", "", "The user there")
	cmd.Flags().String("password-file", "", "A file with the password there, so that it is in no list of processes")
	cmd.Flags().Bool("tls", false, "Connect with TLS")
	cmd.Flags().Bool("undo", false, "End a move that has not finished: the stock stays")
	return cmd
}

func moveStock(c *call) error {
	to := c.text("to")
	switch {
	case c.flag("undo") && to != "":
		return usageError{errors.New("--to and --undo exclude each other")}
	case c.flag("undo"):
		return c.undoMove()
	case to == "":
		return usageError{errors.New("say where the stock goes: --to redis://10.0.0.5:6379, or --to /var/lib/stockgate")}
	}
	asked, err := c.moveRequest(to)
	if err != nil {
		return err
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	c.wait = adminapi.MoveTimeout
	c.cmd.SetContext(c.tellStages(c.cmd.Context()))
	var done adminapi.StockMoved
	if err := c.ask(http.MethodPost, "move", body, &done); err != nil {
		return err
	}
	c.printf("All stock is in %s: %s, %d keys. Nothing is sold from where it was.\n", done.Where, plural(len(done.Sales), "sale"), done.Keys)
	option, with := "redis "+done.Where, ""
	switch {
	case asked.Store != "":
		option = "store " + done.Where
	case asked.Sentinel != "" || asked.Cluster || asked.Username != "" || asked.Password != "" || asked.TLS || strings.ContainsAny(to, "@") || strings.HasPrefix(to, "rediss:"):
		with = ", with the user, password, tls, sentinel or cluster that you gave here"
	}
	c.printf("Write `%s`%s into the Caddyfile, reload, and open the sales.\n", option, with)
	return nil
}

// moveRequest reads the flags.
func (c *call) moveRequest(to string) (*adminapi.MoveRequest, error) {
	asked := &adminapi.MoveRequest{Sentinel: c.text("sentinel"), Cluster: c.flag("cluster"), Username: c.text("username"), TLS: c.flag("tls")}
	file := c.text("password-file")
	switch {
	case filepath.IsAbs(to):
		if asked.Sentinel != "" || asked.Cluster || asked.Username != "" || asked.TLS || file != "" {
			return nil, usageError{fmt.Errorf("%s is a directory: the other options are for a Redis only", to)}
		}
		asked.Store = to
		return asked, nil
	case strings.HasPrefix(to, "."), strings.Contains(to, "/") && !strings.Contains(to, "://"):
		return nil, usageError{fmt.Errorf("--to %s: write the whole path of a directory, such as /var/lib/stockgate, or an address, such as redis://10.0.0.5:6379", to)}
	}
	asked.Redis = strings.Split(to, ",")
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, usageError{err}
		}
		if asked.Password = strings.TrimSpace(string(text)); asked.Password == "" {
			return nil, usageError{fmt.Errorf("%s is empty: it has no password", file)}
		}
	}
	return asked, nil
}

func (c *call) undoMove() error {
	c.wait = adminapi.MoveTimeout
	var undone struct{}
	if err := c.ask(http.MethodPost, "move/undo", nil, &undone); err != nil {
		return err
	}
	c.printf("The stock stays where it is. Open its sales to sell on.\n")
	return nil
}
