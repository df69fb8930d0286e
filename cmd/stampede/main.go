// Command stampede sends a crowd of buyers to an order route, and checks afterwards
// that the shop's orders, the sale's stock and the buyers' answers agree.
//
//	stampede -url http://127.0.0.1:8080/api/order -sku 20002001 -buyers 2000 \
//	         -shop http://127.0.0.1:9000/orders -admin localhost:2019 -sale double11
//
// Without -shop, -admin and -sale it only counts. It exits with 0 if every
// promise held, 1 if one was broken or the crowd could not run, 2 if the flags
// are wrong.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/stockgate/stockgate/internal/stampede"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "stampede:", err)
		os.Exit(1)
	}
}

// errUsage: the flags are wrong, and that has been reported.
var errUsage = errors.New("usage")

// errBroken: the check found broken promises, which the report lists.
var errBroken = errors.New("promises were broken")

// run sends the crowd, checks the results and reports.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	var sources stampede.Sources
	if c.checks() {
		if sources, err = stampede.HTTPSources(c.shop, c.admin, c.sale); err != nil {
			return err
		}
		sources.MaxPerBuyer, sources.MustSell, sources.Settle = c.maxPerBuyer, c.mustSell, c.settle
	}
	var report stampede.Report
	if report.Tally, err = c.crowd.Run(ctx); err != nil {
		return err
	}
	if c.checks() {
		// After an interrupt, still report what the crowd has done.
		evidence, err := sources.Collect(context.WithoutCancel(ctx), report.Tally)
		if err != nil {
			return err
		}
		verdict := stampede.Check(evidence, c.tolerance)
		report.Evidence, report.Verdict = &evidence, &verdict
	}
	if c.json {
		err = json.NewEncoder(stdout).Encode(report)
	} else {
		_, err = report.WriteTo(stdout)
	}
	switch {
	case err != nil:
		return err
	case report.Verdict == nil:
		fmt.Fprintln(stderr, "stampede: nothing was checked: that needs -shop, -admin and -sale")
	case len(report.Verdict.Violations) > 0:
		return fmt.Errorf("%d %w", len(report.Verdict.Violations), errBroken)
	}
	return nil
}
