package command

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

	"github.com/stockgate/stockgate/caddymodule/operate/demo"
	"github.com/stockgate/stockgate/internal/store/shard"
)

func demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo [--once] [--waitlist] [--buyers <n>] [--stock <n>] [--listen <address>] [--redis <address> | embedded]",
		Short: "Runs a sale with a shop and a crowd of buyers in this process",
		Long: `
Runs a whole sale in this process: a shop, the gate in front of it, and a crowd
of buyers that all want the same item at once, by real HTTP. Then it compares
the orders of the shop, the stock of the sale and the answers to the buyers,
and prints the tally.

With --waitlist the sale has a waiting list, and one payment in three fails: buyers
who find all units held wait, and get what comes back in their order.

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
	flags.Bool("waitlist", false, "Let buyers wait for units that others hold; some payments fail")
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
	err = demo.Run(ctx, o, c.cmd.OutOrStdout())
	if _, ok := errors.AsType[demo.OptionError](err); ok {
		return usageError{err}
	}
	if _, ok := errors.AsType[demo.NoAnswerError](err); ok {
		return noAnswerError{err}
	}
	return err
}

func readDemoFlags(c *call) (demo.Options, error) {
	flags := c.cmd.Flags()
	o := demo.Options{Once: c.flag("once"), Listen: c.text("listen"), Redis: c.text("redis"), JSON: c.flag("json"), Waitlist: c.flag("waitlist")}
	o.Buyers, _ = flags.GetInt("buyers")
	o.Stock, _ = flags.GetInt64("stock")
	if o.Once && !flags.Changed("listen") {
		o.Listen = "127.0.0.1:0"
	}
	if o.Redis == "embedded" {
		o.Redis = ""
	}
	_, _, badListen := net.SplitHostPort(o.Listen)
	switch {
	case o.Buyers < 1 || o.Buyers > demo.MaxBuyers:
		return o, fmt.Errorf("--buyers %d: give 1 to %d", o.Buyers, demo.MaxBuyers)
	case o.Stock < 1 || o.Stock > demo.MaxStock:
		return o, fmt.Errorf("--stock %d: give 1 to %d", o.Stock, demo.MaxStock)
	case badListen != nil || strings.ContainsAny(o.Listen, " \t\n{}\"`"):
		return o, fmt.Errorf("--listen %q: write host:port, as in 127.0.0.1:8080", o.Listen)
	case o.JSON && !o.Once:
		return o, errors.New("--json prints the tally and ends: give --once too")
	case strings.ContainsAny(o.Redis, " \t\n{}\"`"):
		return o, errors.New("--redis: write host:port, or a redis:// or rediss:// URL")
	case o.Redis != "":
		redis := shard.Options{Addresses: []string{o.Redis}}
		return o, redis.Validate()
	}
	return o, nil
}
