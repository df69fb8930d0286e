package command_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// The shop's orders come from its database as they come from a file.
func TestReconcileAsksTheShopsDatabase(t *testing.T) {
	shopDatabases(t, func(t *testing.T, d *shopDatabase) {
		server, app := sitetest.Redis(t)
		s := sitetest.Open(t, app)
		s.OpenSale()
		p := sitetest.NewShopper(t, server)
		p.Doubts(time.Hour, map[string]string{"a": "timeout"}, "a")
		p.HoldRef("f", "order-1", "plain")
		p.Must(p.Confirm(t.Context(), "double11", "f", reservation.SourceAnswer, "status_201"))
		d.exec("CREATE TABLE orders (name varchar(50), item varchar(50), units decimal(10, 4))")
		d.exec("INSERT INTO orders VALUES ('order-1', 'plain', 1), ('a', 'plain', 1), (NULL, 'plain', 3)")
		const all = "SELECT name AS REF, item AS sku, units AS qty FROM orders"

		says := func(status int, query string, want ...string) {
			t.Helper()
			r := s.Run("reconcile", "double11", "--shop", d.dsn, "--query", query)
			for _, w := range want {
				if !strings.Contains(r.Out+r.Errors, w) {
					t.Errorf("%s: it does not say %q", query, w)
				}
			}
			if r.Status != status || strings.Contains(r.Out+r.Errors, "top secret") || t.Failed() {
				t.Fatalf("%s: status %d, want %d: %s%s", query, r.Status, status, r.Out, r.Errors)
			}
		}
		says(1, all, "reservation a is in doubt, and the shop has the order\n", "differences: 1, repaired: 0")
		says(1, "SELECT name FROM orders WHERE name = 'a'", "reservation a is in doubt", "reservation f is confirmed, and the shop does not have the order", "the units of the shop's orders are not compared")
		if r := s.Run("reconcile", "double11", "--shop", d.dsn, "--query", all, "--repair"); r.Status != 0 || !strings.Contains(r.Out, "differences: 1, repaired: 1") {
			t.Errorf("%+v", r)
		}
		if r, err := p.ReservationIn(t.Context(), "double11", "a"); err != nil || r.State != record.Confirmed {
			t.Errorf("a is %+v, error %v", r, err)
		}
		d.exec("INSERT INTO orders VALUES ('order-1', 'plain', 16)")
		says(1, all, "the shop has sold 17 units of plain with the order order-1, and its reservation f has 1\n")

		says(1, "SELECT name AS ref, 0.5 AS qty FROM orders", "row 1 of the query: qty must be a whole number, not \"0.5")
		says(1, "SELECT 'a' AS ref, NULL AS qty", "row 1 of the query: qty must not be NULL")
		says(1, "SELECT 'a' AS ref, -1 AS qty", "row 1 of the query: qty must not be negative")
		says(1, "SELECT 'a' AS ref, 1 AS qty, NULL AS sku", "row 1 of the query: sku must not be NULL")
		says(1, "SELECT 'a' AS ref, 1000000000001 AS qty", "row 1 of the query: qty must be 0 to 1000000000000")
		says(1, "SELECT 'a b' AS ref, 1 AS qty", "row 1 of the query: ref must be a reservation id or ref")
		says(1, all+" WHERE 1 = 0", "the query gives no order")
		says(1, "SELECT no_such_column FROM orders", "the query fails: ")
		says(2, "SELECT name AS order_no, units FROM orders", "which column has the reservation ids or refs? Name it with --column", `"order_no"`)
		for _, test := range []struct {
			says string
			args []string
		}{
			{"give the query of its orders with --query", []string{"--shop", "postgres://reader@127.0.0.1/shop"}},
			{"give the query of its orders with --query", []string{"--shop", "sqlite:/shop.db"}},
			{"--query goes with --shop", []string{"--query", all}},
			{"--timeout goes with --query", []string{"--shop", "orders.csv", "--timeout", "1m"}},
			{"--timeout must be 1s to 10m0s", []string{"--shop", d.dsn, "--query", all, "--timeout", "11m"}},
			{"do not go together", []string{"--shop", d.dsn, "--query", all, "--probe"}},
			{"no column \"count\", as --quantity says", []string{"--shop", d.dsn, "--query", all, "--quantity", "count"}},
			{"other users of this machine see", []string{"--shop", "mysql://shop:top%20secret@db/shop", "--query", all}},
			{"other users of this machine see", []string{"--shop", "host=db password=top%20secret", "--query", all}},
			{"other users of this machine see", []string{"--shop", "shop:top%20secret@tcp(db)/shop", "--query", all}},
		} {
			r := s.Run(append([]string{"reconcile", "double11"}, test.args...)...)
			if r.Status != 2 || !strings.Contains(r.Errors, test.says) || strings.Contains(r.Errors, "secret") {
				t.Errorf("%q: %+v, want %q", test.args, r, test.says)
			}
		}
		if r := s.Run("reconcile", "double11", "--shop", "oracle://h/x", "--query", all); r.Status != 1 || !strings.Contains(r.Errors, "--shop: it is the address of no database that this Caddy knows") {
			t.Errorf("%+v", r)
		}
		if strings.HasPrefix(d.dsn, "mysql:") {
			d.exec("SET GLOBAL read_only = 1")
			defer d.exec("SET GLOBAL read_only = 0") // other tests use the server
			if r := s.Run("reconcile", "double11", "--shop", d.dsn, "--query", all); r.Status != 1 || strings.Contains(r.Errors, "does not answer") || !strings.Contains(r.Errors, "a replica may lag behind") {
				t.Errorf("%+v", r)
			}
		}
	})
}

// Many orders come a row at a time.
func TestReconcileAsksForManyOrders(t *testing.T) {
	shopDatabases(t, func(t *testing.T, d *shopDatabase) {
		_, app := sitetest.Redis(t)
		s := sitetest.Open(t, app)
		s.OpenSale()
		d.exec("DELETE FROM campaign")
		d.exec(d.many)
		r := s.Run("reconcile", "double11", "--shop", d.dsn, "--query", "SELECT sku AS ref, units AS quantity FROM campaign", "--timeout", "5m")
		if want := fmt.Sprintf("differences: %d, repaired: 0", 10_000); r.Status != 1 || !strings.Contains(r.Out, want) {
			t.Errorf("%d %.2000s%s", r.Status, r.Out, r.Errors)
		}
	})
}
