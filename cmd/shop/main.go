// Command shop runs a small order backend that verifies reservation tokens, for trying
// out Stockgate and as an example for a real backend.
//
//	shop -jwks http://127.0.0.1:8080/.well-known/jwks.json
//	shop -hmac-env STOCKGATE_KEY -db orders.sqlite
//	shop -verify=false -misbehave 500-after:0.2
//
// See package internal/shop for its routes, and for what -misbehave takes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/stockgate/stockgate/internal/shop"
	"github.com/stockgate/stockgate/token"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

// errUsage: the flags are wrong, and the flag package has reported it.
var errUsage = errors.New("usage")

// grace is how long requests that run may take when the shop is told to stop.
const grace = 5 * time.Second

type config struct {
	listen, db, jwks, hmacEnv, issuer, audience, misbehave string
	verify                                                 bool
	seed                                                   uint64
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	options := shop.Options{
		DB:             c.db,
		AllowMisbehave: c.misbehave != "",
		Misbehave:      c.misbehave,
		Seed:           c.seed,
		Die:            func() { os.Exit(3) },
	}
	if c.verify {
		if options.Verifier, err = verifier(ctx, c, getenv, stderr); err != nil {
			return err
		}
	}
	s, err := shop.New(options)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	fmt.Fprintf(stderr, "shop: listening on http://%s\n", listener.Addr())
	return serve(ctx, listener, s)
}

func serve(ctx context.Context, listener net.Listener, s *shop.Shop) error {
	// No idle timeout: closing a connection just when the proxy sends an order
	// on it is how orders get lost.
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return errors.Join(err, s.Close())
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(bounded); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(err, s.Close())
	}
	return errors.Join(s.Close(), server.Close()) // ends what is still running
}

func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("shop", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.listen, "listen", "127.0.0.1:9000", "`address` to listen on")
	flags.StringVar(&c.db, "db", "", "SQLite `file` of the orders (default: in memory)")
	flags.BoolVar(&c.verify, "verify", true, "check the tokens; false: a shop that was never changed")
	flags.StringVar(&c.jwks, "jwks", "", "`URL` of the edge's public keys")
	flags.StringVar(&c.hmacEnv, "hmac-env", "", "`name` of the environment variable that holds the shared secret")
	flags.StringVar(&c.issuer, "issuer", token.DefaultIssuer, "issuer of the tokens")
	flags.StringVar(&c.audience, "audience", "order-backend", "audience of the tokens")
	flags.StringVar(&c.misbehave, "misbehave", "", "`rules` to misbehave by, or \"none\"; also allows PUT /misbehave and X-Misbehave")
	flags.Uint64Var(&c.seed, "seed", 1, "makes the probabilities of the rules repeatable")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return c, err
	case err != nil:
		return c, fmt.Errorf("%w: %w", errUsage, err)
	case flags.NArg() > 0:
		err = fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(0))
	case !c.verify && (c.jwks != "" || c.hmacEnv != ""):
		err = fmt.Errorf("%w: -verify=false needs neither -jwks nor -hmac-env", errUsage)
	case c.verify && (c.jwks == "") == (c.hmacEnv == ""):
		err = fmt.Errorf("%w: give -jwks or -hmac-env (or -verify=false)", errUsage)
	}
	if err != nil {
		fmt.Fprintln(stderr, "shop:", err)
	}
	return c, err
}

func verifier(ctx context.Context, c config, getenv func(string) string, stderr io.Writer) (*token.Verifier, error) {
	options := token.Options{Issuer: c.issuer, Audience: c.audience}
	if c.hmacEnv != "" {
		if options.Secret = getenv(c.hmacEnv); options.Secret == "" {
			return nil, fmt.Errorf("the environment variable %s is empty: put the edge's secret there", c.hmacEnv)
		}
		return token.NewVerifier(options)
	}
	keys, err := token.NewRemoteKeys(token.RemoteOptions{URL: c.jwks})
	if err != nil {
		return nil, err
	}
	// The edge may start after its shop: log it, and fetch the keys with the first token.
	if err := keys.Refresh(ctx); err != nil {
		fmt.Fprintln(stderr, "shop: no keys yet:", err)
	}
	options.Remote = keys
	return token.NewVerifier(options)
}
