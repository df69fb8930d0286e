package postgres_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/pgtest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// PostgreSQL dies, and later stalls. Selling continues and the failure is logged once. When the
// database is back, no movement is missing or stored twice.
func TestDatabaseIsCut(t *testing.T) {
	server := pgtest.Start(t)
	l := open(t, server.DSN())
	s := ledgertest.NewSeller(t, redistest.Start(t), 1000)
	counts := ledgertest.NewCounts()
	s.Drain(l, counts)
	s.Sell(20)
	s.UntilDrained(l)
	for round := 1; round <= 2; round++ {
		server.Kill()
		s.Sell(50)
		ledgertest.Eventually(t, "the failure is logged", func() bool { n, _ := counts.Logged("does not follow the sale"); return n == round })
		s.Sell(10)
		server.Restart()
		s.UntilDrained(l)
		ledgertest.Eventually(t, "the recovery is logged", func() bool { n, _ := counts.Logged("follows the sale again"); return n == round })
	}
	if _, text := counts.Logged("does not follow the sale"); !strings.Contains(text, "the ledger") {
		t.Errorf("the log says %q", text)
	}
	if counts.Failed("ledger") < 2 || counts.Failed("journal") != 0 {
		t.Errorf("counted: %v", counts.Failures)
	}
}

// A locked database delays neither the sale nor the stop of the drainer.
func TestDatabaseIsLocked(t *testing.T) {
	server := pgtest.Start(t)
	l := open(t, server.DSN())
	s := ledgertest.NewSeller(t, redistest.Start(t), 1000)
	counts := ledgertest.NewCounts()
	end := s.Drain(l, counts)
	s.Sell(5)
	s.UntilDrained(l)
	locker := open(t, server.DSN())
	unlock, err := locker.Lock("stockgate_drains")
	if err != nil {
		t.Fatal(err)
	}
	s.Sell(20)
	ledgertest.Eventually(t, "a drainer waits for the lock", func() bool {
		n, err := locker.Waiting()
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
	end()
	unlock()
	s.Drain(l, counts)
	s.UntilDrained(l)
}
