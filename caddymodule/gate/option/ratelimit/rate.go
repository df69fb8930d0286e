// Package ratelimit counts how often attempts come to a gate, and refuses those that come too
// often. Package rates counts the shared ones in Redis.
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/rates"
)

// Rate limits how often attempts with one key may come. Every attempt that reaches a rate
// and passes it counts, whatever its outcome; an attempt that a rate refuses does not count
// for that rate, and charges no purchase limit.
//
// Counts survive a reload, as long as gate, name and rate stay the same. Gates with the
// same name, or without one, count equal rates together.
type Rate struct {
	// Key is what is counted: a value, or a constant for all attempts. Those without a value share one count.
	Key []string `json:"key"`
	// Events may come in a window in the long run, 1 to 1,000,000.
	Events int `json:"events"`
	// Window is 1ms to 24h, in whole milliseconds.
	Window caddy.Duration `json:"window"`
	// Burst is how many may come at once, up to 1,000,000. Default: the events.
	Burst int `json:"burst,omitempty"`
	// Keys is how many keys are tracked, up to 10,000,000. Default: 100,000; shared 1,000,000.
	//
	// Beyond that an edge forgets the least used keys. If the rate is shared, further keys share 4096 buckets
	// more.
	Keys int `json:"keys,omitempty"`
	// IPv6Prefix is how many bits of an IPv6 address count for `{client_ip}`, 1 to 128. Default: 64.
	IPv6Prefix int `json:"ipv6_prefix,omitempty"`
	// Shared counts exactly, over all edges, in Redis. Default: each edge counts for itself.
	Shared bool `json:"shared,omitempty"`
	// Late counts only attempts whose units may still be there. Not with `shared`. Default: off.
	//
	// An attempt counts only when the edge does not know that its units are gone, so that a buyer of a sold-out
	// item hears it at once, and the rate is left to those who may still buy.
	Late bool `json:"late,omitempty"`
	// Shadow only counts what it would have refused. Default: off.
	Shadow bool `json:"shadow,omitempty"`
}

const (
	maxRates      = 16
	maxRateEvents = 1_000_000
	maxRateWindow = 24 * time.Hour
	maxRateKeys   = 10_000_000
	maxAsking     = 256 // attempts that are counted for shared rates in shadow, at a time
)

// check sets the defaults and validates the rate.
func (r *Rate) check() error {
	byIP := slices.ContainsFunc(r.Key, func(k string) bool {
		v, err := attempt.Compile(k)
		return err == nil && v.Kind() == attempt.ClientIP
	})
	window := time.Duration(r.Window)
	switch {
	case len(r.Key) == 0:
		return errors.New("it has no key: write {client_ip}, or a constant for all attempts together")
	case r.Events < 1 || r.Events > maxRateEvents:
		return fmt.Errorf("%d events are outside 1 to %d", r.Events, maxRateEvents)
	case window < time.Millisecond || window > maxRateWindow || window%time.Millisecond != 0:
		return fmt.Errorf("the window %v is not a whole number of milliseconds within 1ms to %v", window, maxRateWindow)
	case r.Burst < 0 || r.Burst > maxRateEvents:
		return fmt.Errorf("a burst of %d is outside 1 to %d", r.Burst, maxRateEvents)
	case r.Keys < 0 || r.Keys > maxRateKeys:
		return fmt.Errorf("%d keys are outside 1 to %d", r.Keys, maxRateKeys)
	case r.IPv6Prefix < 0 || r.IPv6Prefix > 128:
		return fmt.Errorf("an IPv6 prefix of %d bits is outside 1 to 128", r.IPv6Prefix)
	case r.Late && r.Shared:
		return errors.New("a late rate is that of one edge: leave out shared, or late")
	case r.IPv6Prefix != 0 && !byIP:
		return errors.New("an IPv6 prefix is for the key {client_ip} alone")
	}
	if r.Burst == 0 {
		r.Burst = r.Events
	}
	if r.IPv6Prefix == 0 && byIP {
		r.IPv6Prefix = attempt.DefaultIPv6Prefix
	}
	return nil
}

// Grows reports whether the rate takes memory of Redis for each new key.
func (r Rate) Grows() bool {
	return r.Shared && slices.ContainsFunc(r.Key, func(k string) bool {
		v, err := attempt.Compile(k)
		return err == nil && v.Kind() != attempt.Constant
	})
}

// gateRate is a rate of a provisioned gate: one of table and shared is set, the other is
// nil.
type gateRate struct {
	table  *filters.RateTable
	shared *rates.Rate
	shadow bool
	late   bool
	Header refuse.RateAnswers
}

// Set are the rates of a gate, in the order of the attempt's keys.
type Set struct {
	rates  []gateRate
	shared int // how many of them are
	late   int // how many of them are
	// shadows are the shared rates in shadow, which are not counted before an attempt goes on;
	// asking bounds the attempts for which that is under way.
	shadows []int
	asking  *filters.Slots
	deaf    atomic.Bool // the last call of Redis about shared rates got no answer
	pooled
}

// IsEmpty reports whether the gate has no rates.
func (rs *Set) IsEmpty() bool { return len(rs.rates) == 0 }

// HasShared reports whether some rates are shared.
func (rs *Set) HasShared() bool { return rs.shared > 0 || len(rs.shadows) > 0 }

// rateTables are shared by the configurations that exist at the same time, and so survive a
// reload.
var rateTables = caddy.NewUsagePool()

type rateTable struct{ *filters.RateTable }

// Destruct is called when no configuration has the rate anymore.
func (rateTable) Destruct() error { return nil }

// Keys checks the rates and compiles their keys.
func Keys(rates []Rate) ([]attempt.RateKey, error) {
	if len(rates) > maxRates {
		return nil, fmt.Errorf("%d rates are more than %d", len(rates), maxRates)
	}
	var keys []attempt.RateKey
	seen := make(map[string]bool)
	for i := range rates {
		r := &rates[i]
		values, err := attempt.CompileAll(r.Key...)
		if err == nil {
			err = r.check()
		}
		if err == nil && seen[r.print("")] {
			err = errors.New("there is one just like it before")
		}
		if err != nil {
			return nil, fmt.Errorf("rate, number %d: %w", i+1, err)
		}
		seen[r.print("")] = true
		keys = append(keys, attempt.RateKey{Key: values, IPv6Prefix: r.IPv6Prefix})
	}
	return keys, nil
}

// id is the same for rates of a gate that count the same keys, and print for rates that do all the same.
func (r Rate) id(gate string) string { return fmt.Sprintf("%q %q %d", gate, r.Key, r.IPv6Prefix) }

func (r Rate) print(gate string) string {
	return fmt.Sprintf("%s %d %v %d %d %t %t", r.id(gate), r.Events, r.Window, r.Burst, r.Keys, r.Shared, r.Late)
}

// Open takes the tables of a gate's rates from the pool, or makes them.
func (rs *Set) Open(gate string, list []Rate, keys []attempt.RateKey) error {
	for i, r := range list {
		rate := gateRate{shadow: r.Shadow, late: r.Late, Header: refuse.NewRateAnswers(gate, strconv.Itoa(i+1), r.Events, time.Duration(r.Window))}
		if r.Late {
			rs.late++
		}
		window := time.Duration(r.Window)
		if r.Shared {
			rate.shared = rates.NewRate(r.id(gate), r.Events, window, r.Burst)
			if r.Keys != 0 {
				rate.shared = rate.shared.WithKeys(r.Keys)
			}
			if r.Shadow {
				rs.shadows, rs.asking = append(rs.shadows, i), filters.NewSlots(maxAsking)
			} else {
				rs.shared++
			}
		} else {
			room := r.Keys
			if !slices.ContainsFunc(keys[i].Key, func(v attempt.Value) bool { return v.Kind() != attempt.Constant }) {
				room = 1
			}
			var err error
			if rate.table, err = rs.take(r.print(gate), filters.Rate{Events: r.Events, Window: window, Burst: r.Burst, Keys: room}); err != nil {
				return err
			}
		}
		rs.rates = append(rs.rates, rate)
	}
	return nil
}

// pooled are the keys of the entries of rateTables to release.
type pooled []string

// take takes a table from the pool, or makes it.
func (p *pooled) take(print string, r filters.Rate) (*filters.RateTable, error) {
	v, _, err := rateTables.LoadOrNew(print, func() (caddy.Destructor, error) {
		return rateTable{filters.NewRateTable(r)}, nil
	})
	if err != nil {
		return nil, err
	}
	*p = append(*p, print)
	return v.(rateTable).RateTable, nil
}

// Close releases what was taken from the pool. Requests that are still running keep their
// tables.
func (p *pooled) Close() error {
	keys := *p
	*p = nil
	var err error
	for _, key := range keys {
		_, e := rateTables.Delete(key)
		err = errors.Join(err, e)
	}
	return err
}

// TakeLocal counts an attempt for the rates that this edge keeps for itself, in their
// order, up to the one that refuses it.
func (rs *Set) TakeLocal(h http.Header, a *sale.Attempt, now time.Time) *sale.Refusal {
	over, wait := rs.CountLocal(a, now)
	if over == nil {
		return nil
	}
	return over.Header.Refuse(h, wait)
}

// TakeLate counts an attempt against the late rates, and refuses it with the header if one is
// exceeded.
func (rs *Set) TakeLate(h http.Header, a *sale.Attempt, now time.Time) *sale.Refusal {
	if rs.late == 0 {
		return nil
	}
	over, wait := rs.count(a, now, true)
	if over == nil {
		return nil
	}
	return over.Header.Refuse(h, wait)
}

// CountLocal is TakeLocal, and returns the rate that refuses; nil: none.
func (rs *Set) CountLocal(a *sale.Attempt, now time.Time) (over *gateRate, wait time.Duration) {
	return rs.count(a, now, false)
}

// count counts an attempt against the rates of this edge that are late, or those that are not.
func (rs *Set) count(a *sale.Attempt, now time.Time, late bool) (over *gateRate, wait time.Duration) {
	for i := range rs.rates {
		if rate := &rs.rates[i]; rate.table != nil && rate.late == late {
			switch wait := rate.table.Take(now, a.RateKeys[i]); {
			case wait == 0:
			case rate.shadow:
				wouldRefuse()
			default:
				return rate, wait
			}
		}
	}
	return nil, 0
}

// ForeseeLocal is CountLocal for an attempt that the gate counts later, unless a rate
// refuses it.
func (rs *Set) ForeseeLocal(a *sale.Attempt, now time.Time) (over *gateRate, wait time.Duration) {
	for i := range rs.rates {
		rate := &rs.rates[i]
		if rate.table == nil || rate.shadow || rate.late {
			continue
		}
		if wait = rate.table.Peek(now, a.RateKeys[i]); wait == 0 {
			continue
		}
		before := Set{rates: rs.rates[:i]}
		if over, sooner := before.CountLocal(a, now); over != nil {
			return over, sooner
		}
		return rate, wait
	}
	return nil, 0
}

// TakeShared counts an attempt for all shared rates, or for none. The call goes on when the
// client leaves: a client that disconnects must not cost a Redis connection each time.
func (rs *Set) TakeShared(r *http.Request, h http.Header, d *edgeruntime.Runtime, a *sale.Attempt, log *zap.Logger) *sale.Refusal {
	rs.takeShadows(d, a)
	if rs.shared == 0 {
		return nil
	}
	tries := make([]rates.Try, 0, rs.shared)
	shared := make([]*gateRate, 0, rs.shared)
	for i := range rs.rates {
		if rate := &rs.rates[i]; rate.shared != nil && !rate.shadow {
			tries = append(tries, rates.Try{Rate: rate.shared, Key: a.RateKeys[i]})
			shared = append(shared, rate)
		}
	}
	if !d.Begin() {
		return refuse.Unavailable // the edge runtime is closed: a reload has a new one
	}
	defer d.End()
	over, wait, err := d.Rates().Take(context.WithoutCancel(r.Context()), tries)
	switch {
	case err != nil:
		if !rs.deaf.Swap(true) {
			log.Warn("redis gives no answer about shared rates: attempts are refused as unavailable until it does", zap.Error(err))
		}
		return refuse.Unavailable
	case over >= 0: // perhaps from memory
		return shared[over].Header.Refuse(h, wait)
	}
	if rs.deaf.Load() && rs.deaf.Swap(false) {
		log.Info("redis answers about shared rates again")
	}
	return nil
}
