package command_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/ledger/mysql"
	"github.com/stockgate/stockgate/internal/test/mariadbtest"
	"github.com/stockgate/stockgate/internal/test/pgtest"
	"github.com/stockgate/stockgate/internal/test/spawn"
)

// shopDatabase is a shop's own database with a table of what it gives to campaigns.
type shopDatabase struct {
	*sql.DB
	t *testing.T
	// dsn is how a sale file names it, secret what must not leave the command.
	dsn, secret string
	// many inserts ten thousand rows.
	many string
}

func (d *shopDatabase) exec(statement string, args ...any) {
	d.t.Helper()
	if _, err := d.Exec(statement, args...); err != nil {
		d.t.Fatalf("%s: %v", statement, err)
	}
}

const campaign = "SELECT sku, units AS stock, region FROM campaign WHERE name = 'double11'"

const manyRows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) INSERT INTO campaign SELECT 'double11', 'sku-' || i, NULL, i FROM n"

// To start a server takes more than most tests: there is one of each kind, and a test has a database of its own.
var (
	servers        spawn.Shared
	postgresServer = sync.OnceValue(func() *pgtest.Server { return pgtest.Start(&servers) })
	mariaServer    = sync.OnceValue(func() *mariadbtest.Server {
		return mariadbtest.Start(&servers, "--sql-mode=", "--character-set-server=latin1")
	})
)

func TestMain(m *testing.M) {
	code := m.Run()
	servers.End()
	os.Exit(code)
}

// shopDatabases runs a test with a shop's database of each kind.
func shopDatabases(t *testing.T, test func(*testing.T, *shopDatabase)) {
	t.Run("postgres", func(t *testing.T) {
		dsn := postgresServer().For(t).Database()
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		// the server takes any password
		d := &shopDatabase{db, t, dsn + " password='{env.SHOP_PASSWORD}'", "top secret", manyRows}
		d.begin()
		test(t, d)
	})
	t.Run("mysql", func(t *testing.T) {
		server := mariaServer().For(t)
		address := server.Database()
		server.Exec("GRANT ALL ON *.* TO shop IDENTIFIED BY 'top secret'")
		config, err := mysql.Config(address)
		if err != nil {
			t.Fatal(err)
		}
		connector, err := driver.NewConnector(config)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(connector)
		t.Cleanup(func() { db.Close() })
		d := &shopDatabase{db, t, strings.Replace(address, "root@", "shop:{env.SHOP_ESCAPED}@", 1), "top secret", "INSERT INTO campaign SELECT 'double11', CONCAT('sku-', seq), NULL, seq FROM seq_1_to_10000"}
		t.Setenv("SHOP_ESCAPED", "top%20secret")
		d.begin()
		test(t, d)
	})
	t.Run("sqlite", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "the shop's #1?.db")
		db, err := sql.Open("sqlite", "file:"+strings.NewReplacer("?", "%3f", "#", "%23").Replace(file))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		d := &shopDatabase{db, t, "sqlite:{env.SHOP_FILE}", file, manyRows}
		d.exec("PRAGMA journal_mode = WAL")
		d.begin()
		test(t, d)
	})
}

func (d *shopDatabase) begin() {
	d.t.Setenv("SHOP_PASSWORD", d.secret)
	d.t.Setenv("SHOP_FILE", d.secret)
	d.exec("CREATE TABLE campaign (name text, sku text, region text, units bigint)")
	d.exec("INSERT INTO campaign VALUES ('double11', 'a', NULL, 100), ('double11', 'b', 'north', 40), ('double11', 'b', 'south', 60), ('other', 'c', NULL, 1)")
}

// fromFile writes a sale file whose stock that query gives.
func fromFile(s *sitetest.Site, dsn, query, more string) string {
	return s.File("from.yaml", fmt.Sprintf("id: double11\nstarts_at: 2020-11-11T00:00:00+08:00\nends_at: 2090-11-12T00:00:00+08:00\nstock_from:\n  dsn: %q\n  query: %q\n%s", dsn, query, more))
}

// A sale takes its stock from the shop's database: what the query gives is compared
// with what it gave last, as if a file had listed it.
func TestSaleApplyTakesStockFromSQL(t *testing.T) {
	shopDatabases(t, func(t *testing.T, d *shopDatabase) {
		server, app := sitetest.Redis(t)
		s := sitetest.Open(t, app)
		file := fromFile(s, d.dsn, campaign, "items: [{sku: a, max: 2}, {sku: b}]\n")
		if out := s.OK("sale", "apply", file, "--dry-run"); !strings.Contains(out, "new item a: stock 100, max 2\n") || !strings.Contains(out, "dry run: nothing was changed") {
			t.Fatal(out)
		}
		if out := s.OK("sale", "list"); !strings.Contains(out, "(none)") {
			t.Fatalf("a dry run has changed something: %s", out)
		}
		s.OK("sale", "apply", file)
		s.OK("sale", "open", "double11")
		s.OK("stock", "add", "double11", "a", "5")
		p := sitetest.NewShopper(t, server)
		p.Hold("r1", "a", 2, 1e12)
		if out := s.OK("sale", "apply", file); out != "no change\n" {
			t.Errorf("the same rows again: %s", out)
		}

		d.exec("UPDATE campaign SET units = units + 20 WHERE sku = 'a'")
		d.exec("UPDATE campaign SET units = units - 30 WHERE region = 'north'")
		if out := s.OK("sale", "apply", file, "--dry-run"); !strings.Contains(out, "item a: stock 100 → 120 (+20)\n") || !strings.Contains(out, "item b: region north: stock 40 → 10 (-30)\n") {
			t.Errorf("%s", out)
		}
		s.OK("sale", "apply", file)
		b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
		if b.Cell("a", "") != "125 123 2 0 0" || b.Cell("b", "north") != "10 10 0 0 0" || b.Cell("b", "south") != "60 60 0 0 0" || len(b.Items) != 3 {
			t.Errorf("%+v", b)
		}

		// a column that the shop counts down with each order would take from the sale what
		// it has just sold: the rows alone count, and docs/sales.md says what to query
		d.exec("UPDATE campaign SET units = units - 2 WHERE sku = 'a'")
		s.OK("sale", "apply", file)
		if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Cell("a", "") != "123 121 2 0 0" {
			t.Errorf("%+v", b)
		}
		d.exec("UPDATE campaign SET units = -1 WHERE sku = 'a'")
		if r := s.Run("sale", "apply", file); r.Status != 1 || !strings.Contains(r.Errors, "must not be negative") {
			t.Errorf("%+v", r)
		}
		d.exec("UPDATE campaign SET units = 0")
		p.Hold("r2", "b@north", 1, 1e12)
		if r := s.Run("sale", "apply", file); r.Status != 1 || !strings.Contains(r.Errors, "b@north: the file takes 10 units away, but only 9 are available") {
			t.Errorf("%+v", r)
		}
		if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Cell("a", "") != "123 121 2 0 0" || b.Cell("b", "south") != "60 60 0 0 0" {
			t.Errorf("all or nothing: %+v", b)
		}

		c := server.Client()
		keys, err := c.Keys(t.Context(), "*").Result()
		if err != nil || len(keys) == 0 {
			t.Fatal(keys, err)
		}
		for _, key := range keys {
			if dump, err := c.Dump(t.Context(), key).Result(); err != nil || strings.Contains(dump, d.secret) || strings.Contains(dump, "campaign") {
				t.Errorf("redis has it in %s: %v", key, err)
			}
		}
		if doc, err := c.HGet(t.Context(), "stockgate:{double11.0}:meta", "doc").Result(); err != nil || strings.Contains(doc, "stock_from") {
			t.Errorf("%s %v", doc, err)
		}
		if log, err := os.ReadFile(s.Path("log")); err != nil || strings.Contains(string(log), d.secret) || strings.Contains(string(log), "campaign") {
			t.Errorf("the log has it: %v", err)
		}
	})
}

// Ten thousand rows are one sale.
func TestSaleApplyTakesManyRows(t *testing.T) {
	_, app := sitetest.Redis(t)
	app["redis"].(map[string]any)["timeout"] = "20s" // reading it back is bounded by a multiple of that
	all, applied := sitetest.Open(t, app), false
	shopDatabases(t, func(t *testing.T, d *shopDatabase) { // all have the same rows: the second one changes nothing
		s := *all
		s.T = t
		d.exec("DELETE FROM campaign")
		d.exec(d.many)
		// the sum of bigint is a numeric in PostgreSQL
		file := fromFile(&s, d.dsn, "SELECT sku, sum(units) AS stock, 1 AS min, 5 AS max FROM campaign GROUP BY sku", "")
		s.Eventually("the sale is applied, and again", func() (string, bool) { // a command waits 15 s for the edge
			r := s.Run("sale", "apply", file)
			if applied && r.Status == 0 && r.Out != "no change\n" {
				t.Errorf("its rows are other ones: %.2000s", r.Out)
			}
			return fmt.Sprint(r), r.Status == 0 && r.Out == "no change\n"
		})
		applied = true
		b := sitetest.Do[sitetest.SaleStock](&s, "GET", "/stockgate/sales/double11", "")
		if len(b.Items) != 10000 || b.Cell("sku-10000", "") != "10000 10000 0 0 0" || !b.Balanced {
			t.Errorf("%d items, sku-10000 is %s", len(b.Items), b.Cell("sku-10000", ""))
		}
	})
}

// Every mistake is an error with a message, and changes neither Caddy nor the shop.
func TestSaleApplySaysWhatIsWrongWithSQL(t *testing.T) {
	shopDatabases(t, func(t *testing.T, d *shopDatabase) {
		_, app := sitetest.Redis(t)
		s := sitetest.Open(t, app)
		slow, sleepers := "SELECT pg_sleep(600)::text AS sku, 1 AS stock", "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid() AND state = 'active'"
		switch {
		case strings.HasPrefix(d.dsn, "mysql:"):
			// not SLEEP, which ends with its client
			slow, sleepers = "SELECT SUM(a.seq * b.seq) AS sku, 1 AS stock FROM seq_1_to_10000000 a, seq_1_to_10000000 b", "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%seq_1_to_10000000 b' AND id <> CONNECTION_ID()"
		case strings.HasPrefix(d.dsn, "sqlite:"):
			slow, sleepers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS sku, 1 AS stock FROM n", "SELECT 0"
		}
		for name, test := range map[string]struct{ dsn, query, more, says string }{
			"no such table":     {d.dsn, "SELECT sku, stock FROM goods", "", "stock_from: the query fails: "},
			"no SELECT":         {d.dsn, "DELETE FROM campaign RETURNING sku, units AS stock", "", "stock_from: the query fails: "},
			"slow":              {d.dsn, slow, "  timeout: 1s\n", "stock_from: the shop's database has not answered within 1s: make the query faster"},
			"columns":           {d.dsn, "SELECT sku, units FROM campaign", "", `stock_from.query: gives a column "units": there are sku, stock, region, min or max`},
			"NULL":              {d.dsn, "SELECT 'a' AS sku, NULL AS stock", "", `stock_from row 1 ("a").stock: must not be NULL`},
			"a fraction":        {d.dsn, "SELECT 'a' AS sku, 1.5 AS stock", "", `stock_from row 1 ("a").stock: must be a whole number, not "1.5`},
			"negative":          {d.dsn, "SELECT 'a' AS sku, -5 AS stock", "", `stock_from row 1 ("a").stock: must not be negative, got "-5"`},
			"twice":             {d.dsn, "SELECT 'a' AS sku, 5 AS stock UNION ALL SELECT 'a', 6", "", `stock_from row 2 ("a"): stands in row 1 already`},
			"not listed":        {d.dsn, campaign, "items: [{sku: a}]\n", `("b"): is no item of this file`},
			"stock in both":     {d.dsn, campaign, "items: [{sku: a, stock: 1}, {sku: b}]\n", "items[0].stock: is also given by row "},
			"no rows":           {d.dsn, campaign + " AND 1 = 0", "", "stock_from.query: gives no rows"},
			"variable is empty": {"postgres://u:{env.NO_SUCH_VARIABLE}@127.0.0.1/x", campaign, "", "stock_from: dsn: {env.NO_SUCH_VARIABLE} is empty: set the variable"},
			"no such file":      {"postgres://u:{file./no/such/file}@127.0.0.1/x", campaign, "", "stock_from: dsn: {file./no/such/file} is empty"},
			"placeholder":       {"postgres://u:{top.secret}@127.0.0.1/x", campaign, "", "stock_from: dsn: it has a placeholder that is not known"},
			"no address":        {"top secret", campaign, "", "stock_from: dsn: it is the address of no database that this Caddy knows: there are mysql, postgres, sqlite"},
			"another kind":      {"oracle://top secret@h/x", campaign, "", "it is the address of no database"},
			"no URL of MySQL":   {"mysql://u:top secret@h:x:y/z", campaign, "", "stock_from: dsn: the address of the database cannot be read: write mysql://"},
			"no URL":            {"postgres://u:top secret@h:x:y/z", campaign, "", "stock_from: dsn: the address cannot be read: write postgres://"},
			"no server":         {"postgres://u:top%20secret@127.0.0.1:1/x", campaign, "", "stock_from: the shop's database does not answer: "},
			"no database":       {"sqlite:///no/such.db", campaign, "", "stock_from: dsn: stat /no/such.db: no such file or directory"},
			"a directory":       {"sqlite:" + s.Dir, campaign, "", "is a directory: name the file of the database"},
			"nothing":           {"sqlite:", campaign, "", "it names no file: write sqlite:/path/to/file"},
			"no SQLite":         {"sqlite:" + s.File("text.db", strings.Repeat("no database ", 100)), campaign, "", "file is not a database"},
		} {
			r := s.Run("sale", "apply", fromFile(s, test.dsn, test.query, test.more))
			if r.Status != 1 || r.Out != "" || !strings.Contains(r.Errors, test.says) || !strings.Contains(r.Errors, "from.yaml") {
				t.Errorf("%s: %+v", name, r)
			}
			if strings.Contains(r.Errors, "top secret") || strings.Contains(r.Errors, "top%20secret") || name == "placeholder" && strings.Contains(r.Errors, "top.secret") {
				t.Errorf("%s: it repeats a secret: %s", name, r.Errors)
			}
		}
		var left, running int
		if err := d.QueryRow("SELECT count(*) FROM campaign").Scan(&left); err != nil || left != 4 {
			t.Errorf("the shop has %d rows left, error %v", left, err)
		}
		s.Eventually("nothing that still runs in the database", func() (string, bool) {
			err := d.QueryRow(sleepers).Scan(&running)
			return fmt.Sprint(running, err), err == nil && running == 0
		})
		if out := s.OK("sale", "list"); !strings.Contains(out, "(none)") {
			t.Errorf("%s", out)
		}
		// the API refers a client that sends the file itself to the command
		a := s.Admin("PUT", "/stockgate/sales/double11", fmt.Sprintf("id: double11\nstarts_at: 2020-11-11T00:00:00Z\nends_at: 2090-11-12T00:00:00Z\nstock_from: {dsn: %q, query: x}\n", d.dsn))
		if a.Status != 400 || !strings.Contains(a.Body, "is filled in by `caddy stockgate sale apply`") || strings.Contains(a.Body, "SHOP") {
			t.Errorf("%+v", a)
		}
	})
}
