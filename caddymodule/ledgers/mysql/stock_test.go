package mysql_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/app/journals"
	"github.com/stockgate/stockgate/caddymodule/ledgers/mysql"
	"github.com/stockgate/stockgate/internal/test/mariadbtest"
)

// A server that only reads may be behind: its stock is not taken. Decimals are read as text, so that none is rounded.
func TestStockOfAPrimary(t *testing.T) {
	server := mariadbtest.Start(t, "--sql-mode=ANSI", "--autocommit=0")
	address := server.Database()
	if !new(mysql.MySQL).OpensStock(address) || new(mysql.MySQL).OpensStock("postgres://a@b/c") || new(mysql.MySQL).OpensStock("host=a dbname=b") {
		t.Error("the address is taken for another kind")
	}
	db, err := new(mysql.MySQL).OpenStock(address, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var mode, units string
	if err := db.QueryRowContext(t.Context(), "SELECT @@sql_mode, CAST(3 AS DECIMAL(10,4))").Scan(&mode, &units); err != nil || !strings.Contains(mode, "STRICT_ALL_TABLES") || units != "3.0000" {
		t.Errorf("%q, %q, %v", mode, units, err)
	}
	server.Exec("SET GLOBAL read_only = 1")
	replica, err := new(mysql.MySQL).OpenStock(address, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer replica.Close()
	if err := replica.PingContext(t.Context()); !errors.Is(err, journals.ErrReplica) {
		t.Errorf("a server that only reads: %v", err)
	}
}
