package command_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
	"github.com/stockgate/stockgate/internal/store/journal"
)

// A sale that was deleted on purpose is loaded again without --new, although the ledger has it.
func TestApplyAfterADeletion(t *testing.T) {
	_, app := sitetest.Redis(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	app["ledger"] = map[string]any{"driver": "sqlite", "file": file}
	s := sitetest.Open(t, app)
	s.OpenSale()
	l := openLedger(t, file)
	s.Eventually("the ledger has the sale", func() (string, bool) {
		at, err := l.Position(t.Context(), "double11")
		return "", err == nil && at.Epoch > 0
	})
	s.OK("sale", "close", "double11")
	s.OK("sale", "delete", "double11", "--force")
	if r := s.Run("sale", "apply", s.File("sale.yaml", sitetest.SaleFile)); r.Status != 0 {
		t.Errorf("%d: %s%s", r.Status, r.Out, r.Errors)
	}
}

func openLedger(t *testing.T, file string) ledger.Ledger {
	t.Helper()
	l, err := sqlite.Open(file)
	if err == nil {
		err = l.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// What the ledger has archived tells a new sale which one under its id was deleted, in a Redis and on
// an edge that know nothing of it.
func TestApplyKnowsWhatTheLedgerHasArchived(t *testing.T) {
	server, app := sitetest.Redis(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	archive(t, openLedger(t, file), "double11", 1234)
	app["ledger"] = map[string]any{"driver": "sqlite", "file": file}
	s := sitetest.Open(t, app)
	s.OK("sale", "apply", s.File("sale.yaml", sitetest.SaleFile))
	if deleted, err := server.Client().HGet(t.Context(), "stockgate:{double11.0}:meta", "deleted").Result(); deleted != "1234" || err != nil {
		t.Errorf("it says that epoch %q was deleted: %v", deleted, err)
	}
}

// archive makes what a ledger has of a sale that was deleted, and loaded again.
func archive(t *testing.T, l ledger.Ledger, sale string, epoch int64) {
	t.Helper()
	const owner = "test"
	ctx := context.Background()
	if _, ok, err := l.Acquire(ctx, sale, owner, sitetest.Patience); !ok || err != nil {
		t.Fatal(ok, err)
	}
	batch := &ledger.Batch{Epoch: epoch, Movements: []journal.Movement{{Seq: 1, Kind: "applied", ID: "1"}}}
	if err := l.Append(ctx, sale, owner, batch); err != nil {
		t.Fatal(err)
	}
	if err := l.Archive(ctx, sale, owner, ledger.Position{Epoch: epoch, Seq: 1}, sale+ledger.ArchiveMark+"1234"); err != nil {
		t.Fatal(err)
	}
}

// Two open sales that list one item are a warning wherever an operator looks.
func TestTwoOpenSalesOfOneItem(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	file := func(name, text string) string {
		return s.File(name+".yaml", strings.ReplaceAll(text, "double11", name))
	}
	const header = "id: double11\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n"
	twin := file("duoble11", sitetest.SaleFile)
	for _, c := range []struct {
		args []string
		want string // empty: no warning
	}{
		{[]string{"sale", "apply", twin, "--dry-run"}, "warning: the open sale double11 lists plain and 4 more items too"},
		{[]string{"sale", "apply", twin}, "warning: the open sale double11 lists plain and 4 more items too"},
		{[]string{"doctor"}, ""},
		{[]string{"sale", "open", "duoble11"}, "duoble11 is open\nwarning: the open sale double11 lists plain and 4 more items too"},
		{[]string{"sale", "open", "double11"}, "warning: the open sale duoble11 lists"},
		{[]string{"doctor"}, "double11 and duoble11 are open and list plain and 4 more items both"},
		{[]string{"sale", "close", "duoble11"}, ""},
		{[]string{"doctor"}, ""},
		{[]string{"sale", "apply", file("other", header+"  - {sku: socks, stock: 1}\n")}, ""},
		{[]string{"sale", "apply", file("by-id", header+"  - {sku: shoes, ids: [few], stock: 1}\n")}, "warning: the open sale double11 lists shoes too"},
		{[]string{"sale", "apply", file("later", strings.NewReplacer("2020-", "2091-", "2090-", "2092-").Replace(header)+"  - {sku: few, stock: 1}\n")}, ""},
	} {
		out := s.Run(c.args...).Out
		if says := strings.Contains(out, "buyer hears sold_out"); says != (c.want != "") || !strings.Contains(out, c.want) {
			t.Errorf("%q, want %q:\n%s", c.args, c.want, out)
		}
	}
}

// Of several rebuilds at once each is done or refused.
func TestRebuildsAtOnce(t *testing.T) {
	server, app := sitetest.Redis(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	app["ledger"] = map[string]any{"driver": "sqlite", "file": file}
	s := sitetest.Open(t, app)
	s.OpenSale()
	l := openLedger(t, file)
	s.Eventually("the ledger has the sale", func() (string, bool) {
		doc, err := l.Document(t.Context(), "double11")
		return doc.Status, err == nil && doc.Status == "open"
	})
	if err := server.Client().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	var rebuilds sync.WaitGroup
	for range 4 {
		rebuilds.Go(func() {
			a := s.Admin("POST", "/stockgate/sales/double11/rebuild?from=ledger", "")
			if a.Status != http.StatusOK && a.Status != http.StatusConflict && a.Status != http.StatusServiceUnavailable {
				t.Errorf("%d: %s", a.Status, a.Body)
			}
		})
	}
	rebuilds.Wait()
}
