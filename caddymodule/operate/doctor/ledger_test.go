package doctor_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/mariadbtest"
)

// setLedger changes a row of the ledger as another process that has the lease for half an hour.
func setLedger(t *testing.T, file, change string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE drains SET owner = 'other', lease_until = 1000 * unixepoch('now', '+30 minutes'), "+change); err != nil {
		t.Fatal(err)
	}
}

// What doctor, health and journal status say that the ledger has is what its file has, whatever was
// acknowledged to Redis; what it can never get is an error on each.
func TestLedgerSaysWhatItHas(t *testing.T) {
	file := t.TempDir() + "/ledger.db"
	p := sitetest.Admit(t, sitetest.WellRedis, "ledger sqlite "+file, "", sitetest.GuardedGate)
	settled(p, sale(p))
	p.Doctor().Finds()
	const drainers = "stockgate:drainers"
	c, later := p.Server.Client(), float64(time.Now().Add(time.Hour).UnixMilli())
	if err := c.ZAdd(t.Context(), drainers, redis.Z{Score: later, Member: "double11 east/1/x"}, redis.Z{Score: later, Member: "double11 west/1/y"}).Err(); err != nil {
		t.Fatal(err)
	}
	p.Doctor().Finds("error ledger these edges keep ledgers of their own of double11: ")
	if err := c.Del(t.Context(), drainers).Err(); err != nil {
		t.Fatal(err)
	}
	setLedger(t, file, "seq = 1")
	p.Doctor().Finds("error journal the ledger has double11 up to entry 1, and up to 3 was acknowledged: ")
	if err := p.Server.Client().XTrimMinID(t.Context(), "stockgate:{double11.0}:journal", "3-0").Err(); err != nil {
		t.Fatal(err)
	}
	const gap = "the ledger has sale double11 up to entry 1, and the journal begins after entry 2: what is between is in neither"
	p.Doctor().Finds("error journal " + gap)
	r := sitetest.Run(t, "", "journal", "status", "double11", "--config", p.Path("Caddyfile"))
	if r.Status != 1 || !strings.Contains(r.Out, "1       2") || !strings.Contains(r.Errors, gap) {
		t.Errorf("journal status: %d\n%s%s", r.Status, r.Out, r.Errors)
	}
	p.Eventually("health", func() (string, bool) {
		a := p.Admin("GET", "/stockgate/health", "").Body
		return a, strings.Contains(a, gap)
	})
}

// A database server that may lose what it has acknowledged is a warning: Redis forgets it on its word.
func TestDoctorFindsLazyDatabase(t *testing.T) {
	server := mariadbtest.Start(t)
	p := sitetest.Admit(t, sitetest.WellRedis, "ledger mysql "+server.Database(), "", sitetest.GuardedGate)
	p.Doctor().Finds()
	server.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
	p.Doctor().Finds("warning ledger the database has innodb_flush_log_at_trx_commit=2")
	server.Kill()
	p.Doctor().Finds("error ledger the ledger does not answer")
}
