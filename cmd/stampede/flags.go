package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/sale"
)

// config is what the flags say.
type config struct {
	crowd                 stampede.Crowd
	shop, admin, sale     string
	maxPerBuyer, mustSell int64
	settle                time.Duration
	tolerance             stampede.Tolerance
	json                  bool
}

// checks: there are sources to check against.
func (c config) checks() bool { return c.sale != "" }

// wishes are the flags that become baskets.
type wishes struct {
	skus, quantities, regions string
	together                  bool
}

func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	var w wishes
	var duration time.Duration
	var tolerate string
	flags := flag.NewFlagSet("stampede", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.crowd.URL, "url", "http://127.0.0.1:8080/api/order", "`URL` of the orders")
	flags.IntVar(&c.crowd.Buyers, "buyers", 2000, "how many people there are")
	flags.StringVar(&c.crowd.Prefix, "prefix", "", "`beginning` of their names (default: made up for this run)")
	flags.IntVar(&c.crowd.Purchases, "purchases", 0, "how many orders they place (default: one each; with -duration: as many as are due)")
	flags.Float64Var(&c.crowd.Zipf, "zipf", 0, "`exponent` above 1: few of the buyers return often, most seldom")
	flags.IntVar(&c.crowd.Concurrency, "concurrency", 0, fmt.Sprintf("orders under way at a time (default: all, at most %d)", stampede.MostConnections))
	flags.Float64Var(&c.crowd.Rate, "rate", 0, "orders per second, answered or not (default: each buyer waits for their answer)")
	flags.DurationVar(&duration, "duration", 0, "how long to keep up -rate")
	flags.IntVar(&c.crowd.DoubleClick, "double-click", 0, "one in `n` orders is sent twice at once")
	flags.IntVar(&c.crowd.ComeBack, "come-back", 0, "one in `n` who bought tries to buy again")
	flags.IntVar(&c.crowd.Retry.Times, "retry", 0, "how `often` a buyer tries again whose refusal may pass")
	flags.BoolVar(&c.crowd.Retry.AtOnce, "impatient", false, "retry at once instead of after Retry-After")
	flags.StringVar(&c.crowd.Misbehave, "misbehave", "", "`rules` for a shop that allows X-Misbehave")
	flags.DurationVar(&c.crowd.Timeout, "timeout", stampede.DefaultTimeout, "how long to wait for an answer")
	flags.BoolVar(&c.crowd.Insecure, "insecure", false, "accept any certificate")
	flags.Uint64Var(&c.crowd.Seed, "seed", 1, "makes -zipf repeatable")
	flags.StringVar(&w.skus, "sku", "", "`SKU` to buy; of several, with commas, the buyers take turns")
	flags.StringVar(&w.quantities, "quantity", "1", "`units` of it; several, with commas, in turn")
	flags.StringVar(&w.regions, "region", "", "`region` to buy in; several, with commas, in turn")
	flags.BoolVar(&w.together, "together", false, "buy all SKUs in one order of several lines")
	flags.StringVar(&c.sale, "sale", "", "`id` of the sale, to check its stock")
	flags.StringVar(&c.admin, "admin", "", "`address` of Caddy's admin endpoint, for the sale's stock")
	flags.StringVar(&c.shop, "shop", "", "`URL` of the shop's list of orders")
	flags.Int64Var(&c.maxPerBuyer, "max-per-buyer", 0, "`units` of the sale that one buyer may have (default: not checked)")
	flags.Int64Var(&c.mustSell, "must-sell", 0, "`units` that must be sold in the end (default: not checked)")
	flags.DurationVar(&c.settle, "settle", 10*time.Second, "how long holds may take to be resolved")
	flags.StringVar(&tolerate, "tolerate", "", "what a misbehaving shop may cause: in_doubt, phantom (confirmed without an order), or both with a comma")
	flags.BoolVar(&c.json, "json", false, "print JSON")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return c, err
	case err != nil:
		return c, fmt.Errorf("%w: %w", errUsage, err)
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case (c.sale == "") != (c.admin == "") || (c.sale == "") != (c.shop == ""):
		err = errors.New("give -sale, -admin and -shop together: the oracle needs all three")
	case (duration != 0) && c.crowd.Rate == 0:
		err = errors.New("-duration needs -rate")
	case duration != 0 && c.crowd.Purchases != 0:
		err = errors.New("give -duration or -purchases, not both")
	case duration < 0:
		err = errors.New("-duration must not be negative")
	default:
		if err = parseTolerance(&c.tolerance, tolerate); err == nil {
			c.crowd.Baskets, err = w.baskets()
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "stampede:", err)
		return c, fmt.Errorf("%w: %w", errUsage, err)
	}
	if duration > 0 {
		c.crowd.Purchases = max(1, int(c.crowd.Rate*duration.Seconds()))
	}
	if c.crowd.Prefix == "" {
		// The sale may know the buyers of an earlier run.
		c.crowd.Prefix = "buyer-" + strings.ToLower(rand.Text()[:6]) + "-"
	}
	return c, nil
}

func parseTolerance(t *stampede.Tolerance, text string) error {
	if text == "" {
		return nil
	}
	for word := range strings.SplitSeq(text, ",") {
		switch word {
		case "in_doubt":
			t.InDoubt = true
		case "phantom":
			t.Phantom = true
		default:
			return fmt.Errorf("-tolerate %q: there are in_doubt and phantom", word)
		}
	}
	return nil
}

// baskets are all combinations: the buyers take them in turn.
func (w wishes) baskets() ([]stampede.Basket, error) {
	if w.skus == "" {
		return nil, errors.New("-sku: say what the crowd wants")
	}
	skus := strings.Split(w.skus, ",")
	var all []stampede.Basket
	for region := range strings.SplitSeq(w.regions, ",") {
		for quantity := range strings.SplitSeq(w.quantities, ",") {
			units, err := strconv.ParseInt(quantity, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("-quantity %q is not a number", quantity)
			}
			lines := make([]sale.Line, len(skus))
			for i, sku := range skus {
				lines[i] = sale.Line{SKU: sku, Quantity: units, Region: region}
			}
			if w.together {
				all = append(all, stampede.Basket{Lines: lines})
				continue
			}
			for _, line := range lines {
				all = append(all, stampede.Basket{Lines: []sale.Line{line}})
			}
		}
	}
	return all, nil
}
