package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/postgres"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/pgtest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

func open(t testing.TB, dsn string) *postgres.Ledger {
	t.Helper()
	l, err := postgres.Open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestLedger(t *testing.T) {
	server := pgtest.Start(t)
	ledgertest.Run(t, func(t *testing.T) func() ledger.Ledger {
		dsn := server.Database()
		return func() ledger.Ledger { return open(t, dsn) }
	})
	t.Run("by hand", func(t *testing.T) { byHand(t, server) })
}

// Tables that a database administrator has created are enough: the role needs no right to
// create any.
func byHand(t *testing.T, server *pgtest.Server) {
	dsn := server.Database()
	admin := open(t, dsn)
	for _, m := range append(postgres.Migrations(),
		"CREATE ROLE gate LOGIN", "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO gate") {
		if err := admin.Exec(m); err != nil {
			t.Fatalf("%s: %v", m, err)
		}
	}
	l := open(t, strings.Replace(dsn, "user=postgres", "user=gate", 1))
	if err := l.Migrate(ledgertest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	if _, ours, err := l.Acquire(ledgertest.Soon(t), "s", "A", 1); !ours || err != nil {
		t.Errorf("lease: %v, error %v", ours, err)
	}
	if err := admin.Exec("INSERT INTO stockgate_schema VALUES (99)"); err != nil {
		t.Fatal(err)
	}
	if err := l.Migrate(ledgertest.Soon(t)); !errors.Is(err, ledger.ErrNewerSchema) {
		t.Errorf("newer tables: %v", err)
	}
}

// No error repeats a password, wherever it is written.
func TestAddress(t *testing.T) {
	for _, dsn := range []string{
		"", "postgres://user:s3cret word@host/db", "postgres://user:s3cret%zz@host/db", "user=a password=s3cret port=x", "s3cret",
		"postgres://user:s3cret@host:s3cret/db", "host=a password='s3cret", "postgres://host/db?sslmode=s3cret",
	} {
		_, err := postgres.Open(dsn)
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", dsn, err)
		}
	}
	l := open(t, "postgres://user:s3cret@127.0.0.1:1/db")
	if err := l.Migrate(ledgertest.Soon(t)); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("nothing listens: %v", err)
	}
}

// Run it with -benchtime 1000000x.
func BenchmarkDrain(b *testing.B) {
	server := pgtest.Start(b, "fsync=on", "full_page_writes=on", "shared_buffers=256MB", "autovacuum=on", "max_wal_size=4GB")
	ledgertest.Bench(b, open(b, server.Database()))
}

// Run it with -benchtime 1000000x.
func BenchmarkRebuild(b *testing.B) {
	server := pgtest.Start(b, "fsync=on", "full_page_writes=on", "shared_buffers=256MB", "autovacuum=on", "max_wal_size=4GB")
	ledgertest.BenchRebuild(b, open(b, server.Database()))
}
