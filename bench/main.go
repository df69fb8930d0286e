// Command bench compares Stockgate with what shops use instead: plain Caddy, and nginx
// with Lua. See README.md beside it; `make bench` runs it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stockgate/stockgate/bench/connect"
	"github.com/stockgate/stockgate/bench/drive"
	"github.com/stockgate/stockgate/bench/measure"
	"github.com/stockgate/stockgate/bench/peer"
	"github.com/stockgate/stockgate/bench/suite"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch { // these are started by the benchmark itself
	case len(args) == 2 && args[0] == "shop":
		return peer.ServeShop(args[1])
	case len(args) == 2 && args[0] == "drive":
		return drive.Main(ctx, args[1], os.Stdin, os.Stdout)
	case len(args) == 2 && args[0] == "connect":
		return connect.Main(ctx, args[1], os.Stdin, os.Stdout)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	o := suite.Options{Out: os.Stdout}
	flags.DurationVar(&o.For, "time", 10*time.Second, "how long one run takes, in whole seconds")
	flags.IntVar(&o.Runs, "runs", 7, "how often each peer runs")
	flags.IntVar(&o.Connections, "connections", 64, "how many of them the load opens")
	flags.IntVar(&o.Attempts, "attempts", 0, "attempts of a whole sale (default 1,000,000, with runs below 5s 100,000)")
	flags.IntVar(&o.Server, "server-core", 0, "core of what is measured")
	flags.IntVar(&o.Load, "load-core", 1, "core of the load, the shop and Redis")
	flags.StringVar(&o.Caddy, "caddy", "bin/caddy", "Caddy with Stockgate")
	flags.StringVar(&o.CaddyPlain, "caddy-no-pgo", "", "the same built with -pgo=off, for the cases levers-*")
	flags.StringVar(&o.Profiles, "profiles", "", "directory for CPU profiles of the gates")
	pgo := flags.Bool("pgo", false, "the binary was built with a profile; noted in the results")
	results := flags.String("results", "", "file for the results as JSON")
	list := flags.Bool("list", false, "list the cases and stop")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: bench [flags] [case or pattern]...")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *list {
		for _, c := range suite.Names() {
			fmt.Printf("%-14s %s\n", c[0], c[1])
		}
		return nil
	}
	o.Cases = flags.Args()
	if o.Attempts == 0 {
		o.Attempts = 1_000_000
		if o.For < 5*time.Second {
			o.Attempts = 100_000
		}
	}
	if o.Attempts < 2000 || o.Runs < 1 || o.For < time.Second || o.Connections < 8 {
		return errors.New("at least 2000 attempts, 1 run, 1s and 8 connections are needed")
	}
	if o.Server == o.Load {
		return errors.New("-server-core and -load-core must differ: what is measured needs a core for itself")
	}
	// Debian keeps nginx where only root looks
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/usr/local/sbin"); err != nil {
		return err
	}
	machine := measure.ThisMachine()
	machine.PGO = *pgo
	if machine.Cores <= max(o.Server, o.Load) {
		return fmt.Errorf("there are %d cores: there is no core %d", machine.Cores, max(o.Server, o.Load))
	}
	return compare(ctx, o, machine, *results)
}

// compare runs the suite and writes what it found.
func compare(ctx context.Context, o suite.Options, machine measure.Machine, results string) (err error) {
	for _, binary := range []*string{&o.Caddy, &o.CaddyPlain} {
		if *binary == "" {
			continue
		}
		if *binary, err = filepath.Abs(*binary); err != nil {
			return err
		}
		if _, err := exec.LookPath(*binary); err != nil {
			return fmt.Errorf("%w; `make bench` builds it", err)
		}
	}
	if o.Profiles != "" {
		if err := os.MkdirAll(o.Profiles, 0o755); err != nil {
			return err
		}
	}
	if o.Self, err = os.Executable(); err != nil {
		return err
	}
	if o.Dir, err = os.MkdirTemp("", "stockgate-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()

	head(o.Out, o, machine)
	report, failed := suite.Run(ctx, o)
	if report == nil {
		return failed
	}
	report.Machine = machine
	if len(report.Goals) > 0 {
		if err := measure.PrintGoals(o.Out, report.Goals); err != nil {
			return err
		}
	}
	if results != "" && len(report.Cases) > 0 {
		text, err := json.MarshalIndent(report, "", "\t")
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(results), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(results, append(text, '\n'), 0o644); err != nil {
			return err
		}
		fmt.Fprintln(o.Out, "\nwritten to", results)
	}
	return failed
}

// head says where and how it is measured.
func head(w io.Writer, o suite.Options, m measure.Machine) {
	pgo := "without a profile"
	if m.PGO {
		pgo = "with a profile (PGO)"
	}
	fmt.Fprintf(w, "%s, %d cores, %s; %s, %s; %s, built %s\n", m.CPU, m.Cores, m.Memory, m.System, m.Kernel, m.Go, pgo)
	for _, name := range []string{"nginx", "redis-server", "wrk", "h2load"} {
		fmt.Fprintf(w, "%s: %s\n", name, strings.TrimSpace(m.Programs[name]))
	}
	fmt.Fprintf(w, "server on core %d, load, shop and Redis on core %d; %d connections; %d runs of %v each, in turn; medians\n\n",
		o.Server, o.Load, o.Connections, o.Runs, o.For)
}
