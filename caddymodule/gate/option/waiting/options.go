// Package waiting is the gate's option queue: orders whose stock is held wait until the shop can
// take them. It keeps requests and answers in the form in which package queue keeps them, and
// tells buyers where their orders stand.
package waiting

import (
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Options let orders wait for the shop.
type Options struct {
	// Pace is how many orders go to the shop in `per` (100ms to 1h), all edges together. Default: no bound; `per`
	// 1s.
	Pace int `json:"pace,omitempty"`
	// Per is the time for Pace, at most an hour. Default: 1s.
	Per caddy.Duration `json:"per,omitempty"`
	// AtOnce is how many are at the shop at a time, all edges together. Default: 256.
	AtOnce int `json:"at_once,omitempty"`
	// Wait is how long a request stays open for its answer, up to 5m; then its client gets 202 and a place.
	// Default: 25s.
	//
	// 0: at once.
	Wait *caddy.Duration `json:"wait,omitempty"`
	// Most is how many may wait in a sale; more are `busy`. Up to `most` and `at_once` requests stay open at an
	// edge. Default: 100000.
	Most int `json:"most,omitempty"`
	// Memory is how much they may take in Redis, and the kept answers as much again; more are `busy`. Default: 256MiB.
	Memory int64 `json:"memory,omitempty"`
	// Longest is how long one may wait, 1s to 24h; then its stock is released, and its client hears `not_sent`.
	// Default: 10m.
	Longest caddy.Duration `json:"longest,omitempty"`
	// Keep is how long the shop's answer can be fetched, 1m to 24h. Default: 15m.
	Keep caddy.Duration `json:"keep,omitempty"`
	// MaxBody is the largest body that can wait; a larger one is `busy` where others wait. Default: 16KiB.
	MaxBody int64 `json:"max_body,omitempty"`
	// Again is an answer, with a test of a header or JSON, by which the shop wants the order later: it is first in line
	// again, at most three times, and Retry-After holds the line. Default: none.
	//
	// It tests a header or JSON because proxies, too, answer 503.
	Again string `json:"again,omitempty"`
	// OrdersAt is the path at which clients reach `/orders` of `stockgate_status`. Default: `/orders`.
	OrdersAt string `json:"orders_at,omitempty"`
}

// MostAgain is how often the shop may put an order off.
const MostAgain = 3

const (
	mostWait    = 5 * time.Minute
	mostLongest = 24 * time.Hour
)

// Compile checks the options and sets their defaults.
func (o *Options) Compile() error {
	for name, n := range map[string]int64{"pace": int64(o.Pace), "per": int64(o.Per), "at_once": int64(o.AtOnce), "most": int64(o.Most), "memory": o.Memory,
		"longest": int64(o.Longest), "keep": int64(o.Keep), "max_body": o.MaxBody} {
		if n < 0 {
			return fmt.Errorf("%s must be positive", name)
		}
	}
	if o.Per == 0 {
		o.Per = caddy.Duration(time.Second)
	}
	if o.AtOnce == 0 {
		o.AtOnce = 256
	}
	if o.Wait == nil {
		wait := caddy.Duration(25 * time.Second)
		o.Wait = &wait
	}
	if o.Most == 0 {
		o.Most = 100_000
	}
	if o.Memory == 0 {
		o.Memory = 256 << 20
	}
	if o.Longest == 0 {
		o.Longest = caddy.Duration(10 * time.Minute)
	}
	if o.Keep == 0 {
		o.Keep = caddy.Duration(15 * time.Minute)
	}
	if o.MaxBody == 0 {
		o.MaxBody = 16 << 10
	}
	if o.OrdersAt == "" {
		o.OrdersAt = "/orders"
	}
	switch per, wait, longest, keep := time.Duration(o.Per), time.Duration(*o.Wait), time.Duration(o.Longest), time.Duration(o.Keep); {
	case o.Pace > 0 && (per < 100*time.Millisecond || per > time.Hour):
		return fmt.Errorf("pace: %v is outside 100ms to 1h", per)
	case o.Pace > 0 && float64(o.Pace) > 10_000*per.Seconds():
		return fmt.Errorf("pace: %d in %v is more than 10,000 orders a second; leave pace out for no bound but at_once", o.Pace, per)
	case wait < 0 || wait > mostWait:
		return fmt.Errorf("wait %v is outside 0s to %v", wait, mostWait)
	case longest < time.Second || longest > mostLongest:
		return fmt.Errorf("longest %v is outside 1s to %v", longest, mostLongest)
	case keep < time.Minute || keep > mostLongest:
		return fmt.Errorf("keep %v is outside 1m to %v", keep, mostLongest)
	case !strings.HasPrefix(o.OrdersAt, "/") || strings.HasSuffix(o.OrdersAt, "/") || strings.ContainsAny(o.OrdersAt, "?#{} "):
		return fmt.Errorf("orders_at %q is no path: write one such as /orders", o.OrdersAt)
	}
	return nil
}

// ShopPace is the pace in the form that the queue takes.
func (o *Options) ShopPace() reservation.Pace {
	return reservation.Pace{Orders: int64(o.Pace), Per: time.Duration(o.Per), AtOnce: int64(o.AtOnce)}
}

// CompileAgain returns the test for the answer that puts an order off; nil: there is none.
func (o *Options) CompileAgain(answers map[string]outcome.AnswerMatcher) (func(*outcome.ShopAnswer) (yes, known bool), error) {
	if o.Again == "" {
		return nil, nil
	}
	answer, ok := answers[o.Again]
	if !ok {
		return nil, fmt.Errorf("again: this gate has no answer @%s: write it as `@%[1]s { … }` in the gate's block", o.Again)
	}
	if len(answer.Header) == 0 && len(answer.JSON) == 0 {
		return nil, fmt.Errorf("again @%s tests only a status, which proxies answer too, also for requests that they have sent: test a header or JSON that only the shop says", o.Again)
	}
	return outcome.CompileAnswer(answer)
}

// Usage is the option in a Caddyfile.
const Usage = "queue { … }"

// ReadOption reads the option:
//
//	queue {
//		pace      <orders> [<per>]
//		at_once   <orders>
//		wait      <duration>
//		most      <orders>
//		memory    <size>
//		longest   <duration>
//		keep      <duration>
//		max_body  <size>
//		again     @<name>
//		orders_at <path>
//	}
func ReadOption(into **Options) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		if _, err := directive.Arguments(d, usage, 0, 0); err != nil {
			return err
		}
		o, wait := new(Options), caddy.Duration(-1)
		at := *d
		err := directive.ReadBlock(d, map[string]directive.Option{
			"pace":      {Usage: "pace <orders> [<per>]", Read: o.readPace},
			"at_once":   {Usage: "at_once <orders>", Read: directive.Count(&o.AtOnce)},
			"wait":      {Usage: "wait <duration>", Read: readWait(&wait)},
			"most":      {Usage: "most <orders>", Read: directive.Count(&o.Most)},
			"memory":    {Usage: "memory <size>", Read: directive.Size(&o.Memory)},
			"longest":   {Usage: "longest <duration>", Read: directive.Duration(&o.Longest)},
			"keep":      {Usage: "keep <duration>", Read: directive.Duration(&o.Keep)},
			"max_body":  {Usage: "max_body <size>", Read: directive.Size(&o.MaxBody)},
			"again":     {Usage: "again @<name>", Read: o.readAgain},
			"orders_at": {Usage: "orders_at <path>", Read: directive.Text(&o.OrdersAt)},
		})
		if err != nil {
			return err
		}
		if wait >= 0 {
			o.Wait = &wait
		}
		checked := *o
		if err := checked.Compile(); err != nil {
			return at.Errf("queue: %v", err)
		}
		*into = o
		return nil
	}
}

func (o *Options) readPace(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 2)
	if err != nil {
		return err
	}
	if !directive.IsNumber(args[0]) {
		return d.Errf("pace %q is no number of orders: write `%s`", args[0], usage)
	}
	if _, err := fmt.Sscan(args[0], &o.Pace); err != nil || o.Pace < 1 {
		return d.Errf("pace %q is no number of orders: write `%s`", args[0], usage)
	}
	if len(args) == 2 {
		o.Per, err = directive.ParseDuration(d, args[1])
	}
	return err
}

func (o *Options) readAgain(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 1)
	if err != nil {
		return err
	}
	name, ok := strings.CutPrefix(args[0], "@")
	if !ok || name == "" {
		return d.Errf("again %q: a status alone does not say that the shop has not taken the order; name an answer, as in `again @later`", args[0])
	}
	o.Again = name
	return nil
}

// readWait reads a duration that may be 0.
func readWait(into *caddy.Duration) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := directive.Arguments(d, usage, 1, 1)
		if err != nil {
			return err
		}
		if args[0] == "0" || args[0] == "0s" {
			*into = 0
			return nil
		}
		*into, err = directive.ParseDuration(d, args[0])
		return err
	}
}
