package ledgertest

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Cut kills the server of a database twice while its ledger follows a sale. Selling continues, and the failure is
// logged once; when the database is back, no movement is missing or stored twice.
func Cut(t *testing.T, l ledger.Ledger, server interface {
	Kill()
	Restart()
}) {
	s := NewSeller(t, redistest.Start(t), 1000)
	counts := NewCounts()
	s.Drain(l, counts)
	s.Sell(20)
	s.UntilDrained(l)
	for round := 1; round <= 2; round++ {
		server.Kill()
		s.Sell(50)
		Eventually(t, "the failure is logged", func() bool { n, _ := counts.Logged("does not follow the sale"); return n == round })
		s.Sell(10)
		server.Restart()
		s.UntilDrained(l)
		Eventually(t, "the recovery is logged", func() bool { n, _ := counts.Logged("follows the sale again"); return n == round })
	}
	if _, text := counts.Logged("does not follow the sale"); !strings.Contains(text, "the ledger") {
		t.Errorf("the log says %q", text)
	}
	if counts.Failed("ledger") < 2 || counts.Failed("journal") != 0 {
		t.Errorf("counted: %v", counts.Failures)
	}
}
