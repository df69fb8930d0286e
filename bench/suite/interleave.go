package suite

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"time"

	"github.com/stockgate/stockgate/bench/load"
	"github.com/stockgate/stockgate/bench/measure"
	"github.com/stockgate/stockgate/bench/peer"
)

// contender is a peer that runs, with what it is asked and what it has shown.
type contender struct {
	*peer.Running
	scenario scenario
	name     string // of the peer, and how many items it knows where that differs
	orders   load.Orders
	requests int
	table    string
	size     float64 // bytes of a right answer
	large    bool    // so many items that its stock is not asked for
	runs     []run
}

// run is one run of one peer.
type run struct {
	load.Plan
	measure.Load
	cpu   float64 // of the server
	calls measure.Calls
}

// interleaved starts all peers of a case, checks each, and lets them run in turn: A B C,
// A B C. Whatever else the machine does meets all of them.
func interleaved(ctx context.Context, b *bench, s scenario, out *measure.Case) error {
	field, err := b.start(ctx, s)
	defer func() {
		for _, c := range field {
			c.Stop()
		}
	}()
	if err != nil {
		return err
	}
	for n := range b.Runs {
		for _, c := range field {
			if err := b.once(ctx, c, b.For, n == 0); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	for _, c := range field {
		out.Rows = append(out.Rows, c.row())
	}
	return nil
}

// start runs and checks the peers, leaving out what the binary cannot do.
func (b *bench) start(ctx context.Context, s scenario) (field []*contender, err error) {
	for label, s := range s.inSizes {
		dir, err := b.dir(s.name + label)
		if err != nil {
			return field, err
		}
		setup := s.setup(b, dir)
		for _, spec := range s.peers(b) {
			c, err := b.enter(ctx, s, setup, spec, spec.Name+label)
			if c != nil {
				field = append(field, c)
			}
			if isNotBuilt(err) {
				b.left("%s: %s: %v", s.name, spec.Name, err)
			} else if err != nil {
				return field, err
			}
		}
	}
	return field, nil
}

// enter starts a peer and checks it. With an error it may run all the same.
func (b *bench) enter(ctx context.Context, s scenario, setup peer.Setup, spec peer.Spec, name string) (*contender, error) {
	r, err := spec.Run(ctx, setup)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if spec.Asked {
		s.want = unsolved
	}
	c := &contender{Running: r, scenario: s, name: name, table: filepath.Join(setup.Dir, spec.Name+".requests")}
	u, err := url.Parse(r.URL)
	if err != nil {
		return c, err
	}
	c.orders, c.requests = s.orders(u.Host)
	c.orders.Keyed, c.orders.InQuery = spec.Key, s.h2
	if err := c.orders.Write(c.table, c.requests); err != nil {
		return c, err
	}
	if err := b.check(ctx, s, c); err != nil {
		return c, fmt.Errorf("%s is not what it should be: %w\n%s", name, err, r.Log())
	}
	// once without counting: caches, heaps and branch predictors
	if err := b.once(ctx, c, time.Second, false); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	c.runs = nil
	return c, nil
}

// once is one run of one peer. Answers that are not as they must be are an error.
func (b *bench) once(ctx context.Context, c *contender, howLong time.Duration, profile bool) error {
	s := c.scenario
	if err := c.solve(ctx); err != nil {
		return err
	}
	before, err := b.count(ctx, c)
	if err != nil {
		return err
	}
	begin, err := c.rest()
	if err != nil {
		return err
	}
	if profile {
		wait := b.profile(ctx, c)
		defer wait()
	}
	r := run{Plan: load.Plan{URL: c.URL, Table: c.table, Core: b.Load, Connections: b.Connections, Streams: s.streams, For: howLong, Number: b.numbers()}}
	if c.Spec.Solved {
		r.Most = c.requests // each solution serves once
	}
	if s.h2 {
		r.Load, err = load.H2load(ctx, r.Plan, c.orders, c.requests)
	} else {
		r.Load, err = load.Wrk(ctx, r.Plan)
	}
	if err != nil {
		return err
	}
	end, err := c.CPU()
	if err != nil {
		return err
	}
	after, err := b.count(ctx, c)
	if err != nil {
		return err
	}
	r.cpu, r.calls = end-begin, after.calls.Minus(before.calls)
	c.runs = append(c.runs, r)
	return s.right(b, c, &r, after.since(before))
}

// rest waits until the server rests, at most some seconds: to be asked for its metrics is
// work, too, with a million items. It returns the processor time so far.
func (c *contender) rest() (float64, error) {
	const pause, most, idle = 100 * time.Millisecond, 50, 0.01
	used, err := c.CPU()
	for range most {
		time.Sleep(pause)
		before := used
		if used, err = c.CPU(); err != nil || used-before <= idle {
			break
		}
	}
	return used, err
}

// right compares what the load generator saw with what must have happened.
func (s scenario) right(b *bench, c *contender, r *run, n counted) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("wrong answers: "+format+"\n%s", append(args, c.Log())...)
	}
	inFlight := int64(8 * b.Connections) // answered after the end, or never
	stray := int64(math.Ceil(s.stray * float64(r.Requests)))
	switch {
	case r.Requests == 0:
		return wrong("there were none")
	case r.Broken > 0:
		return wrong("%d connections or requests broke", r.Broken)
	case s.accept && r.Refused > 0:
		return wrong("%d of %d were refused", r.Refused, r.Requests)
	case s.accept && (n.orders < r.Requests || n.orders > r.Requests+inFlight):
		return wrong("%d were accepted, but the shop got %d orders", r.Requests, n.orders)
	case s.accept && c.sells() && (n.sold < r.Requests || n.sold > r.Requests+inFlight):
		return wrong("%d were accepted, but %d units are sold", r.Requests, n.sold)
	case !s.accept && r.Refused != r.Requests:
		return wrong("%d of %d were not refused", r.Requests-r.Refused, r.Requests)
	case !s.accept && n.orders > stray:
		return wrong("the shop got %d orders of %d", n.orders, r.Requests)
	case n.attempts.Otherwise(s.want.Says) > stray:
		return wrong("the gate counted other reasons than %s: %v", s.want.Says, n.attempts)
	}
	// Refusals for another reason have another length.
	mean := float64(r.Bytes) / float64(r.Requests)
	if !s.h2 && math.Abs(mean-c.size) > c.size*(0.02+s.stray) {
		return wrong("they have %.1f bytes on the average, the right one has %.1f", mean, c.size)
	}
	return nil
}

// row sums up a contender's runs.
func (c *contender) row() measure.Row {
	values := func(of func(run) float64) measure.Spread {
		var all []float64
		for _, r := range c.runs {
			all = append(all, of(r))
		}
		return measure.Over(all)
	}
	return measure.Row{
		Peer:   c.name,
		Rate:   values(func(r run) float64 { return float64(r.Requests) / r.Seconds }),
		P50:    values(func(r run) float64 { return r.P50.Seconds() * 1e3 }),
		P99:    values(func(r run) float64 { return r.P99.Seconds() * 1e3 }),
		Micros: values(func(r run) float64 { return r.cpu * 1e6 / float64(r.Requests) }),
		Busy:   values(func(r run) float64 { return r.cpu / r.Seconds }),
		Calls:  values(func(r run) float64 { return float64(r.calls.Scripts) / float64(r.Requests) }),
	}
}
