// Command xbuild builds a Caddy from a file such as xcaddy.json, which names the Caddy
// version and the modules to compile in.
//
//	go run ./cmd/xbuild --output bin/caddy
//
// It runs xcaddy if that is installed, and otherwise does the same steps with the go
// tool. Then it lists the modules of the result, and fails if an expected one is
// missing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	f, err := parseFlags(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(2)
	}
	xcaddy, _ := exec.LookPath("xcaddy") // none: the go tool does it
	if err := run(ctx, f, xcaddy, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "xbuild:", err)
		os.Exit(1)
	}
}

// run builds as the flags say and checks the result. An empty xcaddy means that it is
// not installed.
func run(ctx context.Context, f flags, xcaddy string, stdout, stderr io.Writer) error {
	c, err := readConfig(f.config)
	if err != nil {
		return err
	}
	for _, d := range f.with {
		c.add(d)
	}
	output, err := filepath.Abs(f.output)
	if err != nil {
		return fmt.Errorf("find --output: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return fmt.Errorf("make the directory of --output: %w", err)
	}
	b := builder{config: c, output: output, stdout: stdout, stderr: stderr}
	if xcaddy != "" {
		err = b.withXcaddy(ctx, xcaddy)
	} else {
		err = b.withGo(ctx)
	}
	if err != nil {
		return err
	}
	built, err := listModules(ctx, output)
	if err != nil {
		return err
	}
	report(stdout, output, c, built)
	return built.expect(slices.Concat(c.Expect, f.expect))
}

// flags are what the command line says.
type flags struct {
	config string
	output string
	with   []dependency
	expect []string
}

// parseFlags reads the command line. It writes errors to stderr.
func parseFlags(args []string, stderr io.Writer) (flags, error) {
	var f flags
	fs := flag.NewFlagSet("xbuild", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&f.config, "config", "xcaddy.json", "the `file` that says what to build")
	fs.StringVar(&f.output, "output", filepath.Join("bin", "caddy"), "the `file` to build")
	fs.Func("with", "a further module, or another place for one of the file: `module[@version][=directory]`; repeatable", func(s string) error {
		d, err := parseWith(s)
		f.with = append(f.with, d)
		return err
	})
	fs.Func("expect", "Caddy module `ids` that the result must have, separated by commas; repeatable", func(s string) error {
		for id := range strings.SplitSeq(s, ",") {
			if id = strings.TrimSpace(id); id != "" {
				f.expect = append(f.expect, id)
			}
		}
		return nil
	})
	if err := fs.Parse(args); err != nil {
		return f, err // which fs has written already
	}
	if fs.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q: everything is a flag, see --help", fs.Arg(0))
		fmt.Fprintln(stderr, "xbuild:", err)
		return f, err
	}
	return f, nil
}
