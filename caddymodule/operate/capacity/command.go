package capacity

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Command is the command `plan`. It asks no Caddy. All its errors are mistakes in the command line.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan --buyers <n> --seconds <s> [--attempts-per-buyer <n>] [--units <n>] [--tls] [--http2] [--connected <share>] [--resumed <share>] [--cores-per-edge <n>] [--busy <share>] [--spare <n>] [--<rate> <number>]...",
		Short: "Says what a sale needs: edges, cores, memory, Redis and bandwidth",
		Long: `
Says what a sale needs: edges, cores, memory for connections, Redis and bandwidth, with
the arithmetic. It asks no Caddy and no Redis.

The rates are what one machine has measured, which the output names. Yours differ:
run 'make bench' on a machine like your edges, and give its numbers with the flags
of the rates. Without --tls a balancer has the buyers' connections. See
docs/capacity.md.`,
		Example: `  $ caddy stockgate plan --buyers 1000000 --seconds 10 --units 10000 --tls --http2 --resumed 0.2`,
	}
	flags := cmd.Flags()
	var s Sale
	flags.Int64Var(&s.Buyers, "buyers", 0, "How many buyers come")
	flags.Float64Var(&s.Seconds, "seconds", 0, "In how many seconds they come")
	flags.Float64Var(&s.Attempts, "attempts-per-buyer", 1, "How often each tries, on one connection")
	flags.Int64Var(&s.Units, "units", 0, "How many units are sold meanwhile, one an order")
	flags.BoolVar(&s.TLS, "tls", false, "Buyers connect to the edges, over TLS")
	flags.BoolVar(&s.HTTP2, "http2", false, "Buyers speak HTTP/2; needs --tls")
	flags.Float64Var(&s.Connected, "connected", 0, "Share of the buyers whose connection is there before they try")
	flags.Float64Var(&s.Resumed, "resumed", 0, "Share of the new connections that resume a TLS session")
	flags.IntVar(&s.Cores, "cores-per-edge", 8, "How many cores an edge has")
	flags.Float64Var(&s.Busy, "busy", 0.7, "Share of a core that is used at most")
	flags.IntVar(&s.Spare, "spare", 1, "How many edges may fail")
	for _, r := range table {
		flags.Float64(r.flag, 0, fmt.Sprintf("%s, in %s (default: as measured)", r.usage, r.unit))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("it takes flags and no arguments, found %s", strings.Join(args, " "))
		}
		given := make(map[string]float64)
		for _, r := range table {
			if flags.Changed(r.flag) {
				given[r.flag], _ = flags.GetFloat64(r.flag) // it is one
			}
		}
		p, err := New(s, given)
		if err != nil {
			return err
		}
		if asJSON, _ := cmd.Flags().GetBool("json"); asJSON {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(p)
		}
		_, err = p.WriteTo(cmd.OutOrStdout())
		return err
	}
	return cmd
}
