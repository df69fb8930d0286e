package ledger_test

import (
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Each edge has a ledger of its own, and one of them has missed a life of the sale. A rebuild from that
// one is refused, and says which ledger has it, as long as Redis, this process or the other edge knows;
// with force it counts what is missing.
func TestRebuildFromLedgerThatMissedALife(t *testing.T) {
	server := redistest.Start(t)
	s := ledgertest.NewSeller(t, server, 1000)
	both := make([]ledger.Ledger, 2)
	for i := range both {
		both[i] = ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db"))
		end := s.Drain(both[i], ledgertest.NewCounts())
		if i == 0 {
			s.Sell(20)
		}
		s.UntilDrained(both[i])
		end()
	}
	good, missed := both[0], both[1]
	apart := func(want int) func() bool {
		return func() bool {
			edges, err := ledger.Apart(ledgertest.Soon(t), s.Store.Journal(), "s")
			return err == nil && len(edges) == want
		}
	}
	if !apart(0)() {
		t.Error("drainers that have ended count as two")
	}
	first, second, third := s.Drain(good, ledgertest.NewCounts()), s.Drain(missed, ledgertest.NewCounts()), s.Drain(missed, ledgertest.NewCounts())
	ledgertest.Eventually(t, "two ledgers, whatever number of drainers", apart(2))
	first()
	if !apart(0)() {
		t.Error("two drainers of one ledger count as two ledgers")
	}
	second()
	third()
	ledgertest.Flush(t, server)
	ledgertest.Rebuild(t, good, s, recovery.RebuildOptions{Open: true})
	counts := ledgertest.NewCounts()
	end := s.Drain(good, counts)
	s.Sell(10)
	s.UntilDrained(good)
	end()
	head, err := s.Store.Journal().Head(ledgertest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}

	refuses := func(when, want string, by *ledgertest.Seller) {
		t.Helper()
		store := openStore(t, server.Addr())
		if by != nil {
			store = by.Store
		}
		for _, dry := range []bool{true, false} {
			_, err := recovery.Rebuild(ledgertest.Soon(t), missed, store, "s", recovery.RebuildOptions{DryRun: dry, By: "test"})
			if !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--force") {
				t.Errorf("%s: a rebuild says %v, want %q", when, err, want)
			}
		}
	}
	refuses("redis has it", "another ledger follows epoch", nil)
	counts = ledgertest.NewCounts()
	end = s.Drain(missed, counts)
	ledgertest.Eventually(t, "the drainer says so", func() bool {
		_, text := counts.Logged(ledgertest.NotFollowing)
		return strings.Contains(text, "another ledger follows it since") && !strings.Contains(text, "--from ledger")
	})
	end()
	ledgertest.Flush(t, server)
	refuses("this process has seen it", "which redis has lost and this ledger never had", s)
	dry, err := recovery.Rebuild(ledgertest.Soon(t), missed, s.Store, "s", recovery.RebuildOptions{DryRun: true, Force: true, By: "test"})
	if err != nil || dry.Missing.AtLeast != head.Last {
		t.Errorf("with force it misses %+v, error %v; it has seen %d", dry.Missing, err, head.Last)
	}
	s.Store.Journal().Announce(ledgertest.Soon(t), "s")
	end = s.Drain(good, ledgertest.NewCounts())
	ledgertest.Eventually(t, "the other edge says what it has", func() bool {
		m, err := s.Store.Journal().LedgerMark(ledgertest.Soon(t), "s")
		return err == nil && m.Epoch == head.Epoch && m.Seq == head.Last
	})
	end()
	refuses("another edge has it", "and the ledger of edge ", nil)
	if out := ledgertest.Rebuild(t, good, s, recovery.RebuildOptions{Open: true}); out.Missing.AtLeast != 0 {
		t.Errorf("from the ledger that has it, %+v is missing", out.Missing)
	}
}

// A sale is rebuilt from the ledger that has missed a life, and no edge that runs knows of that life. As
// soon as the other ledger comes, its drainer and reconcile say what is missing, and a rebuild from
// it restores that.
func TestMissedLifeIsNamedLater(t *testing.T) {
	server := redistest.Start(t)
	s := ledgertest.NewSeller(t, server, 1000)
	both := make([]ledger.Ledger, 2)
	for i := range both {
		both[i] = ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	}
	good, missed := both[0], both[1]
	drained := func(l ledger.Ledger, orders int) {
		end := s.Drain(l, ledgertest.NewCounts())
		defer end()
		s.Sell(orders)
		s.UntilDrained(l)
	}
	drained(missed, 5)
	drained(good, 5)
	ledgertest.Flush(t, server)
	ledgertest.Rebuild(t, good, s, recovery.RebuildOptions{Open: true})
	drained(good, 10)
	sold := ledgertest.Raw(t, server.Client())["cells"]
	ledgertest.Flush(t, server)
	if _, err := recovery.Rebuild(ledgertest.Soon(t), missed, openStore(t, server.Addr()), "s", recovery.RebuildOptions{Open: true, By: "test"}); err != nil {
		t.Fatal(err)
	}
	drained(missed, 0)

	says := func(l ledger.Ledger, want string, not string) {
		t.Helper()
		counts := ledgertest.NewCounts()
		defer s.Drain(l, counts)()
		ledgertest.Eventually(t, "the drainer says so", func() bool {
			n, text := counts.Logged(ledgertest.NotFollowing)
			if strings.Contains(text, not) {
				t.Errorf("it says %s", text)
			}
			return n > 0 && strings.Contains(text, want)
		})
	}
	const restored, named = "sale s was rebuilt from another ledger", "another ledger follows it since"
	says(good, restored, named)
	report, err := recovery.Reconcile(ledgertest.Soon(t), s.Store, good, "s", recovery.Options{By: "test"})
	if err != nil || len(report.Differences) != 1 || !strings.Contains(report.Differences[0].Text, restored) || !strings.Contains(report.Differences[0].Text, "rebuild s --from ledger --force") {
		t.Errorf("reconcile says %+v, error %v", report, err)
	}
	ledgertest.Rebuild(t, good, s, recovery.RebuildOptions{Force: true, Open: true})
	if have := ledgertest.Raw(t, server.Client())["cells"]; !maps.Equal(have, sold) {
		t.Errorf("redis has the cells %v, it had %v", have, sold)
	}
	drained(good, 0)
	says(missed, named, restored)
}

// A drainer that had the lease of a sale before a rebuild has the same ledger as the one that has it
// afterwards.
func TestDrainersAfterARebuild(t *testing.T) {
	server, s, l := ledgertest.Drained(t, 1000, 5)
	ledgertest.Flush(t, server)
	if err := s.Store.Journal().NoteDrainer(ledgertest.Soon(t), "s", "before", time.Now()); err != nil {
		t.Fatal(err)
	}
	ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Open: true})
	s.Drain(l, ledgertest.NewCounts())
	s.UntilDrained(l)
	ledgertest.Eventually(t, "the drainer has the lease", func() bool {
		owners, err := s.Store.Journal().Drainers(ledgertest.Soon(t), "s", time.Hour)
		return err == nil && len(owners) > 0
	})
	if edges, err := ledger.Apart(ledgertest.Soon(t), s.Store.Journal(), "s"); err != nil || edges != nil {
		t.Errorf("these count as drainers with ledgers of their own: %q, error %v", edges, err)
	}
}
