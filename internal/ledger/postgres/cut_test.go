package postgres_test

import (
	"testing"

	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/pgtest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// PostgreSQL dies, twice.
func TestDatabaseIsCut(t *testing.T) {
	server := pgtest.Start(t)
	ledgertest.Cut(t, open(t, server.DSN()), server)
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
