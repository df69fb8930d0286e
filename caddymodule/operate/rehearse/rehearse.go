// Package rehearse runs a load test against an operator's own gate and shop, and judges it by
// the gate's books and the shop's orders. The crowd is that of internal/stampede, whose package
// comment says how it measures; the requests are saved ones, as `caddy stockgate try` reads them.
package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// MaxBuyers bounds a crowd: one process holds its ends of all connections.
const MaxBuyers = 100_000

// MaxLate is how late 1 % of the orders may begin in a schedule that was kept.
const MaxLate = 50 * time.Millisecond

// The curves of arrivals; anything else is the file of an access log.
const (
	ArriveSpike   = "spike"
	ArriveRamp    = "ramp"
	ArrivePoisson = "poisson"
)

// Options say what is rehearsed.
type Options struct {
	// Sale is judged.
	Sale string
	// Hosts are those to which requests may go, such as shop.test or http://localhost:8080.
	Hosts []string
	// Files have the requests, and Data their columns; empty: none.
	Files []string
	Data  string
	// Arrive is spike, ramp, poisson or a file. Default: spike.
	Arrive string
	// Buyers is how many come. Default: one for each row of Data, or request of the log.
	Buyers int
	// Over is how long they take to arrive. A log takes its own time by default.
	Over   time.Duration
	Shares stampede.Shares
	// Retry is how often a buyer tries again whose refusal may pass.
	Retry int
	// Waitlist is the path of the waiting list, which refused buyers enter by the request of their order; empty: none does.
	// Enter is the share of them, and Patience how long one waits.
	Waitlist string
	Enter    float64
	Patience time.Duration
	Timeout  time.Duration
	Insecure bool
	Seed     uint64

	// JudgeOnly sends nothing; Answers is a file of what buyers were told by another load test.
	JudgeOnly bool
	Answers   string
	// Orders is a file or URL with the shop's orders; empty: only the books are judged.
	Orders string
	// Settle is how long holds may take to end before the books are read.
	Settle  time.Duration
	Require []string

	// Fetch reads a path of the admin API. reservation.ErrNotFound: there is no such thing.
	Fetch func(ctx context.Context, path string, into any) error
	// Progress gets a line now and then; nil: none. Rewrite writes it over the one before.
	Progress io.Writer
	Rewrite  bool
}

// Rehearsal is one that can run.
type Rehearsal struct {
	Options
	hosts        hosts
	templates    *templates
	arrivals     []time.Duration
	answers      *stampede.Tally
	requirements []Requirement
	before       int64 // number of the last movement before the crowd
}

// New checks the options, reads the files and makes every request once. It sends nothing; an
// error is a mistake in the options or the files.
func New(o Options) (*Rehearsal, error) {
	r := &Rehearsal{Options: o}
	if o.Sale == "" {
		return nil, errors.New("which sale is judged? Name it with --sale")
	}
	for _, text := range o.Require {
		one, err := readRequirement(text, !o.JudgeOnly)
		if err != nil {
			return nil, err
		}
		r.requirements = append(r.requirements, one)
	}
	err := checkOrders(o.Orders)
	if err != nil {
		return nil, fmt.Errorf("--orders: %w", err)
	}
	switch {
	case o.JudgeOnly && (len(o.Files) > 0 || len(o.Hosts) > 0 || o.Arrive != ""):
		return nil, errors.New("--judge-only sends no requests: leave out the files, --host and --arrive")
	case o.JudgeOnly && o.Answers != "":
		r.answers, err = readAnswers(o.Answers)
		return r, err
	case o.JudgeOnly:
		return r, nil
	case o.Answers != "":
		return nil, errors.New("--answers is what another load test has heard: give it with --judge-only")
	}
	if r.hosts, err = readHosts(o.Hosts); err != nil {
		return nil, err
	}
	if r.templates, err = readTemplates(r.hosts, o.Files, o.Data); err != nil {
		return nil, err
	}
	if err := r.schedule(); err != nil {
		return nil, err
	}
	return r, r.templates.check(r.Buyers)
}

// schedule computes when the buyers arrive.
func (r *Rehearsal) schedule() error {
	if r.Arrive == "" {
		r.Arrive = ArriveSpike
	}
	curve := r.Arrive == ArriveSpike || r.Arrive == ArriveRamp || r.Arrive == ArrivePoisson
	if curve && r.Buyers == 0 {
		if r.Buyers = len(r.templates.rows); r.Buyers == 0 {
			return errors.New("how many buyers come? Say it with --buyers, or give them data with --data")
		}
	}
	switch {
	case r.Buyers < 0 || r.Buyers > MaxBuyers:
		return fmt.Errorf("--buyers %d: give 1 to %d", r.Buyers, MaxBuyers)
	case r.Over < 0 || r.Over == 0 && (r.Arrive == ArriveRamp || r.Arrive == ArrivePoisson):
		return fmt.Errorf("--arrive %s takes a time: say how long with --over, such as --over 10s", r.Arrive)
	case r.Arrive == ArriveSpike && r.Over > 0:
		return errors.New("--over: in a spike all buyers come at once; ramp and poisson take a time")
	}
	switch r.Arrive {
	case ArriveSpike:
		r.arrivals = stampede.Spike(r.Buyers)
	case ArriveRamp:
		r.arrivals = stampede.Ramp(r.Buyers, r.Over)
	case ArrivePoisson:
		r.arrivals = stampede.Poisson(r.Buyers, r.Over, r.Seed)
	default:
		return r.replay()
	}
	return nil
}

// replay reads the arrivals from an access log.
func (r *Rehearsal) replay() error {
	log, err := os.Open(r.Arrive)
	if err != nil {
		return fmt.Errorf("--arrive is spike, ramp, poisson, or the file of an access log: %w", err)
	}
	defer log.Close()
	if r.arrivals, err = stampede.Replay(log); err != nil {
		return fmt.Errorf("%s: %w", r.Arrive, err)
	}
	if r.Buyers > 0 {
		r.arrivals = r.arrivals[:min(r.Buyers, len(r.arrivals))]
	}
	if r.Buyers = len(r.arrivals); r.Buyers > MaxBuyers {
		return fmt.Errorf("%s has %d requests: give --buyers, at most %d, for the first ones", r.Arrive, r.Buyers, MaxBuyers)
	}
	if r.Over > 0 {
		stampede.Stretch(r.arrivals, r.Over)
	}
	return nil
}

// Run sends the crowd and judges what came of it. When ctx ends the crowd does too, and what
// it did until then is judged.
func (r *Rehearsal) Run(ctx context.Context) (*Result, error) {
	var sale adminapi.SaleShown
	var state adminapi.JournalState
	if err := r.Fetch(ctx, r.path(), &sale); err != nil { // before anything is sent
		return nil, err
	}
	if err := r.Fetch(ctx, r.path("journal"), &state); err != nil {
		return nil, err
	}
	if isURL(r.Orders) {
		if _, err := listOrders(ctx, r.Orders); err != nil {
			return nil, fmt.Errorf("--orders: %w", err)
		}
	}
	tally := r.answers
	if !r.JudgeOnly {
		r.before = state.Last
	}
	if !r.JudgeOnly {
		var err error
		if tally, err = r.crowd().Run(ctx); err != nil {
			return nil, err
		}
		if r.Progress != nil && r.Rewrite {
			fmt.Fprint(r.Progress, "\r\033[K")
		}
	}
	judged := context.WithoutCancel(ctx)
	sources := stampede.Sources{Stock: r.stock, Journal: r.journal, Record: r.record, Settle: r.Settle}
	var unread error // the crowd is judged by the books all the same
	if r.Orders != "" {
		sources.Orders = func(ctx context.Context) (orders []stampede.Order, err error) {
			orders, unread = listOrders(ctx, r.Orders)
			return orders, nil
		}
	}
	evidence, err := sources.Collect(judged, tally)
	if err != nil {
		return nil, err
	}
	evidence.NoOrders = evidence.NoOrders || unread != nil
	evidence.Nameless = !r.named(&evidence)
	verdict := stampede.Check(evidence, stampede.Tolerance{InDoubt: true, Held: true})
	result := r.result(&evidence, &verdict, string(sale.Status))
	if unread != nil {
		result.note("only the gate's books were judged: the shop's orders cannot be read: %v", unread)
		result.fail("the shop's orders cannot be read")
	}
	if ctx.Err() != nil {
		result.fail("it was interrupted")
	}
	return result, nil
}

// crowd is the crowd of stampede that these options describe.
func (r *Rehearsal) crowd() stampede.Crowd {
	c := stampede.Crowd{
		Buyers: r.Buyers, Arrivals: r.arrivals, Shares: r.Shares, Template: r.templates,
		Retry: stampede.Retry{Times: r.Retry}, Timeout: r.Timeout, Insecure: r.Insecure, Seed: r.Seed,
	}
	if r.Waitlist != "" {
		c.Waitlist = &stampede.Waitlist{Path: r.Waitlist, Share: r.Enter, Patience: r.Patience}
	}
	if r.Options.Progress != nil {
		c.Progress, c.Every = r.progress, 5*time.Second
		if r.Rewrite {
			c.Every = 200 * time.Millisecond
		}
	}
	return c
}

// named reports whether answers and orders name the buyers.
func (r *Rehearsal) named(e *stampede.Evidence) bool {
	if e.Tally == nil {
		return false
	}
	return slices.ContainsFunc(e.Orders, func(o stampede.Order) bool { return o.Buyer != "" }) &&
		(r.templates == nil || r.templates.Name(0) != "") &&
		!slices.ContainsFunc(e.Tally.Answers, func(a stampede.Answer) bool { return a.Buyer == "" })
}

func (r *Rehearsal) path(more ...string) string {
	path := "sales/" + url.PathEscape(r.Sale)
	for _, segment := range more {
		path += "/" + segment
	}
	return path
}

func (r *Rehearsal) stock(ctx context.Context) (*reservation.SaleStock, error) {
	var shown adminapi.SaleShown
	err := r.Fetch(ctx, r.path(), &shown)
	return &shown.SaleStock, err
}

func (r *Rehearsal) record(ctx context.Context, id string) (*reservation.Record, error) {
	record := new(reservation.Record)
	return record, r.Fetch(ctx, "reservations/"+url.PathEscape(id), record)
}

// journal reads all movements of the sale.
func (r *Rehearsal) journal(ctx context.Context) (*stampede.Journal, error) {
	var state adminapi.JournalState
	if err := r.Fetch(ctx, r.path("journal"), &state); err != nil {
		return nil, err
	}
	j := &stampede.Journal{Before: r.before}
	for after := int64(0); after < state.Last; {
		var page adminapi.MovementPage[journal.Movement]
		query := url.Values{"after": {strconv.FormatInt(after, 10)}, "limit": {strconv.Itoa(adminapi.JournalPage)}}
		err := r.Fetch(ctx, r.path("journal", "movements?"+query.Encode()), &page)
		if err != nil && after == 0 && state.First > 1 { // trimmed, and no ledger has it
			after, j.Missing = state.First-1, state.First-1
			continue
		}
		if err == nil {
			err = j.Add(page.Movements)
		}
		if err != nil {
			return nil, err
		}
		if len(page.Movements) == 0 {
			return nil, fmt.Errorf("the journal of %s ends after number %d, and should have %d movements: run 'caddy stockgate doctor'", r.Sale, after, state.Last)
		}
		after += int64(len(page.Movements))
	}
	return j, nil
}
