package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/ledger/postgres"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/pgtest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// mustSell lets so many buyers in, one after the other, of whom each gets a unit.
func (e *edge) mustSell(prefix string, n int) {
	e.t.Helper()
	for i := range n {
		e.buy(one(fmt.Sprintf("%s-%d", prefix, i), "7", 1, "")).is(e.t, 201, "")
	}
}

// PostgreSQL is away for long: selling goes on, also at an edge that starts meanwhile;
// it is an alarm, in the metrics and once in the log; and when PostgreSQL is back, the
// ledger catches up and the alarm ends.
func TestLedgerIsCutForLong(t *testing.T) {
	t.Parallel()
	database, redis := pgtest.Start(t), redistest.Start(t)
	l, err := postgres.Open(database.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	early, late := newEdge(t, ""), newEdge(t, "")
	late.storage = early.storage
	_, addr := startShop(t, early)
	same := site{redis: redisAt(redis.Addr()), shop: addr, app: fmt.Sprintf("ledger postgres %q", database.DSN())}
	early.start(same)
	early.sell("flash", `  - {sku: "7", stock: 100}`)
	inStep(t, l, redis, "flash")
	database.Kill()
	early.mustSell("a", 10)
	late.start(same)
	late.untilSelling("flash")
	late.mustSell("b", 10)
	const lag, age, failures = `stockgate_ledger_lag_movements{sale="flash"}`, `stockgate_ledger_lag_seconds{sale="flash"}`, `stockgate_ledger_failures_total{where="ledger"}`
	alarms := func(e *edge) int { return strings.Count(e.log.String(), `"the ledger is behind: `) }
	for _, e := range []*edge{early, late} {
		eventually(t, "the alarm is in the log", func() bool { return alarms(e) == 1 })
		eventuallyf(t, func() bool { return e.metric(lag) >= 40 && e.metric(age) > 10 && e.metric(failures) > 0 },
			func() string {
				return fmt.Sprintf("the alarm is in the metrics: %v behind for %v s, %v failures", e.metric(lag), e.metric(age), e.metric(failures))
			})
	}
	early.mustSell("c", 5)
	database.Restart()
	for _, e := range []*edge{early, late} {
		eventually(t, "it is said that the alarm is over", func() bool { return e.log.has("the ledger has caught up") })
		eventually(t, "the metrics say so", func() bool { return e.metric(lag) == 0 && e.metric(age) == 0 })
		if n := alarms(e); n != 1 {
			t.Errorf("the alarm came %d times", n)
		}
	}
	inStep(t, l, redis, "flash")
	early.expect("flash", 75, 0, 0, 25)
}

// A Redis that is not told to keep every write loses the last ones in a crash, and one
// of them is torn. Without a fence the edges do not give them back. It is said at once, with
// what to do; the ledger keeps what it has; selling goes on, as documented.
func TestRedisLosesItsLastWrites(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync everysec"))
	name := filepath.Join(t.TempDir(), "ledger.db")
	l, err := sqlite.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := newEdge(t, "")
	_, addr := startShop(t, e)
	e.start(site{redis: redis.Addr() + " {\n timeout 20s\n fence off\n}", shop: addr, app: "ledger sqlite " + name})
	e.sell("flash", `  - {sku: "7", stock: 100}`)
	e.mustSell("a", 10)
	inStep(t, l, redis, "flash")
	files, err := filepath.Glob(filepath.Join(redis.Dir(), "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		t.Fatalf("redis writes %q, error %v", files, err)
	}
	eventually(t, "redis has written what it has", func() bool {
		info, err := redis.Client().Info(t.Context(), "persistence").Result()
		return err == nil && strings.Contains(info, "aof_pending_bio_fsync:0\r\n") && strings.Contains(info, "aof_buffer_length:0\r\n")
	})
	kept, err := os.Stat(files[0])
	if err != nil {
		t.Fatal(err)
	}
	e.mustSell("b", 10)
	inStep(t, l, redis, "flash")
	at, err := l.Position(t.Context(), "flash")
	if err != nil {
		t.Fatal(err)
	}
	before := ledgertest.Read(t, l, "flash", at.Epoch)
	redis.Kill()
	if err := os.Truncate(files[0], kept.Size()+100); err != nil {
		t.Fatal(err)
	}
	redis.Restart()
	eventually(t, "it is said, with the reason and what to do", func() bool {
		return e.log.has("redis has lost") && e.log.has("in a crash without appendfsync always") && e.log.has("caddy stockgate reconcile flash")
	})
	eventually(t, "it is counted", func() bool { return e.metric(`stockgate_ledger_failures_total{where="journal"}`) > 0 })
	eventually(t, "the edge hears redis again", func() bool { return e.buy(one("probe", "none", 1, "")).reason == "unknown_item" })
	e.mustSell("c", 15)
	if now, err := l.Position(t.Context(), "flash"); now != at || err != nil {
		t.Errorf("the ledger has moved from %+v to %+v, error %v", at, now, err)
	}
	ledgertest.Same(t, ledgertest.Read(t, l, "flash", at.Epoch), before)
	if b := e.stock("flash"); !b.Balanced || b.only(t) != (counts{75, 0, 0, 25}) {
		t.Errorf("redis has %v", b)
	}
}
