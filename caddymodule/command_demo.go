package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/reservation"
)

// Bounds of the demo: one process holds both ends of every connection.
const (
	demoMostBuyers = 100_000
	demoMostStock  = 1_000_000
)

func demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo [--once] [--buyers <n>] [--stock <n>] [--listen <address>] [--redis <address> | embedded]",
		Short: "Runs a sale with a shop and a crowd of buyers in this process",
		Long: `
Runs a whole sale in this process: a shop, the gate in front of it, and a crowd
of buyers that all want the same item at once, by real HTTP. Then it compares
what the shop has written, what the books say and what the buyers were told,
and prints the tally.

Without --once the site stays up, with another item to buy, until Ctrl-C.

Nothing of yours is touched: keys and files are in a temporary directory, and a
Redis of yours gets keys of a prefix made up for this run, which are removed at
the end. No Caddy needs to run, and one that runs is not disturbed.

Exit status: 0 every promise held; 1 one was broken, or the demo could not run;
2 the command line is wrong; 3 Redis does not answer.`,
		Example: `  $ caddy stockgate demo --once
  $ caddy stockgate demo --buyers 5000 --stock 10 --redis 127.0.0.1:6379`,
	}
	flags := cmd.Flags()
	flags.Bool("once", false, "End after the sale; listens on a free port unless --listen is given")
	flags.Int("buyers", 2000, "How many buyers come")
	flags.Int64("stock", 100, "How many units there are")
	flags.String("listen", "127.0.0.1:8080", "Address of the site")
	flags.String("redis", "embedded", "Redis that keeps the stock: host:port, a redis:// URL, or embedded")
	cmd.RunE = action(runDemo)
	return cmd
}

// runDemo reads the flags and runs the demo until it ends or is interrupted.
func runDemo(c *call) error {
	o, err := readDemoFlags(c)
	if err != nil {
		return usageError{err}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &demo{demoOptions: o, out: c.cmd.OutOrStdout()}
	err = d.run(ctx)
	return errors.Join(err, d.close())
}

func readDemoFlags(c *call) (demoOptions, error) {
	flags := c.cmd.Flags()
	o := demoOptions{once: c.flag("once"), listen: c.text("listen"), redis: c.text("redis"), json: c.flag("json")}
	o.buyers, _ = flags.GetInt("buyers")
	o.stock, _ = flags.GetInt64("stock")
	if o.once && !flags.Changed("listen") {
		o.listen = "127.0.0.1:0"
	}
	if o.redis == "embedded" {
		o.redis = ""
	}
	_, _, badListen := net.SplitHostPort(o.listen)
	switch {
	case o.buyers < 1 || o.buyers > demoMostBuyers:
		return o, fmt.Errorf("--buyers %d: give 1 to %d", o.buyers, demoMostBuyers)
	case o.stock < 1 || o.stock > demoMostStock:
		return o, fmt.Errorf("--stock %d: give 1 to %d", o.stock, demoMostStock)
	case badListen != nil || strings.ContainsAny(o.listen, " \t\n{}\"`"):
		return o, fmt.Errorf("--listen %q: write host:port, as in 127.0.0.1:8080", o.listen)
	case o.json && !o.once:
		return o, errors.New("--json prints the tally and ends: give --once too")
	case strings.ContainsAny(o.redis, " \t\n{}\"`"):
		return o, errors.New("--redis: write host:port, or a redis:// or rediss:// URL")
	case o.redis != "":
		redis := reservation.Options{Addresses: []string{o.redis}}
		return o, redis.Validate()
	}
	return o, nil
}
