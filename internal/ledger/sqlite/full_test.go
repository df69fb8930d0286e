package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// The disk is full: selling continues and the failure is logged. When there is room again, no
// movement is missing or stored twice.
func TestDiskIsFull(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	if err := l.Migrate(ledgertest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	if err := l.MostPages(40); err != nil {
		t.Fatal(err)
	}
	s := ledgertest.NewSeller(t, redistest.Start(t), 1_000_000)
	counts := ledgertest.NewCounts()
	s.Drain(l, counts)
	for n, text := 0, ""; n == 0; n, text = counts.Logged("does not follow the sale") {
		if s.Sell(20); text != "" && !strings.Contains(text, "full") {
			t.Errorf("the log says %q", text)
		}
	}
	s.Sell(20)
	if err := l.MostPages(0); err != nil {
		t.Fatal(err)
	}
	s.UntilDrained(l)
}
