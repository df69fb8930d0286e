package mysql_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/mysql"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/mariadbtest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

func open(t testing.TB, address string) *mysql.Ledger {
	t.Helper()
	l, err := mysql.Open(address)
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

// The server's own settings are the ones that would hurt most.
func TestLedger(t *testing.T) {
	server := mariadbtest.Start(t, "--sql-mode=ANSI,PIPES_AS_CONCAT", "--character-set-server=latin1", "--collation-server=latin1_general_ci", "--default-time-zone=+05:30", "--autocommit=0", "--transaction-isolation=SERIALIZABLE", "--wait-timeout=28800")
	ledgertest.Run(t, func(t *testing.T) func() ledger.Ledger {
		address := server.Database()
		return func() ledger.Ledger { return open(t, address) }
	})
	t.Run("by hand", func(t *testing.T) { byHand(t, server) })
	t.Run("tables that do not fit", func(t *testing.T) { misfits(t, server) })
	t.Run("names", func(t *testing.T) { distinct(t, server) })
}

// Tables that a database administrator has created are enough: the user needs no right to create any.
func byHand(t *testing.T, server *mariadbtest.Server) {
	address := server.Database()
	admin := open(t, address)
	name := address[strings.LastIndex(address, "/test")+1 : strings.Index(address, "?")]
	for _, m := range append(mysql.Migrations(), "CREATE USER gate", "GRANT SELECT, INSERT, UPDATE, DELETE ON "+name+".* TO gate") {
		if err := admin.Exec(m); err != nil {
			t.Fatalf("%s: %v", m, err)
		}
	}
	l := open(t, strings.Replace(address, "root@", "gate@", 1))
	if err := l.Migrate(ledgertest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	if _, ours, err := l.Acquire(ledgertest.Soon(t), "s", "A", time.Hour); !ours || err != nil {
		t.Errorf("lease: %v, error %v", ours, err)
	}
	if err := admin.Exec("INSERT INTO stockgate_schema VALUES (99)"); err != nil {
		t.Fatal(err)
	}
	if err := l.Migrate(ledgertest.Soon(t)); !errors.Is(err, ledger.ErrNewerSchema) {
		t.Errorf("newer tables: %v", err)
	}
}

// Tables in which a batch would not be atomic, or two sales be one, are refused.
func misfits(t *testing.T, server *mariadbtest.Server) {
	for change, want := range map[string]string{
		"ALTER TABLE stockgate_sales ENGINE=Aria":                                                 "run ALTER TABLE stockgate_sales ENGINE=InnoDB",
		"ALTER TABLE stockgate_sales CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci": "has the collation utf8mb4_general_ci",
		"ALTER TABLE stockgate_drains MODIFY owner varchar(300) CHARACTER SET latin1 NOT NULL":    "has the collation latin1_swedish_ci",
	} {
		l := open(t, server.Database())
		if err := l.Migrate(ledgertest.Soon(t)); err != nil {
			t.Fatal(err)
		}
		if err := l.Exec(change); err != nil {
			t.Fatal(err)
		}
		if err := l.Migrate(ledgertest.Soon(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
}

// Sales whose names differ in case or in accents are different ones.
func distinct(t *testing.T, server *mariadbtest.Server) {
	l := open(t, server.Database())
	if err := l.Migrate(ledgertest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	for _, sale := range []string{"cafe", "CAFE", "café", "🎫"} {
		if _, ours, err := l.Acquire(ledgertest.Soon(t), sale, "owner of "+sale, time.Hour); !ours || err != nil {
			t.Errorf("%s: %v, %v", sale, ours, err)
		}
	}
}

// A server that may lose commits in a crash of its machine is named.
func TestDurable(t *testing.T) {
	server := mariadbtest.Start(t)
	l := open(t, server.Address("mysql"))
	for setting, want := range map[string]string{"1": "", "2": "innodb_flush_log_at_trx_commit=2", "0": "innodb_flush_log_at_trx_commit=0"} {
		server.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = " + setting)
		if why, err := l.Durable(ledgertest.Soon(t)); err != nil || !strings.Contains(why, want) || (why == "") != (want == "") {
			t.Errorf("with %s: %q, %v", setting, why, err)
		}
	}
}

// MariaDB dies, twice.
func TestDatabaseIsCut(t *testing.T) {
	server := mariadbtest.Start(t)
	ledgertest.Cut(t, open(t, server.Database()), server)
}

// A drainer that freezes in the middle of a batch does not block its sale: the database ends its connection, and
// another one continues.
func TestDrainerFreezes(t *testing.T) {
	server := mariadbtest.Start(t)
	address := server.Database()
	other := open(t, address)
	frozen, err := mysql.OpenIdle(address, "1")
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	if err := other.Migrate(ledgertest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	shard := ledgertest.History(t, 3, 100)
	all := ledgertest.Movements(t, shard.Journal)
	if _, ours, err := frozen.Acquire(ledgertest.Soon(t), "s", "A", time.Millisecond); !ours || err != nil {
		t.Fatalf("lease: %v, error %v", ours, err)
	}
	thaw, err := frozen.Hold("s") // as Append does first
	if err != nil {
		t.Fatal(err)
	}
	ledgertest.Eventually(t, "another one has the sale", func() bool {
		at, ours, err := other.Acquire(ledgertest.Soon(t), "s", "B", time.Hour)
		return err == nil && ours && at == ledger.Position{}
	})
	b := &ledger.Batch{Epoch: shard.Epoch, Movements: all}
	if err := other.Append(ledgertest.Soon(t), "s", "B", b); err != nil {
		t.Fatal(err)
	}
	if err := thaw(); err == nil {
		t.Error("the transaction that froze has been committed")
	}
	ledgertest.Same(t, ledgertest.Read(t, other, "s", shard.Epoch), all)
	if err := frozen.Append(ledgertest.Soon(t), "s", "A", b); !errors.Is(err, ledger.ErrNotOwner) {
		t.Errorf("the drainer that froze continues: %v", err)
	}
}

// No error repeats a password, wherever it is written.
func TestAddress(t *testing.T) {
	for _, address := range []string{
		"", "s3cret", "mysql://user:s3cret word@host/db", "mysql://user:s3cret%zz@host/db", "mysql://user:s3cret@host", "mysql://user:s3cret@host/", "mysql://user:s3cret@/db", "mysql://user:s3cret@host/db/more",
		"mysql://user:s3cret@host/db?sslmode=s3cret", "mysql://user:s3cret@host/db?tls=s3cret", "mysql://user:s3cret@host/db?tls=true&tls=false", "mysql://user:s3cret@host/db?socket=/s", "mysql://user:s3cret@host:s3cret/db", "mysql://user:s3cret@host/db#s3cret",
		"user:s3cret@tcp(host", "user:s3cret@tcp(host:3306)", "user:s3cret@tcp(host:3306)/", "postgres://user:s3cret@host/db",
	} {
		_, err := mysql.Open(address)
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, address := range []string{"mysql://user:s3cret@127.0.0.1:1/db", "mariadb://user:s3%40cret@127.0.0.1:1/db?tls=true", "user:s3cret@tcp(127.0.0.1:1)/db", "mysql://u@/db?socket=/no/such/s3cret.sock"} {
		if err := open(t, address).Migrate(ledgertest.Soon(t)); err == nil || strings.Contains(err.Error(), "s3cret@") {
			t.Errorf("%q, nothing listens: %v", address, err)
		}
	}
}

// Run it with -benchtime 1000000x.
func BenchmarkDrain(b *testing.B) {
	server := mariadbtest.Start(b, "--innodb-flush-method=fsync", "--innodb-buffer-pool-size=256M")
	ledgertest.Bench(b, open(b, server.Database()))
}
