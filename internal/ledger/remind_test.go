package ledger_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
)

// A sale that the ledger has and an emptied Redis lacks is reported by every edge until it is
// rebuilt. A closed sale may have been deleted.
func TestLedgerMissesASale(t *testing.T) {
	for _, status := range []sale.Status{sale.Open, sale.Closed} {
		server, s, l := ledgertest.Drained(t, 1000, 20)
		counts := ledgertest.NewCounts()
		if status == sale.Closed {
			end := s.Drain(l, counts)
			if err := s.Store.SetStatus(ledgertest.Soon(t), "s", status, "test"); err != nil {
				t.Fatal(err)
			}
			s.UntilDrained(l)
			end()
		}
		ledgertest.Flush(t, server)
		// an edge that knows nothing but the ledger
		o := shard.Options{Addresses: []string{server.Addr()}, Timeout: 20 * time.Second}
		store, err := reservation.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		fresh := edge.New(store, edge.Options{Keys: []shard.SigningKey{{KID: "k", JWK: "{}"}}})
		t.Cleanup(func() { fresh.Stop(ledgertest.Soon(t)) })
		if status == sale.Closed {
			d := ledger.NewDrainer(store.Journal(), store, l, counts.Log(), counts)
			if err := d.Remind(ledgertest.Soon(t), map[string]bool{}); err != nil {
				t.Fatal(err)
			}
			if ids, err := store.Journal().Sales(ledgertest.Soon(t)); err != nil || len(ids) != 0 {
				t.Errorf("closed, the index has %v, %v", ids, err)
			}
			continue
		}
		s.Drain(l, counts)
		const message = "the ledger cannot follow a sale that redis has lost"
		ledgertest.Eventually(t, "the loss is logged", func() bool { n, _ := counts.Logged(message); return n == 1 })
		if err := fresh.Refresh(ledgertest.Soon(t)); err != nil {
			t.Fatal(err)
		}
		if listing, ok := fresh.Catalogue().Sale("s"); !ok || !listing.Lost() || counts.Failed("journal") == 0 {
			t.Errorf("the edge has %v %+v, %d failures", ok, listing, counts.Failed("journal"))
		}
		if out := ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Open: true}); out.Found != recovery.FoundNothing || out.Status != sale.Open {
			t.Errorf("the rebuild says %+v", out)
		}
		s.UntilDrained(l)
		ledgertest.Eventually(t, "it is well again", func() bool { n, _ := counts.Logged("the ledger follows the sale again"); return n == 1 })
		s.Sell(5)
		s.UntilDrained(l)
	}
}

// A loss by a failover is reported even when Redis has reused the numbers. Where the loss is
// unknown, no number is reported.
func TestRebuildAfterGoingBack(t *testing.T) {
	server, s, l := ledgertest.Drained(t, 1000, 20)
	c := server.Client()
	dump := make(map[string]string)
	for _, key := range c.Keys(ledgertest.Soon(t), "*").Val() {
		dump[key] = c.Dump(ledgertest.Soon(t), key).Val()
	}
	at, err := l.Position(ledgertest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"o1", "o2", "o3", "o4", "o5", "o6", "o7", "o8", "o9", "o10"} {
		if _, no, err := ledgertest.Attempt(t, s, id, ""); no != nil || err != nil {
			t.Fatal(no, err)
		}
		if _, err := s.Store.Confirm(ledgertest.Soon(t), "s", id, reservation.SourceAnswer, ""); err != nil {
			t.Fatal(err)
		}
	}
	ledgertest.Flush(t, server)
	for key, value := range dump {
		if err := c.Restore(ledgertest.Soon(t), key, 0, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	s.Sell(40) // it has overtaken what was lost
	head, err := s.Store.Journal().Head(ledgertest.Soon(t), "s")
	if err != nil || head.Last <= at.Seq+20 || head.Lost != 19 {
		t.Fatalf("%+v, %v", head, err)
	}
	_, err = recovery.Rebuild(ledgertest.Soon(t), l, s.Store, "s", recovery.RebuildOptions{})
	if !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), "lost at least 19 movements") {
		t.Errorf("without force: %v", err)
	}
	dry := recovery.RebuildOptions{Force: true, DryRun: true}
	out := ledgertest.Rebuild(t, l, s, dry)
	if notes := strings.Join(out.Notes, "\n"); out.Missing.AtLeast != 19 || !out.Missing.Unknown || !strings.Contains(notes, "at least 19 movements are missing. How many more is not known") {
		t.Errorf("the rebuild says %+v, %s", out.Missing, notes)
	}

	// another process has not seen the loss
	store, err := reservation.Open(shard.Options{Addresses: []string{server.Addr()}, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ledgertest.Flush(t, server)
	out, err = recovery.Rebuild(ledgertest.Soon(t), l, store, "s", recovery.RebuildOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(out.Notes, "\n"); out.Missing.AtLeast != 0 || !out.Missing.Unknown || !strings.Contains(notes, "How much is missing is not known") {
		t.Errorf("a new process says %+v, %s", out.Missing, notes)
	}
}

// A sale that was deleted before the ledger had heard that it was closed is not missed.
func TestLedgerKnowsWhatWasDeleted(t *testing.T) {
	_, s, l := ledgertest.Drained(t, 1000, 20)
	s.Close()
	s.Remove()
	counts := ledgertest.NewCounts()
	d := ledger.NewDrainer(s.Store.Journal(), s.Store, l, counts.Log(), counts)
	if err := d.Remind(ledgertest.Soon(t), map[string]bool{}); err != nil {
		t.Fatal(err)
	}
	if ids, err := s.Store.Journal().Sales(ledgertest.Soon(t)); err != nil || len(ids) != 0 {
		t.Errorf("the index has %v, %v", ids, err)
	}
}
