package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/postgres"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/pgtest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// inStep waits until a ledger has all of a sale's journal, and fails unless the
// ledger, the journal and Redis say the same.
func inStep(t *testing.T, l ledger.Ledger, redis *redistest.Server, id string) {
	t.Helper()
	store, err := reservation.Open(shard.Options{Addresses: []string{redis.Addr()}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var h journal.Head
	var at ledger.Position
	eventuallyf(t, func() bool {
		var err1, err2 error
		h, err1 = store.Journal().Head(ctx, id)
		at, err2 = l.Position(ctx, id)
		return err1 == nil && err2 == nil && at == ledger.Position{Epoch: h.Epoch, Seq: h.Last} && h.Behind() == 0
	}, func() string { return fmt.Sprintf("the ledger is at %+v, the journal at %+v", at, h) })
	all, err := store.Journal().Movements(ctx, id, 0, 1e6)
	if err != nil {
		t.Fatal(err)
	}
	ledgertest.Same(t, ledgertest.Read(t, l, id, h.Epoch), all)
	inRedis, err := store.SaleStock(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	stock, err := l.Stock(ctx, id)
	if err != nil || len(stock) != len(inRedis.Items) {
		t.Fatalf("the ledger has %+v, error %v", stock, err)
	}
	for i, b := range inRedis.Items { // one item of the tests has one cell
		if want := (ledger.Cell{Name: b.SKU, Stock: b.Stock, Available: b.Available, Held: b.Held, InDoubt: b.InDoubt, Confirmed: b.Confirmed}); stock[i] != want {
			t.Errorf("the ledger has %+v, redis %+v", stock[i], want)
		}
	}
	told, err := ledger.Fold(all)
	if err != nil || len(told.Moved) > 0 {
		t.Fatalf("the journal does not tell all: %+v, error %v", told, err)
	}
	if !slices.Equal(told.Cells, stock) {
		t.Errorf("the movements make %+v, the ledger has %+v", told.Cells, stock)
	}
	sameRecords(t, l, redis, id, told.Whole)
}

// sameRecords fails unless the ledger and Redis have these reservations, field by field.
func sameRecords(t *testing.T, l ledger.Ledger, redis *redistest.Server, id string, want []*ledger.Reservation) {
	t.Helper()
	kept, err := redis.Client().HGetAll(t.Context(), "stockgate:{"+id+".0}:records").Result()
	if err != nil {
		t.Fatal(err)
	}
	inRedis, inLedger := map[string]ledger.Reservation{}, map[string]ledger.Reservation{}
	for id, text := range kept {
		r, err := record.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if r.State != "tombstone" { // of one that never was
			r.Probes = "" // no movement tells them
			inRedis[id] = ledger.Reservation{ID: id, Record: *r}
		}
	}
	err = l.Reservations(t.Context(), id, func(r *ledger.Reservation) error {
		inLedger[r.ID] = *r
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(inRedis) != len(want) || len(inLedger) != len(want) {
		t.Errorf("%d reservations, %d in redis, %d in the ledger", len(want), len(inRedis), len(inLedger))
	}
	for _, w := range want {
		r := *w
		r.Probes = ""
		if have := inRedis[r.ID]; !reflect.DeepEqual(have, r) {
			t.Errorf("redis has %+v, want %+v", have, r)
		}
		if have := inLedger[r.ID]; !reflect.DeepEqual(have, r) {
			t.Errorf("the ledger has %+v, want %+v", have, r)
		}
	}
}

// eachLedger runs a test with a ledger in a file and one in PostgreSQL.
func eachLedger(t *testing.T, f func(t *testing.T, option string, l ledger.Ledger)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "ledger", "stock.db")
		l, err := sqlite.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f(t, "ledger sqlite "+file, l)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dsn := pgtest.Start(t).Database()
		l, err := postgres.Open(dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f(t, fmt.Sprintf("ledger postgres %q", dsn), l)
	})
}

// The edge that drains is killed in mid-sale: another one goes on, and at the end each
// movement is in the ledger once and in order.
func TestDrainingEdgeIsKilled(t *testing.T) {
	t.Parallel()
	units := draw.Times(75, 150)
	eachLedger(t, func(t *testing.T, option string, l ledger.Ledger) {
		server := redistest.Start(t)
		draining, selling := newEdge(t, ""), newEdge(t, "")
		selling.storage = draining.storage
		s, addr := startShop(t, draining)
		same := site{redis: redisAt(server.Addr()), shop: addr, gate: roomy, app: option}
		draining.start(same)
		draining.sell("flash", fmt.Sprintf(`  - {sku: "7", stock: %d}`, units))
		inStep(t, l, server, "flash") // it has the lease
		selling.start(same)
		selling.untilSelling("flash")
		if err := s.SetMisbehaviour("delay=30ms:0.5,status=500:0.1,status=422:0.1"); err != nil {
			t.Fatal(err)
		}
		before, err := l.Position(t.Context(), "flash")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan []result, 1)
		go func() {
			done <- crowd(buyers(units+50, func(i int) order { return one(fmt.Sprintf("buyer-%d", i), "7", 1, "") }), noRoom, selling)
		}()
		eventually(t, "the crowd is in the ledger", func() bool {
			at, err := l.Position(t.Context(), "flash")
			return err == nil && at.Seq > before.Seq+20
		})
		draining.kill()
		<-done
		// one movement at least is left for the other: the first may have drained the crowd
		selling.must("POST", "sales/flash/pause", "", nil)
		inStep(t, l, server, "flash")
		eventually(t, "the one that sells says that it drains: else the test has killed the wrong one", func() bool {
			return strings.Contains(selling.adminGet("/metrics"), `stockgate_ledger_drained_total{sale="flash"} `)
		})
	})
}

// An edge whose ledger does not answer starts, sells and reloads; a reload to one that
// does brings all movements into it, and no drainer stays behind.
func TestLedgerThroughReloads(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "stock.db")
	l, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := newEdge(t, "")
	e.env = []string{"LEDGER=postgres://user:s3cret@127.0.0.1:1/db", "LEDGER_FILE=" + file}
	_, addr := startShop(t, e)
	with := func(option string) site { return site{redis: redisAt(server.Addr()), shop: addr, app: option} }
	drainers := func(want int) {
		t.Helper()
		eventuallyf(t, func() bool {
			return e.goroutines("ledger.(*Drainer).Run(") == want && e.goroutines("ledger.(*Trimmer).Run(") == 1
		},
			func() string { return fmt.Sprintf("%d drainers", e.goroutines("ledger.(*Drainer).Run(")) })
	}
	e.start(with("ledger postgres {env.LEDGER}"))
	// a ledger that does not answer may remember the sale: the operator says that it is new
	e.must("PUT", "sales/flash?new=1", "id: flash\n"+window+"items:\n"+`  - {sku: "7", stock: 100}`, nil)
	e.must("POST", "sales/flash/open", "", nil)
	e.untilSelling("flash")
	buy := func(buyer string) {
		t.Helper()
		e.buyers.CloseIdleConnections() // a reload closes those of before
		if r := e.buy(one(buyer, "7", 1, "")); r.status != 201 {
			t.Errorf("%s: %v", buyer, r)
		}
	}
	buy("Ann")
	eventually(t, "it is said", func() bool { return e.log.has("the ledger does not follow the sale; selling goes on") })
	drainers(1)
	e.mustReload(with("ledger postgres {env.LEDGER}"))
	drainers(1)
	e.mustReload(with("ledger sqlite {env.LEDGER_FILE}"))
	buy("Bob")
	inStep(t, l, server, "flash")
	drainers(1)
	e.mustReload(with("ledger sqlite {env.LEDGER_FILE}\njournal {\n keep 24h\n}"))
	buy("Cid")
	inStep(t, l, server, "flash")
	drainers(1)
	if status, body := e.reload(with("ledger sqlite {env.NOTHING}")); status == 200 {
		t.Errorf("a ledger without a file is taken: %s", body)
	}
	drainers(1)
	e.mustReload(with("ledger off"))
	drainers(0)
	buy("Dan")
	e.mustReload(with("ledger sqlite {env.LEDGER_FILE}"))
	inStep(t, l, server, "flash")
	if e.log.has("s3cret") {
		t.Error("the log has the password")
	}
}
