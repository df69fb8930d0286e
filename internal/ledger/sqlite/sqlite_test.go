package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

func open(t testing.TB, file string) *sqlite.Ledger {
	t.Helper()
	l, err := sqlite.Open(file)
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
	ledgertest.Run(t, func(t *testing.T) func() ledger.Ledger {
		file := filepath.Join(t.TempDir(), "new", "a ledger?#%是.db")
		return func() ledger.Ledger { return open(t, file) }
	})
}

// A ledger whose tables another process is making is no database of something else.
func TestTwoBegin(t *testing.T) {
	for range 10 { // whatever is read first
		file := filepath.Join(t.TempDir(), "ledger.db")
		l, other := open(t, file), open(t, file)
		err := l.ExamineBeside(func() {
			if err := other.Migrate(ledgertest.Soon(t)); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Only its owner can read the file, and a file of another program is left alone.
func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "ledger.db")
	l := open(t, file)
	if err := l.Migrate(ledgertest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, error %v", info.Mode(), err)
	}
	if err := l.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	if err := open(t, file).Migrate(ledgertest.Soon(t)); !errors.Is(err, ledger.ErrNewerSchema) {
		t.Errorf("newer tables: %v", err)
	}

	foreign := open(t, filepath.Join(t.TempDir(), "shop.db"))
	if err := foreign.Exec("CREATE TABLE orders (id TEXT)"); err != nil {
		t.Fatal(err)
	}
	if err := foreign.Migrate(ledgertest.Soon(t)); err == nil || !strings.Contains(err.Error(), "a file of its own") {
		t.Errorf("the shop's own database: %v", err)
	}
	if _, err := sqlite.Open(""); err == nil {
		t.Error("Open accepts an empty file name")
	}
}

// An operator can create the tables with the statements of Migrations.
func TestMigrationsByHand(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	for _, m := range sqlite.Migrations() {
		if err := l.Exec(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Migrate(ledgertest.Soon(t)); err != nil {
		t.Errorf("tables that were made by hand: %v", err)
	}
}

// Run it with -benchtime 1000000x.
func BenchmarkDrain(b *testing.B) {
	ledgertest.Bench(b, open(b, filepath.Join(b.TempDir(), "ledger.db")))
}

// Run it with -benchtime 1000000x.
func BenchmarkRebuild(b *testing.B) {
	ledgertest.BenchRebuild(b, open(b, filepath.Join(b.TempDir(), "ledger.db")))
}

// A ledger of an older version gets the new columns, and keeps what it has: its reservations
// are in no counter of unpaid holds.
func TestLedgerOfBefore(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	if err := l.Exec(sqlite.Migrations()[0]); err != nil {
		t.Fatal(err)
	}
	if err := l.Exec(`INSERT INTO reservations VALUES ('s', 'r', 'held', 1, 2, 3, 4, 'backend', 'b', 'a 1', '', '', '', 1, 'g', 'p', 0, 'o', 'main')`); err != nil {
		t.Fatal(err)
	}
	if err := l.Migrate(ledgertest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := l.Reservations(ledgertest.Soon(t), "s", func(r *ledger.Reservation) error {
		if n++; r.ID != "r" || r.Gate != "main" || r.Unpaid != "" {
			t.Errorf("it has %+v", r)
		}
		return nil
	})
	if err != nil || n != 1 {
		t.Errorf("it has %d reservations, error %v", n, err)
	}
}
