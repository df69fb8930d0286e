package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

const (
	edges = 2
	// holdFor is so long that no token expires on its way, however slow the machine is.
	holdFor = 15 * time.Second
)

// Run is one run of a configuration: what is attacked, and all that happened.
type Run struct {
	*Config
	seed    uint64
	caddies []string // the binaries that edges run, in turn
	dir     string

	h       *auditor.History
	crowd   *crowd.Crowd
	shop    *shop.Shop
	road    *rig.Proxy // from the edges to the shop
	store   store
	sql     *rig.Postgres
	edges   []*rig.Edge
	sites   []rig.Site
	doors   []*crowd.Door
	sales   []string
	good    goods
	waiting waiters

	mu      sync.Mutex
	notes   []string
	found   []auditor.Violation // while it ran
	steps   []Stepped
	cleanup []func()
}

// Stepped is a fault that was done.
type Stepped struct {
	Step
	Began, Ended time.Time
}

// failure is what keeps a run from going on: a process of the rig does not do what it must,
// or the product does not come back within all patience.
type failure struct{ error }

func (r *Run) must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// until waits for what must happen in the end.
func (r *Run) until(what string, done func() bool) { r.must(rig.Until(what, done)) }

// insist repeats what may run twice until it succeeds: another fault may close the connection.
func (r *Run) insist(what string, do func() error) {
	r.until(what, func() bool { return do() == nil })
}

func (r *Run) atEnd(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanup = append(r.cleanup, f)
}

// note keeps what a reader of a failure wants to know.
func (r *Run) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// Perform runs a schedule against a configuration and judges what came out. An error says
// that it did not come to its end: for a product that must come back, that is a broken
// promise too.
func (c *Config) Perform(caddies []string, seed uint64, schedule Schedule) (out *Outcome, err error) {
	dir, err := os.MkdirTemp("", "chaos")
	if err != nil {
		return nil, err
	}
	h := new(auditor.History)
	r := &Run{Config: c, seed: seed, caddies: caddies, dir: dir, h: h, crowd: &crowd.Crowd{History: h}, sales: []string{"one", "two"}}
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = f.error
			out = r.unfinished()
		default:
			panic(f)
		}
		for i := len(r.cleanup) - 1; i >= 0; i-- {
			r.cleanup[i]()
		}
		os.RemoveAll(dir)
	}()
	r.phase("stage", r.stage)
	if unknown := r.unknown(schedule); unknown != nil {
		return nil, fmt.Errorf("configuration %s has no fault %v", c.Name, unknown)
	}
	rig.During(r.allBuyers, func() {
		time.Sleep(500 * time.Millisecond)
		r.phase("nemesis", func() { r.nemesis(schedule) })
		r.phase("heal", r.heal)
		r.phase("sell again", r.sellsAgain)
	})
	r.phase("ask again", r.askAgain)
	if r.waits {
		r.phase("leave the lists", r.leaveLists)
	}
	r.phase("drain", r.drain)
	r.phase("settle", r.settle)
	return r.judged(), nil
}

// phase notes how long a part of the run took.
func (r *Run) phase(name string, do func()) {
	began := time.Now()
	defer func() { r.note("%s: %v", name, time.Since(began).Round(10*time.Millisecond)) }()
	do()
}

// The items: one is never sold out, the other always is in the end.
const (
	plenty, scarce           = "7", "8"
	plentyStock, scarceStock = 100_000, 120
	perBuyer                 = "limits:\n  - {per: buyer, every: sale, max: 2, count: units}\n"
)

// items are what a sale has: an item belongs to one sale only.
func items(sale string) (names [2]string) { return [2]string{plenty + sale, scarce + sale} }

// stockOf is what a sale file has.
func (r *Run) stockOf(sale string) []auditor.Units {
	names, scarce := items(sale), int64(scarceStock)
	if r.waits { // people wait from the first second on
		scarce /= 12
	}
	return []auditor.Units{{Cell: names[0], Qty: plentyStock}, {Cell: names[1], Qty: scarce}}
}

// stage starts all processes, and puts the sales on sale.
func (r *Run) stage() {
	var err error
	r.shop, err = shop.Start(r.h)
	r.must(err)
	r.atEnd(r.shop.Close)
	r.shop.Conduct = r.conduct
	r.road = r.link(r.shop.Addr())
	r.store = r.build(r)
	site := rig.Site{Shop: r.road.Addr(), Outcome: fmt.Sprintf("hold_for %v\n\t\tforward_timeout 3s", holdFor)}
	site.Waits = r.waits
	if r.queue {
		site.Queue = queueOptions
		for _, sale := range r.sales {
			r.h.Queues = append(r.h.Queues, queueOf(sale))
		}
	}
	if r.ledger {
		r.sql, err = rig.StartPostgres()
		if r.sql != nil {
			r.atEnd(r.sql.Remove)
		}
		r.must(err)
		site.App = fmt.Sprintf("ledger postgres %q", r.sql.DSN())
	}
	for i := range edges {
		site.Redis = r.store.option(i)
		r.startEdge(site)
	}
	r.h.Max = 2
	for _, sale := range r.sales {
		r.sell(sale)
	}
}

func (r *Run) startEdge(site rig.Site) {
	e, err := rig.NewEdge(r.caddies[len(r.edges)%len(r.caddies)], fmt.Sprintf("edge%d", len(r.edges)+1), r.dir, filepath.Join(r.dir, "storage"))
	r.must(err)
	r.must(e.Run(site))
	r.atEnd(e.Terminate)
	r.edges, r.sites = append(r.edges, e), append(r.sites, site)
	r.doors = append(r.doors, &crowd.Door{Name: e.Name, Addr: e.Addr()})
	r.shop.Trust(e.URL())
}

func (r *Run) sell(sale string) {
	names, stock, more := items(sale), r.stockOf(sale), perBuyer
	for _, u := range stock {
		r.h.Load(sale, u.Cell, u.Qty)
	}
	if r.waits {
		more += waitlistOptions
		r.h.Waitlists = append(r.h.Waitlists, r.listOf(sale))
	}
	r.must(r.edges[0].Insist(rig.SaleFile(sale, stock, "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z", more), "sale", "apply", "-"))
	r.must(r.edges[0].Insist("", "sale", "open", sale))
	for _, e := range r.edges {
		r.until("edge "+e.Name+" sells", func() bool { return e.ItemState(sale, names[0]) == "on_sale" })
	}
}

// nemesis does the schedule: the faults of a lane one after the other, the lanes at the same time.
func (r *Run) nemesis(schedule Schedule) {
	faults, began := r.faults(), time.Now()
	var lanes [2]Schedule
	for _, s := range schedule {
		lanes[s.Lane] = append(lanes[s.Lane], s)
	}
	var running sync.WaitGroup
	failures := make(chan failure, len(lanes))
	for _, lane := range lanes {
		running.Go(func() {
			defer func() {
				switch f := recover().(type) {
				case nil:
				case failure:
					failures <- f
				default:
					panic(f)
				}
			}()
			for _, s := range lane {
				time.Sleep(time.Until(began.Add(s.At)))
				r.do(s, faults[s.Fault])
			}
		})
	}
	running.Wait()
	select {
	case f := <-failures:
		panic(f)
	default:
	}
}

func (r *Run) do(s Step, fault func(Step)) {
	began := time.Now()
	fault(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, Stepped{s, began, time.Now()})
}

// heal ends what may be left of a fault, and waits until Redis is whole.
func (r *Run) heal() {
	for _, l := range r.store.links() {
		l.Resume()
	}
	r.road.Resume()
	r.room()
	r.store.whole()
}
