// Package suite defines the benchmark: the cases, the peers in each, the procedure of a
// run, and the goals.
package suite

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/bench/measure"
	"github.com/stockgate/stockgate/bench/peer"
)

// Options are how to measure.
type Options struct {
	// Cases are those to run, by name or by the pattern of path.Match; none: all but the
	// levers.
	Cases       []string
	For         time.Duration // one run
	Runs        int           // of each peer
	Connections int
	Attempts    int // of a whole sale
	Server      int // core of what is measured
	Load        int // core of everything else
	Caddy       string
	CaddyPlain  string // the same without a profile, for the levers; empty: none
	Profiles    string // directory for CPU profiles of the gates; empty: none
	Dir         string // scratch
	Self        string // this program
	Out         io.Writer
}

// bench is one call of Run.
type bench struct {
	Options
	report measure.Report
	shop   *peer.Shop
	runs   int64 // so far: makes numbers that were never used before
}

// Run measures the cases, prints a table after each, and returns all of it. What was
// measured before an error is returned with it.
func Run(ctx context.Context, o Options) (*measure.Report, error) {
	b := &bench{Options: o}
	b.report.Settings = measure.Settings{
		Seconds: o.For.Seconds(), Runs: o.Runs, Connections: o.Connections, Attempts: o.Attempts, ServerCore: o.Server, LoadCore: o.Load,
	}
	chosen, err := choose(o.Cases)
	if err != nil {
		return nil, err
	}
	if b.shop, err = peer.StartShop(o.Load, o.Dir, o.Self); err != nil {
		return nil, err
	}
	defer b.shop.Stop()
	var failed []string
	for _, c := range chosen {
		b.report.Cases = append(b.report.Cases, measure.Case{Name: c.name, About: c.about})
		result := &b.report.Cases[len(b.report.Cases)-1]
		if err := c.measure(ctx, b, c, result); err != nil {
			// the other cases may still work; this one must not look as if it did
			b.report.Cases = b.report.Cases[:len(b.report.Cases)-1]
			failed = append(failed, c.name)
			b.report.NotRun = append(b.report.NotRun, fmt.Sprintf("%s: %v", c.name, err))
			fmt.Fprintf(o.Out, "%s: FAILED: %v\n\n", c.name, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		result.Relate()
		if err := result.Print(o.Out); err != nil {
			return nil, err
		}
		fmt.Fprintln(o.Out)
	}
	b.report.Goals = judge(b.report.Cases)
	if len(failed) > 0 {
		return &b.report, fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return &b.report, nil
}

// left notes that something did not run.
func (b *bench) left(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(b.report.NotRun, text) {
		b.report.NotRun = append(b.report.NotRun, text)
	}
	fmt.Fprintln(b.Out, text)
}

// numbers reserves numbers for one run.
func (b *bench) numbers() int64 {
	b.runs++
	return b.runs * 20_000_000 % 10_000_000_000
}

// dir makes a directory for a case.
func (b *bench) dir(name string) (string, error) {
	dir := filepath.Join(b.Dir, name)
	return dir, os.MkdirAll(dir, 0o755)
}
