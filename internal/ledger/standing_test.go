package ledger_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// short returns a ledger in a file that has the sale's first movements, all of which another ledger
// has acknowledged and of which the journal has those after trimmed.
func short(t *testing.T, server *redistest.Server, s *ledgertest.Seller, from ledger.Ledger, has, trimmed int64) ledger.Ledger {
	t.Helper()
	l := ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "short.db"))
	ctx := ledgertest.Soon(t)
	if err := l.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	at, err := from.Position(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	if all := ledgertest.Read(t, from, "s", at.Epoch); has > 0 {
		if _, _, err := l.Acquire(ctx, "s", "before", time.Minute); err != nil {
			t.Fatal(err)
		}
		doc, err := from.Document(ctx, "s")
		if err == nil {
			err = l.Append(ctx, "s", "before", &ledger.Batch{Epoch: at.Epoch, Movements: all[:has], Document: &doc})
		}
		if err == nil {
			err = l.Giveup(ctx, "s", "before")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ledgertest.Trim(t, server, trimmed)
	return l
}

// What a ledger has is what it says itself, whatever was acknowledged: the lag, the alarm and what is
// trimmed follow from that. What it can never get is an error that says what to do.
func TestLedgerWithLessThanAcknowledged(t *testing.T) {
	for name, test := range map[string]struct {
		has, trimmed int64
		want         string // empty: it gets the rest
	}{
		"the journal has the rest": {10, 10, ""},
		"an empty ledger, and all": {0, 0, ""},
		"a gap":                    {10, 11, "the ledger has sale s up to entry 10, and the journal begins after entry 11: what is between is in neither"},
		"an empty ledger":          {0, 15, "and the ledger has nothing of it: a ledger follows a sale from its first entry"},
	} {
		t.Run(name, func(t *testing.T) {
			server, s, full := ledgertest.Drained(t, 1000, 20)
			l := short(t, server, s, full, test.has, test.trimmed)
			before, err := s.Store.Journal().Head(ledgertest.Soon(t), "s")
			if err != nil || before.Behind() != 0 {
				t.Fatalf("not all is acknowledged: %+v, error %v", before, err)
			}
			counts := ledgertest.NewCounts()
			ledger.NewTrimmer(s.Store.Journal(), s.Store, l, ledger.Retention{For: time.Hour, Most: 20_000, Ledger: true}, counts.Log(), counts).Look(ledgertest.Soon(t))
			if h := counts.Heads["s"]; h.Acked != test.has || h.Behind() != h.Last-test.has {
				t.Errorf("the metrics say %+v", h)
			}
			if lacks := counts.Lacks(); test.want == "" && lacks != nil || test.want != "" && (lacks == nil || !strings.Contains(lacks.Error(), test.want) || !strings.Contains(lacks.Error(), "give this edge the ledger that has")) {
				t.Errorf("it says %v, want %q", lacks, test.want)
			}
			s.Drain(l, counts)
			ledgertest.Eventually(t, "it is logged", func() bool { n, _ := counts.Logged("the ledger has less than was acknowledged"); return n == 1 })
			if test.want == "" {
				ledgertest.Eventually(t, "it has all", func() bool {
					at, err := l.Position(ledgertest.Soon(t), "s")
					return err == nil && at.Seq == before.Last
				})
				return
			}
			ledgertest.Eventually(t, "it is logged, with the reason", func() bool {
				_, text := counts.Logged(ledgertest.NotFollowing)
				return strings.Contains(text, test.want)
			})
		})
	}
}

// Where no ledger has the entries between, reconcile blames the ledger and not Redis, which it compares
// without it; rebuild says so too, and with force makes the ledger follow the sale again, with all that
// Redis has.
func TestGapInLedger(t *testing.T) {
	server, s, full := ledgertest.Drained(t, 1000, 20)
	l := short(t, server, s, full, 10, 30)
	before := ledgertest.Raw(t, server.Client())
	report, err := recovery.Reconcile(ledgertest.Soon(t), s.Store, l, "s", recovery.Options{By: "test"})
	if err != nil || report.Found != 1 || report.Against != recovery.AgainstItself {
		t.Fatalf("it reports %+v, error %v", report, err)
	}
	if d := report.Differences[0]; d.Kind != "ledger" || !strings.Contains(d.Text, "what is between is in neither") || strings.Contains(d.Cause, "redis has lost") || !strings.Contains(d.Repair, "--force") {
		t.Errorf("it says %+v", d)
	}
	if _, err := recovery.Rebuild(ledgertest.Soon(t), l, s.Store, "s", recovery.RebuildOptions{By: "test"}); err == nil || !strings.Contains(err.Error(), "what is between is in neither") {
		t.Errorf("a rebuild says %v", err)
	}
	ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Force: true, Open: true})
	if after := ledgertest.Raw(t, server.Client()); !maps.Equal(after["cells"], before["cells"]) || len(after["records"]) != len(before["records"]) {
		t.Errorf("redis has the cells %v and %d records, it had %v and %d", after["cells"], len(after["records"]), before["cells"], len(before["records"]))
	}
	s.Drain(l, ledgertest.NewCounts())
	s.Sell(5)
	s.UntilDrained(l)
}

// The file is removed while an edge has it open: that is logged, and the file that is made again gets
// everything again.
func TestLedgerIsRemoved(t *testing.T) {
	server := redistest.Start(t)
	s := ledgertest.NewSeller(t, server, 1000)
	file := filepath.Join(t.TempDir(), "ledger.db")
	l := ledgertest.OpenFile(t, file)
	end := s.Drain(l, ledgertest.NewCounts())
	s.Sell(20)
	s.UntilDrained(l)
	end()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	counts := ledgertest.NewCounts()
	s.Drain(l, counts)
	s.Sell(5)
	ledgertest.Eventually(t, "it is logged", func() bool {
		n, text := counts.Logged(ledgertest.NotFollowing)
		return n == 1 && strings.Contains(text, "was removed or replaced")
	})
	s.UntilDrained(l)
	s.UntilDrained(ledgertest.OpenFile(t, file))
}
