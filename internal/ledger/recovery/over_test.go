package recovery_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/lua"
)

// reopen is the market as an edge sees it that has just begun.
func (m *market) reopen(on redistest.Backend) *market {
	m.t.Helper()
	store, err := reservation.Open(shard.Options{Addresses: []string{on.Addr()}, Timeout: 10 * time.Second, Scripts: lua.Embedded()})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { store.Close() })
	return &market{Store: store, t: m.t, client: m.client, version: m.version}
}

// forget drops all records that are over, and returns how many.
func (m *market) forget() (dropped int) {
	m.t.Helper()
	for range 3 { // two calls only hear what time it is
		for cursor := "0"; ; {
			page, err := m.Forget(ledgertest.Soon(m.t), "s", cursor)
			if err != nil {
				m.t.Fatal(err)
			}
			dropped += page.Dropped
			if cursor = page.Next; cursor == "0" {
				break
			}
		}
	}
	return dropped
}

// What Redis has forgotten is no difference, against the ledger, the journal and Redis itself,
// also where the shop has released it once more. What is not over and missing is one.
func TestForgotten(t *testing.T) {
	on := redistest.Embedded(t)
	m := newMarket(t, on)
	l := openFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	wait, _ := m.drain(l)
	m.live(7, 1, 60)
	wait()
	on.SetTime(time.Now().Add(7 * time.Hour))
	later := m.reopen(on)
	dropped := later.forget()
	if dropped < 2 {
		t.Fatalf("only %d records were over", dropped)
	}
	t.Log(dropped, "records were over")
	var gone, kept string
	err := l.Reservations(ledgertest.Soon(t), "s", func(r *ledger.Reservation) error {
		there, err := m.client.HExists(ledgertest.Soon(t), tag+"records", r.ID).Result()
		switch {
		case !there:
			gone = r.ID
		case r.State == record.Confirmed:
			kept = r.ID
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := later.Release(ledgertest.Soon(t), "s", gone, reservation.SourceShop, "again"); err != nil || state != "tombstone" {
		t.Fatalf("released once more: %s, %v", state, err)
	}
	for _, against := range []struct {
		name   string
		ledger ledger.Ledger
		trim   int64
	}{{"ledger", l, 0}, {"journal", nil, 0}, {"itself", nil, 20}} {
		if err := m.client.XTrimMinID(ledgertest.Soon(t), tag+"journal", fmt.Sprint(against.trim, "-0")).Err(); err != nil {
			t.Fatal(err)
		}
		later.agrees(against.ledger)
	}
	if err := m.client.HDel(ledgertest.Soon(t), tag+"records", kept).Err(); err != nil {
		t.Fatal(err)
	}
	if report := later.run(l, false); report.Found == 0 || !strings.Contains(texts(report), kept) {
		t.Errorf("an order without a record is no difference: %s", texts(report))
	}
}
