package ledgertest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/lua"
)

// Seller sells one sale "s" in Redis.
type Seller struct {
	*edge.Edge
	t    testing.TB
	mu   sync.Mutex
	made int
}

// NewSeller opens a sale with units of "a" on a Redis. Nothing happens in it except the
// seller's operations.
func NewSeller(t testing.TB, on redistest.Backend, units int64) *Seller {
	t.Helper()
	o := shard.Options{Addresses: []string{on.Addr()}, Timeout: time.Minute}
	if _, ok := on.(*redistest.EmbeddedServer); ok {
		o.Scripts = lua.Embedded()
	}
	store, err := reservation.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	s := &Seller{t: t, Edge: edge.New(store, edge.Options{Keys: []shard.SigningKey{{KID: "k", JWK: "{}"}}})}
	t.Cleanup(func() {
		if err := s.Stop(Soon(t)); err != nil {
			t.Error(err)
		}
	})
	s.Load(units)
	return s
}

// Load applies the sale and opens it, even if Redis has lost it.
func (s *Seller) Load(units int64) {
	s.t.Helper()
	file := &sale.Sale{
		ID: "s", StartsAt: time.Now().Add(-time.Hour).Truncate(time.Second), EndsAt: time.Now().Add(time.Hour).Truncate(time.Second), Timezone: "UTC",
		Items: []sale.Item{{SKU: "a", Stock: units}},
	}
	_, err := s.ApplyUnlessLost(Soon(s.t), file, reservation.ApplyOptions{By: "test", New: true})
	if err == nil {
		err = s.Store.SetStatus(Soon(s.t), "s", sale.Open, "test")
	}
	if err == nil {
		err = s.Refresh(Soon(s.t))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// Sell reserves a unit this many times, and ends each reservation in some way.
func (s *Seller) Sell(times int) {
	s.t.Helper()
	for range times {
		s.mu.Lock()
		s.made++
		n := s.made
		s.mu.Unlock()
		if err := s.sell(fmt.Sprintf("r%d", n), n); err != nil {
			s.t.Error(err)
			return
		}
	}
}

func (s *Seller) sell(id string, n int) error {
	l, ok := s.Catalogue().Sale("s")
	if !ok {
		return fmt.Errorf("the sale is not known")
	}
	lines := []sale.Line{{SKU: "a", Quantity: 1}}
	a := &sale.Attempt{Sale: "s", Buyer: id, Lines: lines, Ref: "order-of-" + id}
	ctx := Soon(s.t)
	_, no, err := s.Hold(ctx, id, l, a, lines, edge.HoldOptions{HoldFor: time.Hour, Margin: time.Minute, Mode: record.ModeResponse, Gate: "main"})
	if no != nil || err != nil {
		return fmt.Errorf("hold %s: refused %v, error %w", id, no, err)
	}
	switch n % 5 {
	case 0:
		_, err = s.Store.Release(ctx, "s", id, reservation.SourceShop, "status_422")
	case 1:
		_, err = s.Store.Doubt(ctx, "s", id, "timeout")
	case 2:
		if _, err = s.Store.Confirm(ctx, "s", id, reservation.SourceAnswer, "status_201"); err == nil {
			_, err = s.Store.Return(ctx, "s", id, reservation.Return{ID: "x", Restock: n%2 == 0, Cause: "damaged"})
		}
	case 3:
	default:
		_, err = s.Store.Confirm(ctx, "s", id, reservation.SourceAnswer, "status_201")
	}
	return err
}

// Drain starts a drainer, and returns what ends it and waits.
func (s *Seller) Drain(into ledger.Ledger, counts *Counts) (end func()) {
	ctx, cancel := contextWithCancel()
	done := make(chan struct{})
	d := ledger.NewDrainer(s.Store.Journal(), s.Store, into, counts.Log(), counts)
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	var once sync.Once
	end = func() {
		once.Do(cancel)
		<-done
	}
	s.t.Cleanup(end)
	return end
}

// UntilDrained waits until a ledger has all of the journal, and fails unless both and Redis agree.
func (s *Seller) UntilDrained(l ledger.Ledger) {
	s.t.Helper()
	var h journal.Head
	Eventually(s.t, "the ledger has everything", func() bool {
		var err error
		if h, err = s.Store.Journal().Head(Soon(s.t), "s"); err != nil {
			s.t.Fatal(err)
		}
		at, err := l.Position(Soon(s.t), "s")
		return err == nil && at == ledger.Position{Epoch: h.Epoch, Seq: h.Last} && h.Behind() == 0
	})
	all, err := s.Store.Journal().Movements(Soon(s.t), "s", 0, 1e6)
	if err != nil {
		s.t.Fatal(err)
	}
	Same(s.t, Read(s.t, l, "s", h.Epoch), all)
	inRedis, err := s.Store.SaleStock(Soon(s.t), "s")
	if err != nil {
		s.t.Fatal(err)
	}
	stock, err := l.Stock(Soon(s.t), "s")
	if err != nil {
		s.t.Fatal(err)
	}
	told := map[string]ledger.Cell{}
	for _, c := range stock {
		told[c.Name] = c
	}
	for _, b := range inRedis.Items {
		name := sale.Cell(b.SKU, b.Region)
		want := ledger.Cell{Name: name, Stock: b.Stock, Available: b.Available, Held: b.Held, InDoubt: b.InDoubt, Confirmed: b.Confirmed}
		if have := told[name]; have != want && (have != ledger.Cell{} || want != ledger.Cell{Name: name}) {
			s.t.Fatalf("the ledger's stock is %+v, in redis it is %+v", have, want)
		}
	}
}

// Counts are a drainer's and a keeper's log and metrics.
type Counts struct {
	mu       sync.Mutex
	core     zapcore.Core
	logs     *observer.ObservedLogs
	Movement int
	Failures map[string]int
	Heads    map[string]journal.Head
	drifts   map[string]int
	lacks    error
}

// Lacks is the last report of why the ledger can never get what it lacks.
func (c *Counts) Lacks() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lacks
}

// NewCounts counts from 0.
func NewCounts() *Counts {
	c := &Counts{Failures: map[string]int{}, Heads: map[string]journal.Head{}, drifts: map[string]int{}}
	c.core, c.logs = observer.New(zap.DebugLevel)
	return c
}

// Log is the log.
func (c *Counts) Log() *zap.Logger { return zap.New(c.core) }

// Logged returns how often a message was logged, and its last error.
func (c *Counts) Logged(message string) (n int, last string) {
	for _, e := range c.logs.FilterMessageSnippet(message).All() {
		n++
		last = fmt.Sprint(e.ContextMap()["error"])
	}
	return n, last
}

// Drained counts.
func (c *Counts) Drained(_ string, movements int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Movement += movements
}

// DrainFailed counts.
func (c *Counts) DrainFailed(where string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Failures[where]++
}

// Failed is how often something failed.
func (c *Counts) Failed(where string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Failures[where]
}

// Movements is how many were drained.
func (c *Counts) Movements() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Movement
}

// Journal keeps the last report.
func (c *Counts) Journal(sale string, h journal.Head, _ bool, lacks error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Heads[sale], c.lacks = h, lacks
}

// NoJournal forgets it.
func (c *Counts) NoJournal(sale string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.Heads, sale)
}

// Drift keeps the last report.
func (c *Counts) Drift(_, what string, cells int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drifts[what] = cells
}

// NoDrift forgets it.
func (c *Counts) NoDrift(_, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.drifts, what)
}

// Drifts is how many cells drift in a way; false: they were not checked.
func (c *Counts) Drifts(what string) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.drifts[what]
	return n, ok
}
