package command_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
)

// A sale that Redis has lost is restored by one command, and what it may not do is said.
func TestCommandRebuild(t *testing.T) {
	server, app := sitetest.Redis(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	s := sitetest.Open(t, app)
	says := func(status int, want string, args ...string) {
		t.Helper()
		if r := s.Run(args...); r.Status != status || !strings.Contains(r.Out+r.Errors, want) {
			t.Errorf("%q: %d, it does not say %q:\n%s%s", args, r.Status, want, r.Out, r.Errors)
		}
	}
	says(2, "has no ledger", "rebuild", "double11", "--from", "ledger")
	app["ledger"] = map[string]any{"driver": "sqlite", "file": file}
	s.Load(app)
	says(2, "say --from ledger", "rebuild", "double11")
	says(2, "from the ledger only", "rebuild", "double11", "--from", "memory")
	says(1, "the ledger has nothing of sale double11", "rebuild", "double11", "--from", "ledger")

	s.OK("sale", "apply", s.File("sale.yaml", sitetest.SaleFile))
	s.OK("sale", "open", "double11")
	s.OK("stock", "add", "double11", "plain", "50", "--id", "one")
	before := s.OK("sale", "show", "double11")
	l, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var at ledger.Position
	follows := func(until func() bool) {
		t.Helper()
		s.Eventually("the ledger follows", func() (string, bool) {
			at, err = l.Position(t.Context(), "double11")
			if err != nil && !strings.Contains(err.Error(), "no such table") {
				t.Fatal(err)
			}
			return fmt.Sprint(at), err == nil && until()
		})
	}
	follows(func() bool { return at.Seq >= 4 }) // loaded, applied, open, adjusted
	says(1, "nothing is to be rebuilt", "rebuild", "double11", "--from", "ledger")
	if err := server.Client().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	says(0, "It would rebuild double11: 0 reservations (none)", "rebuild", "double11", "--from", "ledger", "--dry-run")
	says(0, "Sale double11 is paused.", "rebuild", "double11", "--from", "ledger")
	again := []string{"rebuild", "double11", "--from", "ledger", "--force", "--json"}
	lost := at.Epoch
	journal := sitetest.NewShopper(t, server).Journal()
	follows(func() bool { // all that the rebuild before it has made: the next one must not meet a ledger that moves
		head, err := journal.Head(t.Context(), "double11")
		return err == nil && at.Epoch != lost && at.Epoch == head.Epoch && at.Seq == head.Last
	})
	r := s.Run(again...)
	if r.Status != 0 || !strings.Contains(r.Out, `"found":"everything"`) {
		t.Errorf("%q: %d\n%s%s", again, r.Status, r.Out, r.Errors)
	}
	s.OK("sale", "open", "double11")
	if after := s.OK("sale", "show", "double11"); after != before {
		t.Errorf("the sale is\n%s, it was\n%s", after, before)
	}
	says(0, "plain has 150 units after +50 (id one)", "stock", "add", "double11", "plain", "50", "--id", "one")
	if a := s.Admin("POST", "/stockgate/sales/double11/rebuild?from=ledger&open=maybe", ""); a.Status != 400 {
		t.Errorf("open=maybe: %+v", a)
	}
}
