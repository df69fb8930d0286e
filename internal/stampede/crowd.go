// Package stampede sends a crowd of buyers to a shop over real HTTP, and checks
// afterwards that every promise was kept.
//
//	tally, err := crowd.Run(ctx)                       // what the buyers were told
//	evidence, err := sources.Collect(ctx, tally)       // what the shop and the sale's stock say
//	verdict := stampede.Check(evidence, stampede.Tolerance{})
//
// A crowd whose orders are due at given times (Arrivals, Rate) is an open loop: an order
// begins when it is due, whether or not earlier ones are answered, and its latency counts
// from that time. A loop in which each connection waits for its answer sends less just when
// the shop is slow, and leaves out the waits that buyers have: the coordinated omission that
// wrk2 (https://github.com/giltene/wrk2) corrects, and that vegeta
// (https://github.com/tsenart/vegeta) avoids in the same way.
//
// The check trusts no single source: the orders in the shop, the units in the sale's
// cells and the answers to the buyers are three accounts of one event, and must agree.
package stampede

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Defaults of a crowd.
const (
	DefaultPrefix  = "buyer-"
	DefaultTimeout = time.Minute
	// MostConnections bounds Concurrency where none is given.
	MostConnections = 2048
	// MostOpenConnections bounds it in an open loop: one address has no more than some 28,000
	// ports for connections to the same server.
	MostOpenConnections = 10_000
)

// reserveFiles are open files that a process needs for other things than the
// crowd's connections.
const reserveFiles = 64

// Crowd configures the buyers and their orders. Its zero values are defaults.
type Crowd struct {
	// URL is where orders go. Required.
	URL string
	// Buyers is how many people there are. Default: 1.
	Buyers int
	// Prefix begins the name of every buyer, as it stands in X-User-Id. Names
	// must be new to the sale, or the oracle takes an older order for one of
	// this crowd's. Default: buyer-.
	Prefix string
	// Purchases is how many orders they place. Default: one each.
	Purchases int
	// Zipf, above 1, lets buyers return by Zipf's law with this exponent: few
	// of them most of the time. Default: they take turns.
	Zipf float64
	// Baskets are what is bought, taken in turn. Required.
	Baskets []Basket
	// Concurrency is how many orders are under way at a time: a closed loop, in which
	// every buyer waits for the answer. Default: all, at most MostConnections. In an open loop it
	// only bounds the connections. Default there: what the process may open, at most
	// MostOpenConnections.
	Concurrency int
	// Rate opens the loop: so many orders per second are due. Default: as fast as answers come.
	Rate float64
	// Arrivals opens the loop: when each order is due, counted from the start, in order. The
	// time that an order waits for one of the Concurrency connections counts. Default: by
	// Rate. Purchases is their number.
	Arrivals []time.Duration
	// Shares are the parts of the orders that are not simply sent once. Default: none.
	Shares Shares
	// Template makes the requests and names the buyers, in the place of URL, Prefix, Baskets,
	// Header and Misbehave. Default: none.
	Template Template
	// Progress is called every Every while the crowd runs. Default: never.
	Progress func(Progress)
	Every    time.Duration
	// DoubleClick: one in this many orders is sent twice at once. Default: none.
	DoubleClick int
	// ComeBack: one in this many successful buyers tries to buy again. Default: none.
	ComeBack int
	// Retry says what a refused buyer does.
	Retry Retry
	// Waitlist lets refused buyers wait. Default: none.
	Waitlist *Waitlist
	// Misbehave goes to a shop that allows it, as X-Misbehave. Default: none.
	Misbehave string
	// Header is sent with every order.
	Header http.Header
	// Timeout bounds one answer. Default: 1 minute.
	Timeout time.Duration
	// Insecure accepts any certificate.
	Insecure bool
	// Seed makes Zipf's and Shares' choices repeatable.
	Seed uint64
	// Dial opens the connections. Default: as net/http does, without a proxy.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Template makes the orders of a crowd.
type Template interface {
	// Name is what the shop calls a buyer, from 0; empty: that is not known.
	Name(buyer int) string
	// Request makes the request of a buyer. Calls run concurrently.
	Request(buyer int) (*http.Request, error)
}

// Retry says what a buyer does whose refusal may pass (see sale.Kind.Wait).
type Retry struct {
	// Times is how often a buyer retries, at most. Default: never.
	Times int
	// AtOnce ignores Retry-After; otherwise the buyer waits for as long as it says.
	AtOnce bool
}

// withDefaults returns a checked copy with the defaults filled in, and its URL.
func (c Crowd) withDefaults() (Crowd, *url.URL, error) {
	if c.Buyers == 0 {
		c.Buyers = 1
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Arrivals != nil {
		c.Purchases = len(c.Arrivals)
	}
	if c.Purchases == 0 {
		c.Purchases = c.Buyers
	}
	if c.Concurrency == 0 && c.open() {
		c.Concurrency = max(1, min(MostOpenConnections, OpenFiles()-reserveFiles))
	}
	if c.Concurrency == 0 {
		c.Concurrency = min(c.Purchases, MostConnections)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	target, err := url.Parse(c.URL)
	switch {
	case c.Template != nil && len(c.Baskets) == 0:
		c.Baskets = make([]Basket, 1) // not known
	case err != nil:
		return c, nil, fmt.Errorf("the URL of the orders: %w", err)
	case target.Scheme != "http" && target.Scheme != "https" || target.Host == "":
		return c, nil, fmt.Errorf("the URL of the orders %q: give a whole http or https URL", c.URL)
	case len(c.Baskets) == 0:
		return c, nil, errors.New("the crowd wants nothing: give it a basket")
	}
	switch {
	case c.Buyers < 0 || c.Purchases < 0 || c.Concurrency < 0 || c.Retry.Times < 0 || c.DoubleClick < 0 || c.ComeBack < 0 || c.Timeout < 0:
		return c, nil, errors.New("a crowd counts from 0 upwards: no number of it may be negative")
	case c.Zipf != 0 && !(c.Zipf > 1 && c.Zipf <= 100):
		return c, nil, fmt.Errorf("zipf %v: the exponent must lie between 1 (not included) and 100", c.Zipf)
	case c.Rate != 0 && !(c.Rate > 0 && c.Rate <= 1e6) || math.IsNaN(c.Rate):
		return c, nil, fmt.Errorf("rate %v: give orders per second, at most a million", c.Rate)
	case strings.ContainsAny(c.Prefix, " \t\r\n"):
		return c, nil, fmt.Errorf("prefix %q: a buyer's name has no spaces", c.Prefix)
	case !slices.IsSorted(c.Arrivals):
		return c, nil, errors.New("the arrivals are not in order")
	}
	if err := c.Shares.check(); err != nil {
		return c, nil, err
	}
	if c.Waitlist != nil {
		if err := c.Waitlist.check(); err != nil {
			return c, nil, err
		}
		filled := *c.Waitlist
		if filled.Patience == 0 {
			filled.Patience = DefaultPatience
		}
		c.Waitlist = &filled
	}
	for i := range c.Baskets {
		if c.Template != nil {
			break
		}
		if err := c.Baskets[i].check(); err != nil {
			return c, nil, fmt.Errorf("basket %d: %w", i+1, err)
		}
	}
	// A double click has a connection of its own.
	if needed := 2*c.Concurrency + reserveFiles; c.DoubleClick > 0 && !c.open() && needed > OpenFiles() {
		return c, nil, tooManyFiles(needed)
	}
	if needed := c.Concurrency + reserveFiles; needed > OpenFiles() {
		return c, nil, tooManyFiles(needed)
	}
	return c, target, nil
}

// open reports whether orders are due at given times.
func (c *Crowd) open() bool { return c.Rate > 0 || c.Arrivals != nil }

func tooManyFiles(needed int) error {
	return fmt.Errorf("this needs %d open files and the process may have %d: lower the concurrency, or raise `ulimit -n`", needed, OpenFiles())
}
