package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

func moveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "move --to <address>|<directory> [--sentinel <master>|--cluster] [--username <user>] [--password-file <file>] [--tls] [--ca <files>] [--undo]",
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

--to is host:port, several with commas, a redis://, rediss:// or unix:// URL, or the
whole path of a directory, which Caddy makes. Caddy reads the files that the flags name
on its own machine, passwords excepted.`,
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
	cmd.Flags().String("sentinel-username", "", "The user at the sentinels")
	cmd.Flags().String("sentinel-password-file", "", "A file with the password at the sentinels")
	cmd.Flags().Bool("tls", false, "Connect with TLS")
	cmd.Flags().StringSlice("ca", nil, "Files with the authorities that may sign the certificate there, in the place of the system's")
	cmd.Flags().String("certificate", "", "A file with the client certificate")
	cmd.Flags().String("key", "", "A file with the key of the client certificate")
	cmd.Flags().String("server-name", "", "The name in the certificate there, if it is not the host's")
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
	case c.describesRedis() || strings.ContainsAny(to, "@") || strings.HasPrefix(to, "rediss:"):
		with = ", with the user, password, tls, sentinel or cluster that you gave here"
	}
	c.printf("Write `%s`%s into the Caddyfile, reload, and open the sales.\n", option, with)
	return nil
}

// ofRedis are the flags that only a Redis has.
var ofRedis = []string{"sentinel", "sentinel-username", "sentinel-password-file", "cluster", "username", "password-file", "tls", "ca", "certificate", "key", "server-name"}

// describesRedis tells whether one of the flags of a Redis is given.
func (c *call) describesRedis() bool { return slices.ContainsFunc(ofRedis, c.cmd.Flags().Changed) }

// moveRequest reads the flags.
func (c *call) moveRequest(to string) (*adminapi.MoveRequest, error) {
	switch {
	case filepath.IsAbs(to):
		if c.describesRedis() {
			return nil, usageError{fmt.Errorf("%s is a directory: the other options are for a Redis only", to)}
		}
		return &adminapi.MoveRequest{Store: to}, nil
	case strings.HasPrefix(to, "."), strings.Contains(to, "/") && !strings.Contains(to, "://"):
		return nil, usageError{fmt.Errorf("--to %s: write the whole path of a directory, such as /var/lib/stockgate, or an address, such as redis://10.0.0.5:6379", to)}
	}
	ca, err := c.cmd.Flags().GetStringSlice("ca")
	if err != nil {
		return nil, err
	}
	asked := &adminapi.MoveRequest{
		Redis: strings.Split(to, ","), Cluster: c.flag("cluster"), Username: c.text("username"), TLS: c.flag("tls"),
		Sentinel: c.text("sentinel"), SentinelUsername: c.text("sentinel-username"),
		CA: ca, Certificate: c.text("certificate"), Key: c.text("key"), ServerName: c.text("server-name"),
	}
	for _, name := range slices.Concat(asked.CA, []string{asked.Certificate, asked.Key}) {
		if name != "" && !filepath.IsAbs(name) {
			return nil, usageError{fmt.Errorf("%s: write the whole path: Caddy reads the file, in a directory of its own", name)}
		}
	}
	if asked.Password, err = c.password("password-file"); err != nil {
		return nil, err
	}
	asked.SentinelPassword, err = c.password("sentinel-password-file")
	return asked, err
}

// password reads the file that a flag names; empty: the flag is not given.
func (c *call) password(flag string) (string, error) {
	file := c.text(flag)
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", usageError{err}
	}
	password := strings.TrimSpace(string(text))
	if password == "" {
		return "", usageError{fmt.Errorf("%s is empty: it has no password", file)}
	}
	return password, nil
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
