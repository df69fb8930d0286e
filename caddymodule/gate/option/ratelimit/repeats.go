package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// Repeats limits how often a sold order may be forwarded to the shop again, because its ref
// came again. Each reservation counts by itself, on this edge alone: behind N edges a buyer
// may reach the shop N times as often. Further repeats are refused as rate_limited. Counts
// survive a reload, as long as the gate's name and the rate stay the same.
type Repeats struct {
	// Events may come in each Window in the long run: 1 to 1,000,000. Default: 5.
	Events int `json:"events,omitempty"`
	// Window is 1ms to 24h, in whole milliseconds. Default: 10s.
	Window caddy.Duration `json:"window,omitempty"`
	// Burst is how many may come at once, up to 1,000,000. Default: Events.
	Burst int `json:"burst,omitempty"`
	// Keys is how many reservations an edge tells apart, up to 10,000,000 of about 100 bytes
	// each. Beyond that it forgets the least repeated ones. Default: 10,000.
	Keys int `json:"keys,omitempty"`
}

const (
	defaultRepeatEvents = 5
	defaultRepeatWindow = 10 * time.Second
	defaultRepeatKeys   = 10_000
)

// RepeatsUsage is the syntax of the option repeats.
const RepeatsUsage = "repeats <events> <window> [burst <number>] [keys <number>]"

// Check validates the options; nil: there are none.
func (o *Repeats) Check() error {
	_, err := o.rate()
	return err
}

// rate is how often a reservation is forwarded again; nil: the default.
func (o *Repeats) rate() (Rate, error) {
	r := Rate{Key: []string{"reservation"}, Events: defaultRepeatEvents, Window: caddy.Duration(defaultRepeatWindow), Keys: defaultRepeatKeys}
	if o != nil {
		if (o.Events == 0) != (o.Window == 0) {
			return r, errors.New("repeats: events and window go together")
		}
		if o.Events != 0 {
			r.Events, r.Window = o.Events, o.Window
		}
		r.Burst, r.Keys = o.Burst, cmp.Or(o.Keys, r.Keys)
	}
	if err := r.check(); err != nil {
		return r, fmt.Errorf("repeats: %w", err)
	}
	return r, nil
}

// RepeatRate bounds how often a gate forwards one sold order again.
type RepeatRate struct {
	rate gateRate
	pooled
}

// Open takes the table of a gate's Repeats from the pool, or makes it; nil: they are the default.
func (rr *RepeatRate) Open(gate string, o *Repeats) error {
	r, err := o.rate()
	if err != nil {
		return err
	}
	print := fmt.Sprintf("%q repeats %d %v %d %d", gate, r.Events, r.Window, r.Burst, r.Keys)
	table, err := rr.take(print, filters.Rate{Events: r.Events, Window: time.Duration(r.Window), Burst: r.Burst, Keys: r.Keys})
	if err != nil {
		return err
	}
	rr.rate = gateRate{table: table, Header: refuse.NewRateAnswers(gate, "repeats", r.Events, time.Duration(r.Window))}
	return nil
}

// Take counts that a reservation is forwarded again.
func (rr *RepeatRate) Take(h http.Header, id string, now time.Time) *sale.Refusal {
	if wait := rr.rate.table.Take(now, id); wait > 0 {
		return rr.rate.Header.Refuse(h, wait)
	}
	return nil
}

// ReadRepeats reads the option repeats.
func ReadRepeats(into **Repeats) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := directive.Arguments(d, usage, 2, 6)
		if err != nil {
			return err
		}
		var rate Rate
		if err := rate.readNumbers(d, "repeats", args); err != nil {
			return err
		}
		if err := rate.readOptions(d, "repeats", usage, args[2:]); err != nil {
			return err
		}
		*into = &Repeats{Events: rate.Events, Window: rate.Window, Burst: rate.Burst, Keys: rate.Keys}
		return nil
	}
}
