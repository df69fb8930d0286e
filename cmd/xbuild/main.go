// Command xbuild builds a Caddy from a file such as xcaddy.json, which names the Caddy
// version and the modules to compile in.
//
//	go run ./cmd/xbuild --output bin/caddy
//
// It takes the steps of xcaddy with the go tool alone. Then it asks the result for its
// modules, and fails if one that is expected is missing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
)

// release are the flags of a build for others, as xcaddy has them: no paths of this
// machine and no symbols.
var release = []string{"-trimpath", "-ldflags", "-w -s"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], release, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "xbuild:", err)
		os.Exit(1)
	}
}

// errUsage: the command line is wrong, and stderr says how.
var errUsage = errors.New("wrong usage")

// run builds what the arguments ask for, with these flags of "go build", and looks at the result.
func run(ctx context.Context, args, flags []string, stderr io.Writer) error {
	fs := flag.NewFlagSet("xbuild", flag.ContinueOnError)
	fs.SetOutput(stderr)
	file := fs.String("config", "xcaddy.json", "the `file` that says what to build")
	output := fs.String("output", filepath.Join("bin", "caddy"), "the `file` to build")
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return errUsage // which fs has written already
	case fs.NArg() > 0:
		fmt.Fprintf(stderr, "xbuild: unexpected argument %q: everything is a flag, see --help\n", fs.Arg(0))
		return errUsage
	}
	c, err := readConfig(*file)
	if err != nil {
		return err
	}
	caddy, err := filepath.Abs(*output)
	if err != nil {
		return fmt.Errorf("find --output: %w", err)
	}
	fmt.Fprintln(stderr, "xbuild: the first build takes 2 to 6 minutes on a small machine")
	if err := build(ctx, c, caddy, flags, stderr); err != nil {
		return err
	}
	return expect(ctx, caddy, c.Expect)
}
