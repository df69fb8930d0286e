package command_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger/postgres"
	"github.com/stockgate/stockgate/internal/sale"
)

// blocksOf are the blocks of a language on all pages, with the page of each.
func blocksOf(t *testing.T, language string) (all [][2]string) {
	t.Helper()
	for _, name := range pagesOfDocs(t) {
		for _, m := range block.FindAllStringSubmatch(page(t, root+name), -1) {
			if m[2] == language {
				all = append(all, [2]string{name, m[3]})
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("no page has %s", language)
	}
	return all
}

// Every sale file of the documentation is read as it is.
func TestSaleFilesOfDocs(t *testing.T) {
	from := sale.Sources{
		Query: func(sale.StockFrom) (*sale.Table, error) {
			return &sale.Table{Columns: []string{"sku", "stock", "max"}, Rows: [][]any{{"20002001", int64(100), int64(2)}}}, nil
		},
	}
	const head = "id: double11\nstarts_at: 2027-11-11T00:00:00Z\nends_at: 2027-11-12T00:00:00Z\n"
	for _, b := range blocksOf(t, "yaml") {
		text := b[1]
		switch {
		case strings.Contains(text, "bought_from"):
			continue // runMoveIn applies it
		case strings.HasPrefix(text, "de:"):
			continue // texts of refusals, which TestCaddyfilesOfDocs reads
		case strings.HasPrefix(text, "items:"):
			text = head + text
		case strings.HasPrefix(text, "unpaid:"), strings.HasPrefix(text, "waitlist:"):
			text = head + text + "items:\n  - {sku: one, stock: 1}\n"
		}
		if _, err := sale.ParseFrom([]byte(text), from); err != nil {
			t.Errorf("%s: %v in\n%s", b[0], err, text)
		}
	}
}

// oversoldLedger has a sale of which one item is oversold by the reservation c.
const oversoldLedger = `INSERT INTO stockgate_stock VALUES ('double11', 'few', 2, 0, 1, 0, 1), ('double11', 'plain', 2, 0, 0, 0, 2);
	INSERT INTO stockgate_reservations (sale, id, state, created, changed, deadline, exp, mode, buyer, lines, returned, charges, cause, version, guard, print, key_ttl, ref, gate)
	SELECT 'double11', id, state, 0, 0, 0, 0, 'response', '', lines, returned, '', '', 1, '', '', 0, '', '' FROM (VALUES
		('a', 'confirmed', 'few 1 plain 2', ''), ('b', 'held', 'few 1', ''), ('c', 'confirmed', 'few 1', ''), ('d', 'confirmed', 'plain 1', 'plain 1'), ('e', 'released', 'few 2', '')
	) AS r (id, state, lines, returned)`

// Every query of the documentation is one that PostgreSQL runs, on the tables of the ledger or
// of a shop. Those for shops that others make are the ones that `make shops` runs.
func TestQueriesOfDocs(t *testing.T) {
	dsn := postgresServer().For(t).Database()
	l, err := postgres.Open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE goods (sku text, units bigint);
		CREATE TABLE order_lines (sku text, sale text, quantity bigint, cancelled boolean);
		INSERT INTO goods VALUES ('20002001', 70);
		INSERT INTO order_lines VALUES ('20002001', 'double11', 30, false), ('20002001', 'double11', 5, true), ('20002001', 'other', 7, false)`); err != nil {
		t.Fatal(err)
	}
	for _, shop := range []string{"vendure", "medusa"} {
		if !strings.Contains(page(t, root+"internal/test/shoptest/"+shop+"_test.go"), ", \""+shop+"\")") { // ordersOf, which reads the file
			t.Errorf("internal/test/shoptest does not run examples/%s/orders.sql:\n%s", shop, page(t, root+"examples/"+shop+"/orders.sql"))
		}
	}
	for _, b := range blocksOf(t, "sql") {
		switch name := b[0]; name {
		case "docs/sales.md": // 70 left and 30 sold
			var sku string
			var stock int64
			if err := db.QueryRow(b[1]).Scan(&sku, &stock); err != nil || sku != "20002001" || stock != 100 {
				t.Errorf("%s: %s %d %v", name, sku, stock, err)
			}
		case "docs/guarantees.md": // of one item three units of two are taken, of the other one came back
			var cell string
			var stock, taken int64
			if _, err := db.Exec(oversoldLedger); err != nil {
				t.Fatal(err)
			}
			if err := db.QueryRow(b[1]).Scan(&cell, &stock, &taken); err != nil || cell != "few" || stock != 2 || taken != 3 {
				t.Errorf("%s: %s %d %d %v", name, cell, stock, taken, err)
			}
			if _, err := db.Exec("DELETE FROM stockgate_reservations WHERE id = 'c'"); err != nil {
				t.Fatal(err)
			}
			if err := db.QueryRow(b[1]).Scan(&cell, &stock, &taken); !errors.Is(err, sql.ErrNoRows) {
				t.Errorf("%s: %s %d %d %v, and nothing is oversold", name, cell, stock, taken, err)
			}
		default:
			rows, err := db.Query(b[1])
			if err != nil {
				t.Errorf("%s: %v in\n%s", name, err, b[1])
				continue
			}
			rows.Close()
		}
	}
}

// The receiver in docs/books.md accepts what is signed as the page says, and nothing else.
func TestPythonOfDocs(t *testing.T) {
	secret := []byte("a secret of thirty-two bytes ...")
	body := `{"type":"stockgate.movements"}`
	for _, b := range blocksOf(t, "python") {
		for body, want := range map[string]string{body: "True", body + " ": "False"} {
			at := fmt.Sprint(time.Now().Unix())
			mac := hmac.New(sha256.New, secret)
			fmt.Fprintf(mac, "mov_1.%s.%s", at, `{"type":"stockgate.movements"}`)
			headers, err := json.Marshal(map[string]string{
				"webhook-id": "mov_1", "webhook-timestamp": at, "webhook-signature": "v1,bm8= v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			program := fmt.Sprintf("import base64, hmac, time\nsecret, body, headers = %q, %q.encode(), %s\n%sprint(good)\n", "whsec_"+base64.StdEncoding.EncodeToString(secret), body, headers, b[1])
			out, err := exec.CommandContext(t.Context(), "python3", "-c", program).CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != want {
				t.Errorf("%s: %v %s, want %s", b[0], err, out, want)
			}
		}
	}
}

// The Go of the documentation compiles.
func TestGoOfDocs(t *testing.T) {
	t.Setenv("CGO_ENABLED", "0") // as go vet has compiled what it imports
	for _, b := range blocksOf(t, "go") {
		file := filepath.Join(t.TempDir(), "main.go")
		program := "package main\n\nimport (\n\t\"net/http\"\n\n\t\"github.com/stockgate/stockgate/token\"\n)\n\n" +
			"func main() { _ = order }\n\nfunc order(r *http.Request, buyer string, lines []token.Line) (*token.Claims, error) {\n" + b[1] + "return claims, err\n}\n"
		if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", os.DevNull, file)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s in\n%s", b[0], err, out, program)
		}
	}
}

// The items of the documentation can be loaded from their files.
func TestItemsOfDocs(t *testing.T) {
	for _, b := range blocksOf(t, "csv") {
		const file = "id: s\nstarts_at: 2027-11-11T00:00:00Z\nends_at: 2027-11-12T00:00:00Z\nitems: items.csv\n"
		if _, err := sale.ParseFrom([]byte(file), sale.Sources{Items: func(string) ([]byte, error) { return []byte(b[1]), nil }}); err != nil {
			t.Errorf("%s: %v", b[0], err)
		}
	}
}

// Every query for Prometheus names metrics that there are.
func TestPromQLOfDocs(t *testing.T) {
	metrics := page(t, root+"docs/metrics.md")
	for _, b := range blocksOf(t, "promql") {
		for _, name := range regexp.MustCompile(`stockgate_[a-z_]+`).FindAllString(b[1], -1) {
			if !strings.Contains(metrics, "`"+name+"`") && !strings.Contains(metrics, "`"+name+"{") {
				t.Errorf("%s: there is no metric %s", b[0], name)
			}
		}
	}
}

// illustrations are blocks that show what is sent or answered, or where files are: they are no
// configuration, and no command.
var illustrations = map[string]int{"json": 3, "http": 2, "mermaid": 1, "text": 1, "": 3}

// Every other block is read or run by a test: those of these languages by the tests above, by
// TestCommandsRun, by TestCaddyfilesOfDocs in package caddymodule, and nginx's by the tests of package e2e.
func TestBlocksOfDocs(t *testing.T) {
	tested := map[string]bool{"caddyfile": true, "console": true, "yaml": true, "sql": true, "python": true, "go": true, "promql": true, "conf": true, "nginx": true, "csv": true}
	have := make(map[string]int)
	for _, name := range pagesOfDocs(t) {
		for _, m := range block.FindAllStringSubmatch(page(t, root+name), -1) {
			if !tested[m[2]] {
				have[m[2]]++
			}
		}
	}
	if fmt.Sprint(have) != fmt.Sprint(illustrations) {
		t.Errorf("the pages have blocks %v, which no test reads, want %v", have, illustrations)
	}
}
