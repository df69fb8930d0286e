package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/postgres"
	"github.com/stockgate/stockgate/internal/shop"
	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/pgtest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// chaos is a sale in which everything may die but the shop: three edges behind one
// door, a Redis that keeps what it has acknowledged, and a PostgreSQL.
type chaos struct {
	t        *testing.T
	dice     *rand.Rand
	redis    *redistest.Server
	postgres *pgtest.Server
	ledger   ledger.Ledger
	shop     *shop.Shop
	site     site
	edges    []*edge
	down     map[*edge]bool // killed or stopped
	door     *edge          // what buyers see of the edges
	stock    int64          // what was loaded, and added since
	added    int            // how often

	unavailable atomic.Int64 // answers so far that Redis does not answer
	closing     atomic.Bool  // who hears sold_out goes home
	over        context.Context
	mu          sync.Mutex
	results     []result // of those who have gone home
}

func newChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	c := &chaos{
		t: t, dice: rand.New(rand.NewPCG(seed, 0)), down: map[*edge]bool{},
		// a journal so short that Redis rewrites its file again and again
		redis: redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always",
			"auto-aof-rewrite-percentage 50", "auto-aof-rewrite-min-size 64kb")),
		postgres: pgtest.Start(t),
	}
	l, err := postgres.Open(c.postgres.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c.ledger = l
	for range 3 {
		c.edges = append(c.edges, newEdge(t, ""))
	}
	s, front := startShop(t, c.edges[0])
	c.shop = s
	c.site = site{redis: redisIn(c.redis.Addr(), "2s"), shop: front, app: fmt.Sprintf("ledger postgres %q", c.postgres.DSN()),
		gate: roomy + "hold_for 5s\nforward_timeout 2s\n" + retries + probing(front)}
	for _, e := range c.edges {
		e.storage = c.edges[0].storage
		e.start(c.site)
	}
	c.stock = 20
	c.edges[0].sell("chaos", fmt.Sprintf("  - {sku: \"7\", stock: %d}\nlimits:\n  - {per: buyer, every: sale, max: 1, count: orders}", c.stock))
	for _, e := range c.edges[1:] {
		e.untilSelling("chaos")
	}
	if err := s.SetMisbehaviour("delay=20ms:0.5,delay-after=20ms:0.5,status=422:0.1,500-after:0.05,drop-after:0.05,drop-before:0.05"); err != nil {
		t.Fatal(err)
	}
	c.door = &edge{t: t, url: "http://" + balance(t, c.edges...), buyers: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	t.Cleanup(c.door.buyers.CloseIdleConnections)
	return c
}

// alive is an edge that is not down.
func (c *chaos) alive() *edge {
	for {
		if e := c.edges[c.dice.IntN(len(c.edges))]; !c.down[e] {
			return e
		}
	}
}

// restock adds units, by an edge that may not have noticed yet that Redis is back.
func (c *chaos) restock(units int64) {
	c.t.Helper()
	c.added++
	c.stock += units
	e, status, answer := c.alive(), 0, ""
	within(c.t, 2*patience, func() bool {
		status, answer = e.askAdmin("POST", "sales/chaos/items/7/stock", fmt.Sprintf(`{"id":"more-%d","delta":%d}`, c.added, units), nil)
		return status == http.StatusOK
	}, func() string { return "units are added: " + answer })
}

// position is how far the ledger is; 0: it does not answer.
func (c *chaos) position() int64 {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	at, _ := c.ledger.Position(ctx, "chaos")
	return at.Seq
}

// drainer is the edge that has the lease. There are movements all the time, so one
// has it.
func (c *chaos) drainer() *edge {
	c.t.Helper()
	var found *edge
	within(c.t, 2*patience, func() bool {
		pid := c.postgres.Ask(`SELECT split_part(owner, '/', 2) FROM stockgate_drains WHERE sale = 'chaos' AND lease_until > clock_timestamp()`)
		for _, e := range c.edges {
			if !c.down[e] && pid == fmt.Sprint(e.cmd.Process.Pid) {
				found = e
				return true
			}
		}
		return false
	}, func() string { return "one of the edges drains" })
	return found
}

// untilMore adds units, if any, and waits until something that counts up has come
// further.
func (c *chaos) untilMore(what string, n int64, count func() int64, units int64) {
	c.t.Helper()
	before := count()
	if units > 0 {
		c.restock(units)
	}
	within(c.t, 2*patience, func() bool { return count() >= before+n },
		func() string { return fmt.Sprintf("%s: from %d to %d, it is at %d", what, before, before+n, count()) })
}

func (c *chaos) attempts() int64 { return c.shop.Counts().Attempts }

// What may die. Who tells which edge drains comes last.
var parts = []string{"the draining edge", "redis", "postgres"}

// kill ends a part as a crash does, and returns what brings it back.
func (c *chaos) kill(part string) (revive func()) {
	c.t.Helper()
	switch part {
	case "redis":
		c.redis.Kill()
		return c.redis.Restart
	case "postgres":
		c.postgres.Kill()
		return c.postgres.Restart
	}
	e := c.drainer()
	e.kill()
	c.down[e] = true
	return func() {
		e.restart(c.site)
		delete(c.down, e)
	}
}

// die kills parts at a moment in the middle of the sale, sees that the sale goes on, or
// that it stands still where it must, and brings them back.
func (c *chaos) die(dying ...string) {
	c.t.Helper()
	units, n := 10+c.dice.Int64N(10), 1+c.dice.Int64N(6)
	if c.dice.IntN(2) == 0 {
		c.untilMore("orders reach the shop", n, c.attempts, units)
	} else {
		c.untilMore("the ledger goes on", n, c.position, units)
	}
	var revive []func()
	for _, part := range parts {
		if slices.Contains(dying, part) {
			revive = append(revive, c.kill(part))
		}
	}
	if slices.Contains(dying, "redis") {
		c.untilMore("buyers hear that it is unavailable", 1, c.unavailable.Load, 0)
	} else {
		c.untilMore("selling goes on", 2, c.attempts, 5)
	}
	c.dice.Shuffle(len(revive), func(i, j int) { revive[i], revive[j] = revive[j], revive[i] })
	for _, f := range revive {
		f()
	}
}

// freeze stops the edge that drains until another one has taken the sale from it, and
// lets it go on where it was.
func (c *chaos) freeze() {
	c.t.Helper()
	c.untilMore("the ledger goes on", 2, c.position, 10)
	e := c.drainer()
	e.cmd.Process.Signal(syscall.SIGSTOP)
	defer e.cmd.Process.Signal(syscall.SIGCONT)
	c.down[e] = true
	c.restock(5)
	c.drainer() // another one
	c.untilMore("another one drains", 1, c.position, 5)
	delete(c.down, e)
}

// The edge that drains, Redis and PostgreSQL are killed with -9, in turn, two at a
// time and in any order, and an edge stands still until its lease is gone, all of it
// while buyers come who ask again under their keys, for units of which there are never
// enough, in a shop that misbehaves: at the end every unit is sold, no order is there
// twice or too many, and ledger, journal and Redis tell the same, each movement once.
func TestEverythingDies(t *testing.T) {
	t.Parallel()
	seed := draw.Seed(t)
	c := newChaos(t, seed)
	wait := c.crowd(12)
	for _, part := range parts {
		c.die(part)
	}
	c.freeze()
	for range draw.Times(2, 12) {
		one, another := c.dice.IntN(len(parts)), c.dice.IntN(len(parts)) // may be the same
		c.die(parts[one], parts[another])
	}
	c.restock(10)

	first := c.edges[0]
	var b saleStock
	within(t, 4*patience, func() bool {
		if status, _ := first.askAdmin("GET", "sales/chaos", "", &b); status != http.StatusOK {
			return false
		}
		return b.only(t) == counts{0, 0, 0, c.stock}
	}, func() string {
		return fmt.Sprintf("all %d units are sold, nothing is held or in doubt: %v", c.stock, b)
	})
	c.closing.Store(true)
	wait()
	audit(t, first, "chaos", c.shop, c.results)
	orders, err := c.shop.Orders(t.Context())
	if err != nil || int64(len(orders)) != c.stock {
		t.Errorf("the shop has %d orders, error %v; there were %d units", len(orders), err, c.stock)
	}
	buyers := map[string]bool{}
	for _, o := range orders {
		if buyers[o.Buyer] {
			t.Errorf("%s has two orders", o.Buyer)
		}
		buyers[o.Buyer] = true
	}
	all := c.length()
	within(t, 4*patience, func() bool { return c.position() >= all }, func() string { return "the ledger catches up" })
	inStep(t, c.ledger, c.redis, "chaos")
	for _, e := range c.edges {
		for _, alarm := range []string{"redis has lost", "were trimmed before", "redis and the ledger disagree", "another program has changed its tables"} {
			if e.log.has(alarm) {
				t.Errorf("nothing was lost, and an edge says %q", alarm)
			}
		}
	}
	t.Logf("%d orders, %d movements", len(orders), all)
}

// length is how many movements the journal has had.
func (c *chaos) length() int64 {
	n, err := c.redis.Client().HGet(c.t.Context(), "stockgate:{chaos.0}:meta", "seq").Int64()
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}
