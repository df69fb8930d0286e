// Command differential shows that shops read an order as the token says.
//
// It generates odd requests from a seed and sends them through a real gate to many
// real servers, each of which answers what a program written for it would have read.
// A request that the gate refuses is fine. One that reaches a shop must be read by every
// shop as the token says; without a token (other_items pass) no shop may read a listed
// item in it. The first mismatches are printed and the exit status is 1.
//
//	go run ./e2e/differential -seed 7 -requests 20000
//	go run ./e2e/differential -seed 7 -only 1234      # one request again, in full
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options are what the command line says.
type options struct {
	seed     uint64
	requests int
	only     int
	workers  int
	caddy    string
	shops    string
	keep     int
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the generator")
	flag.IntVar(&o.requests, "requests", 20000, "how many requests are sent to the gate")
	flag.IntVar(&o.only, "only", -1, "send one generated request, by its number, and print everything")
	flag.IntVar(&o.workers, "workers", 24, "connections to the gate at a time")
	flag.StringVar(&o.caddy, "caddy", "", "a Caddy with Stockgate; default: it is built")
	flag.StringVar(&o.shops, "shops", "", "comma-separated names of shops; default: all")
	flag.IntVar(&o.keep, "mismatches", 10, "stop after so many mismatches")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	source, err := sourceDir()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "differential")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	started := time.Now()
	l := &launcher{dir: dir, source: source}
	defer l.stop()
	shops, err := l.shops(ctx, o.shops)
	if err != nil {
		return err
	}
	g, err := l.gate(ctx, o.caddy, shops)
	if err != nil {
		return err
	}
	if err := selfTest(g); err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	fmt.Printf("gate and %d shops started in %v; a shop that reads wrongly is found\n", len(shops), time.Since(started).Round(time.Second))
	if o.only >= 0 {
		return explain(g, shops, o)
	}
	t := newTally(shops)
	started = time.Now()
	drive(ctx, l, g, shops, o, t)
	t.print(os.Stdout, o, time.Since(started))
	return errors.Join(ctx.Err(), t.verdict(), l.alive())
}

// sourceDir is the directory of this package: the shops are beside it.
func sourceDir() (string, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/stockgate/stockgate/e2e/differential").Output()
	if err != nil {
		return "", fmt.Errorf("run it inside the checkout of Stockgate: %w", err)
	}
	return filepath.Clean(strings.TrimSpace(string(out))), nil
}
