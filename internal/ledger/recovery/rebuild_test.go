package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
)

// breaking does as its ledger does, and breaks off at one point once the sale is being
// restored.
type breaking struct {
	ledger.Ledger
	store *reservation.Store
	at    string
	after int
}

func (b *breaking) restoring(ctx context.Context) bool {
	life, err := b.store.Life(ctx, "s")
	return err == nil && life.Restoring
}

var errBroken = errors.New("broken off")

func (b *breaking) Reservations(ctx context.Context, sale string, yield func(*ledger.Reservation) error) error {
	n := 0
	return b.Ledger.Reservations(ctx, sale, func(r *ledger.Reservation) error {
		if n++; b.at == "reservations" && n > b.after && b.restoring(ctx) {
			return errBroken
		}
		return yield(r)
	})
}

func (b *breaking) Stock(ctx context.Context, sale string) ([]ledger.Cell, error) {
	if b.at == "stock" && b.restoring(ctx) {
		return nil, errBroken
	}
	return b.Ledger.Stock(ctx, sale)
}

func (b *breaking) Restart(ctx context.Context, sale string, from, to ledger.Position) error {
	if b.at == "before restart" {
		return errBroken
	}
	err := b.Ledger.Restart(ctx, sale, from, to)
	if b.at == "after restart" {
		return errBroken
	}
	return err
}

// A rebuild that breaks off does not sell, whatever is asked of the sale fails and may
// be asked again, and another run starts over.
func TestRebuildBreaksOff(t *testing.T) {
	server, s, l := ledgertest.Drained(t, 5000, 1500)
	before := ledgertest.Raw(t, server.Client())
	for _, b := range []breaking{{at: "reservations"}, {at: "reservations", after: 1200}, {at: "stock"}, {at: "before restart"}, {at: "after restart"}, {at: "after restart"}} {
		ledgertest.Flush(t, server)
		b.Ledger, b.store = l, s.Store
		for range 2 {
			if _, err := recovery.Rebuild(ledgertest.Soon(t), &b, s.Store, "s", recovery.RebuildOptions{Open: true}); !errors.Is(err, errBroken) {
				t.Fatalf("%s %d: %v", b.at, b.after, err)
			}
			if err := s.Refresh(ledgertest.Soon(t)); err != nil {
				t.Fatal(err)
			}
			listing, ok := s.Catalogue().Sale("s")
			if no := listing.RefusalAt(time.Now()); !ok || no == nil || no.Reason != "paused" {
				t.Fatalf("%s: buyers hear %+v", b.at, no)
			}
			if h, no, err := ledgertest.Attempt(t, s, "new", ""); !errors.Is(err, shard.ErrUnavailable) {
				t.Errorf("%s: in the middle %+v is held, refused %v, error %v", b.at, h, no, err)
			}
			if _, err := s.Store.Confirm(ledgertest.Soon(t), "s", "r3", reservation.SourceAnswer, ""); !errors.Is(err, shard.ErrRestoring) {
				t.Errorf("%s: a confirm says %v", b.at, err)
			}
			if err := s.Store.SetStatus(ledgertest.Soon(t), "s", sale.Open, "operator"); !errors.Is(err, shard.ErrRestoring) {
				t.Errorf("%s: it is opened: %v", b.at, err)
			}
			if _, err := s.Store.Journal().Head(ledgertest.Soon(t), "s"); !errors.Is(err, shard.ErrNoSale) {
				t.Errorf("%s: it has a journal: %v", b.at, err)
			}
		}
		out := ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Open: true})
		ledgertest.SameRaw(t, ledgertest.Raw(t, server.Client()), before)
		if out.Found != recovery.FoundUnfinished || out.Status != sale.Open {
			t.Errorf("%s: it says %+v", b.at, out)
		}
		if again, err := recovery.Rebuild(ledgertest.Soon(t), l, s.Store, "s", recovery.RebuildOptions{}); !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), "--force") {
			t.Errorf("%s: once more: %+v, %v", b.at, again, err)
		}
	}
	s.Drain(l, ledgertest.NewCounts())
	s.Sell(20)
	s.UntilDrained(l)
}

// What never reached the ledger is said, the sale waits for the operator, and tokens
// bring back what they prove.
func TestRebuildWithoutTheLast(t *testing.T) {
	server, s, l := ledgertest.Drained(t, 1000, 20)
	at, err := l.Position(ledgertest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	evidence := func(h reservation.Hold, no *sale.Refusal, err error) *reservation.Evidence {
		t.Helper()
		if no != nil || err != nil {
			t.Fatal(no, err)
		}
		return &reservation.Evidence{Sale: "s", ID: h.ID, Buyer: "buyer of " + h.ID, Epoch: h.Epoch, Created: h.Created, Exp: h.Exp, Ref: h.Ref, Lines: h.Lines}
	}
	lost := evidence(ledgertest.Attempt(t, s, "lost", "order-lost"))
	if _, err := s.Store.Journal().Head(ledgertest.Soon(t), "s"); err != nil { // as the keeper looks
		t.Fatal(err)
	}
	other := evidence(ledgertest.Attempt(t, s, "other", ""))
	held := evidence(s.Hold(ledgertest.Soon(t), "held", must(s.Catalogue().Sale("s")), &sale.Attempt{Sale: "s", Buyer: "buyer of held"}, lost.Lines, edge.HoldOptions{HoldFor: time.Hour, Mode: record.ModeBackend}))
	ledgertest.Flush(t, server)
	out := ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{})
	if out.Missing.AtLeast != 3 || out.Missing.Seen != at.Seq+3 || out.Missing.Waiting != 1 || out.Status != sale.Paused || !strings.Contains(strings.Join(out.Notes, "\n"), "at least 3 movements") {
		t.Errorf("it says %+v", out)
	}
	if _, no, err := ledgertest.Attempt(t, s, "r99", ""); err != nil || no == nil || no.Reason != "paused" {
		t.Errorf("buyers hear %v, error %v", no, err)
	}
	before, _ := s.Store.SaleStock(ledgertest.Soon(t), "s")
	for _, ev := range []*reservation.Evidence{lost, other, lost} {
		if got, err := s.ConfirmWith(ledgertest.Soon(t), ev, "paid"); got != record.Confirmed || err != nil {
			t.Errorf("%s with its token: %s, %v", ev.ID, got, err)
		}
	}
	if got, err := s.ConfirmWith(ledgertest.Soon(t), &reservation.Evidence{Sale: "s", ID: "r4", Epoch: lost.Epoch, Lines: lost.Lines}, ""); got != record.Confirmed || err != nil {
		t.Errorf("what the ledger has: %s, %v", got, err)
	}
	after, err := s.Store.SaleStock(ledgertest.Soon(t), "s")
	if err != nil || after.Items[0].Confirmed != before.Items[0].Confirmed+2 || !after.Balanced {
		t.Errorf("the stock is %+v (%v), they were %+v", after, err, before)
	}
	if err := s.Store.SetStatus(ledgertest.Soon(t), "s", sale.Open, "operator"); err != nil {
		t.Fatal(err)
	}
	if err := s.Refresh(ledgertest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	if h, _, err := ledgertest.Attempt(t, s, "again", "order-lost"); !isBound(err, "lost") {
		t.Errorf("its ref is free: %+v, %v", h, err)
	}
	if err := adjust(t, s, "all", -after.Items[0].Available); err != nil {
		t.Fatal(err)
	}
	if got, err := s.ConfirmWith(ledgertest.Soon(t), held, "paid"); err == nil || !strings.Contains(err.Error(), "refund") {
		t.Errorf("without units: %s, %v", got, err)
	}
	s.Drain(l, ledgertest.NewCounts())
	s.UntilDrained(l)
}

func adjust(t *testing.T, s *ledgertest.Seller, id string, delta int64) error {
	_, err := s.Store.Adjust(ledgertest.Soon(t), "s", id, "a", delta, "test")
	return err
}

func must(l *edge.Listing, _ bool) *edge.Listing { return l }

func isBound(err error, id string) bool {
	b, ok := errors.AsType[*reservation.AlreadyBound](err)
	return ok && b.ID == id
}

// Redis has come back without its last writes, and perhaps with others under their
// numbers: what it has and the ledger has not is taken over, and nothing is sold twice
// without a word.
func TestRebuildAfterARollback(t *testing.T) {
	for name, test := range map[string]struct {
		again int
		units int64
		found recovery.PriorState
	}{
		"behind":            {0, 1000, recovery.FoundBehind},
		"others":            {60, 1000, recovery.FoundDisagrees},
		"others, few units": {60, 60, recovery.FoundDisagrees},
	} {
		t.Run(name, func(t *testing.T) {
			server, s, l := ledgertest.Drained(t, test.units, 20)
			c := server.Client()
			old := ledgertest.Backup(t, c)
			end := s.Drain(l, ledgertest.NewCounts())
			s.Sell(50) // r21 to r70
			if err := adjust(t, s, "more", 5); err != nil {
				t.Fatal(err)
			}
			s.UntilDrained(l)
			end()
			inLedger := confirmed(t, l)
			ledgertest.Restore(t, c, old)
			s.Sell(test.again) // r71 …
			if test.again > 0 {
				if _, err := s.Store.Confirm(ledgertest.Soon(t), "s", "r11", reservation.SourceShop, "paid"); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Store.Adjust(ledgertest.Soon(t), "s", "of the other life", "a", 2, "test"); err != nil {
					t.Fatal(err)
				}
			}
			if out, err := recovery.Rebuild(ledgertest.Soon(t), l, s.Store, "s", recovery.RebuildOptions{}); !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), "pause it first") {
				t.Fatalf("while it sells: %+v, %v", out, err)
			}
			if err := s.Store.SetStatus(ledgertest.Soon(t), "s", sale.Paused, "operator"); err != nil {
				t.Fatal(err)
			}
			before := ledgertest.Raw(t, c)
			if dry := ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{DryRun: true}); dry.Found != test.found {
				t.Errorf("a dry run says %+v", dry)
			}
			ledgertest.SameRaw(t, ledgertest.Raw(t, c), before)

			// it breaks off, and is half merged; one record is not readable
			ctx := ledgertest.Soon(t)
			if err := c.HSet(ctx, "stockgate:{s.0}:records", "unreadable", "x").Err(); err != nil {
				t.Fatal(err)
			}
			breakOff(t, c, func() error {
				_, err := recovery.Rebuild(ctx, l, s.Store, "s", recovery.RebuildOptions{Open: true})
				return err
			})()
			n := 0
			err := recovery.NewRestorer(s.Store).PreviousReservations(ctx, "s", func(string, string) {}, func(id string, r *record.Record) error {
				if n++; n > 20 {
					return nil
				}
				_, _, err := recovery.NewRestorer(s.Store).MergeReservation(ctx, "s", id, r)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			out := ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{})
			if out.Found != recovery.FoundUnfinished || out.Status != sale.Paused || out.Merged == nil ||
				!strings.Contains(strings.Join(out.Notes, "\n"), `The reservation unreadable, which redis had, cannot be read and is not merged: "x".`) {
				t.Errorf("it says %+v", out)
			}
			for id, text := range before["records"] {
				if strings.HasPrefix(text, "confirmed\t") {
					inLedger[id] = true
				}
			}
			unbacked := 0
			for id := range inLedger {
				r, err := s.Store.Reservation(ledgertest.Soon(t), id)
				if err != nil || r.State != record.Confirmed && r.State != record.Unbacked {
					t.Errorf("the order %s is %+v, error %v", id, r, err)
					continue
				}
				if r.State == record.Unbacked {
					unbacked++
				}
			}
			if (unbacked > 0) != (test.units < 100) {
				t.Errorf("%d orders have no units", unbacked)
			}
			if left, err := c.Keys(ledgertest.Soon(t), "*:previous:*").Result(); err != nil || len(left) > 0 {
				t.Errorf("left over: %q, error %v", left, err)
			}
			stock := test.units + 5
			if test.again > 0 {
				stock += 2
			}
			b, err := s.Store.SaleStock(ledgertest.Soon(t), "s")
			if err != nil || !b.Balanced || b.Items[0].Stock > stock {
				t.Errorf("the stock is %+v, error %v", b, err)
			}
			counts := ledgertest.NewCounts()
			s.Drain(l, counts)
			defer func() { _, text := counts.Logged(ledgertest.NotFollowing); t.Log(text) }()
			s.UntilDrained(l)
		})
	}
}

// confirmed are the reservations that a ledger has as confirmed.
func confirmed(t *testing.T, l ledger.Ledger) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	err := l.Reservations(ledgertest.Soon(t), "s", func(r *ledger.Reservation) error {
		if r.State == record.Confirmed {
			ids[r.ID] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// With force everything that only Redis has is kept.
func TestRebuildByForce(t *testing.T) {
	server, s, l := ledgertest.Drained(t, 1000, 30)
	s.Sell(30)
	if _, err := s.Store.Adjust(ledgertest.Soon(t), "s", "late", "a", 7, "test"); err != nil {
		t.Fatal(err)
	}
	plan := reservation.PlannedAct{At: time.Now().Add(10 * time.Minute).Format(time.RFC3339), Act: "pause"}
	if _, _, _, err := s.Store.Schedule(ledgertest.Soon(t), "s", plan, "test"); err != nil {
		t.Fatal(err)
	}
	before := ledgertest.Raw(t, server.Client())
	if _, err := recovery.Rebuild(ledgertest.Soon(t), l, s.Store, "s", recovery.RebuildOptions{}); !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), "nothing is to be rebuilt") {
		t.Fatalf("without: %v", err)
	}
	out := ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Force: true, Open: true})
	if out.Missing.AtLeast != 0 || out.Missing.Seen == 0 {
		t.Errorf("it says that something is missing: %+v", out.Missing)
	}
	if b, err := s.Store.SaleStock(ledgertest.Soon(t), "s"); err != nil || len(b.Scheduled) != 1 || !b.Scheduled[0].Stale {
		t.Errorf("what was scheduled is %+v, %v", b, err)
	}
	after := ledgertest.Raw(t, server.Client())
	for id, text := range after["records"] { // since when may be another time
		if a, b := strings.Split(text, "\t"), strings.Split(before["records"][id], "\t"); len(b) < 5 || a[0] != b[0] || a[7] != b[7] || a[16] != b[16] {
			t.Errorf("%s is %q, it was %q", id, a, b)
		}
	}
	if len(after["records"]) != len(before["records"]) || fmt.Sprint(after["cells"]) != fmt.Sprint(before["cells"]) || fmt.Sprint(after["bindings"]) != fmt.Sprint(before["bindings"]) ||
		len(after["returns"]) != len(before["returns"]) || out.Status != sale.Open {
		t.Errorf("%+v\nis  %v\nwas %v", out, after["cells"], before["cells"])
	}
	s.Drain(l, ledgertest.NewCounts())
	s.UntilDrained(l)
}

// A sale that was sold beyond its stock, by a counter that was changed in Redis, is
// rebuilt as it was.
func TestRebuildOfWhatIsOversold(t *testing.T) {
	server, s, l := ledgertest.Drained(t, 20, 10)
	c, ctx := server.Client(), ledgertest.Soon(t)
	b, err := s.Store.SaleStock(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	cell := b.Items[0]
	if err := c.HSet(ctx, "stockgate:{s.0}:cells", "a", fmt.Sprintf("%d %d %d %d %d", cell.Stock, cell.Available+30, cell.Held, cell.InDoubt, cell.Confirmed)).Err(); err != nil {
		t.Fatal(err)
	}
	end := s.Drain(l, ledgertest.NewCounts())
	s.Sell(40)
	ledgertest.Eventually(t, "the ledger has everything", func() bool {
		h, err := s.Store.Journal().Head(ledgertest.Soon(t), "s")
		return err == nil && h.Behind() == 0
	})
	end()
	ledgertest.Flush(t, server)
	out := ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{})
	b, err = s.Store.SaleStock(ctx, "s")
	if err != nil || b.Items[0].Available >= 0 {
		t.Fatalf("the stock is %+v, error %v", b, err)
	}
	if want := fmt.Sprintf("%d units of a are sold beyond its stock", -b.Items[0].Available); !strings.Contains(strings.Join(out.Notes, "\n"), want) {
		t.Errorf("it does not say %q: %q", want, out.Notes)
	}
	s.Drain(l, ledgertest.NewCounts())
	s.UntilDrained(l)
}

// disturbed has something happen to the sale once, while it is read.
type disturbed struct {
	ledger.Ledger
	by func()
}

func (l *disturbed) Stock(ctx context.Context, sale string) ([]ledger.Cell, error) {
	if by := l.by; by != nil {
		l.by = nil
		by()
	}
	return l.Ledger.Stock(ctx, sale)
}

// A sale that goes on while it is looked at is rebuilt all the same, with what has
// happened; only one that was opened meanwhile is not, without force.
func TestRebuildOfWhatMoves(t *testing.T) {
	for name, follows := range map[string]bool{"the ledger follows": true, "the ledger does not": false} {
		t.Run(name, func(t *testing.T) {
			server, s, l := ledgertest.Drained(t, 200, 20)
			if follows {
				s.Drain(l, ledgertest.NewCounts())
			}
			var before map[string]map[string]string
			d := &disturbed{l, func() {
				s.Sell(20)
				if follows {
					s.UntilDrained(l)
				}
				before = ledgertest.Raw(t, server.Client())
			}}
			if out := ledgertest.Rebuild(t, d, s, recovery.RebuildOptions{Force: true, Open: true}); out.Status != sale.Open {
				t.Errorf("it says %+v", out)
			}
			after := ledgertest.Raw(t, server.Client())
			if len(after["records"]) != 40 || fmt.Sprint(after["cells"]) != fmt.Sprint(before["cells"]) {
				t.Errorf("is %v, was %v", after["cells"], before["cells"])
			}
			if !follows {
				s.Drain(l, ledgertest.NewCounts())
			}
			s.UntilDrained(l)
		})
	}
	server, s, l := ledgertest.Drained(t, 200, 20)
	old := ledgertest.Backup(t, server.Client())
	end := s.Drain(l, ledgertest.NewCounts())
	s.Sell(1)
	s.UntilDrained(l)
	end()
	ledgertest.Restore(t, server.Client(), old)
	status := func(status sale.Status) {
		t.Helper()
		if err := s.Store.SetStatus(ledgertest.Soon(t), "s", status, "operator"); err != nil {
			t.Fatal(err)
		}
	}
	status(sale.Paused)
	d := &disturbed{l, func() { status(sale.Open) }}
	if out, err := recovery.Rebuild(ledgertest.Soon(t), d, s.Store, "s", recovery.RebuildOptions{}); !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), "pause it first") {
		t.Errorf("opened meanwhile: %+v, %v", out, err)
	}
}

// oneMore has a unit more than its ledger.
type oneMore struct{ ledger.Ledger }

func (l oneMore) Stock(ctx context.Context, sale string) ([]ledger.Cell, error) {
	cells, err := l.Ledger.Stock(ctx, sale)
	cells[0].Available++
	return cells, err
}

// A ledger that does not fit together, or that never followed the sale, rebuilds
// nothing.
func TestRebuildFromAnUnsoundLedger(t *testing.T) {
	server, s, l := ledgertest.Drained(t, 100, 20)
	if _, err := recovery.Rebuild(ledgertest.Soon(t), ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db")), s.Store, "s", recovery.RebuildOptions{Force: true}); !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), "has nothing of sale s") {
		t.Errorf("an empty one: %v", err)
	}
	before := ledgertest.Raw(t, server.Client())
	if _, err := recovery.Rebuild(ledgertest.Soon(t), oneMore{l}, s.Store, "s", recovery.RebuildOptions{Force: true}); !errors.Is(err, ledger.ErrChanged) {
		t.Errorf("one that was changed: %v", err)
	}
	ledgertest.SameRaw(t, ledgertest.Raw(t, server.Client()), before)
	ledgertest.Flush(t, server)
	if _, err := recovery.Rebuild(ledgertest.Soon(t), oneMore{l}, s.Store, "s", recovery.RebuildOptions{}); !errors.Is(err, ledger.ErrChanged) {
		t.Errorf("one that was changed, and nothing in redis: %v", err)
	}
	if life, err := s.Store.Life(ledgertest.Soon(t), "s"); life.Restoring || err != nil {
		t.Errorf("the sale is left half restored: %+v, %v", life, err)
	}
}
