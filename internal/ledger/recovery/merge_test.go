package recovery_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/lua"
)

// What the previous life has given back is available before a reservation is told that
// there is nothing left: orders of a sale that is sold out keep their units, in whatever
// order they are found.
func TestRebuildGivesBackFirst(t *testing.T) {
	const each = 15
	server, s, l := ledgertest.Drained(t, 4*each, 0)
	ctx := ledgertest.Soon(t)
	buy := func(name string, state record.State) {
		t.Helper()
		for i := range each {
			id := fmt.Sprint(name, i)
			_, no, err := ledgertest.Attempt(t, s, id, "")
			if no == nil && err == nil && state == record.Confirmed {
				_, err = s.Store.Confirm(ctx, "s", id, reservation.SourceAnswer, "")
			}
			if no != nil || err != nil {
				t.Fatal(id, no, err)
			}
		}
	}
	every := func(name string, do func(id string) error) {
		t.Helper()
		for i := range each {
			if err := do(fmt.Sprint(name, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	release := func(id string) error {
		_, err := s.Store.Release(ctx, "s", id, reservation.SourceShop, "")
		return err
	}
	giveBack := func(id string) error {
		_, err := s.Store.Return(ctx, "s", id, reservation.Return{ID: "x", Restock: true})
		return err
	}
	end := s.Drain(l, ledgertest.NewCounts())
	buy("held", record.Held)
	buy("sold", record.Confirmed)
	buy("again", record.Held)
	every("again", release)
	s.UntilDrained(l)
	end()
	// from here on only Redis knows
	every("held", release)
	buy("after-held", record.Confirmed)
	every("sold", giveBack)
	buy("after-sold", record.Held)
	buy("new", record.Confirmed)
	every("new", giveBack)
	buy("after-new", record.Confirmed)
	every("again", func(id string) error {
		_, err := s.Store.Confirm(ctx, "s", id, reservation.SourceAnswer, "")
		return err
	})
	before := ledgertest.Raw(t, server.Client())
	out := ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Force: true})
	after := ledgertest.Raw(t, server.Client())
	for id, text := range before["records"] {
		was, _, _ := strings.Cut(text, "\t")
		if now, _, _ := strings.Cut(after["records"][id], "\t"); now != was {
			t.Errorf("%s is %s, it was %s", id, now, was)
		}
	}
	if fmt.Sprint(after["cells"]) != fmt.Sprint(before["cells"]) || len(out.Merged.NoStock) > 0 || out.Merged.Returns != 2*each {
		t.Errorf("%+v\nis  %v\nwas %v", out.Merged, after["cells"], before["cells"])
	}
	s.Drain(l, ledgertest.NewCounts())
	s.UntilDrained(l)
}

// What has expired is expired afterwards too, so that the shop may still confirm it, and
// what the shop has released since stays so.
func TestRebuildOfWhatExpired(t *testing.T) {
	_, s, l := ledgertest.Drained(t, 10, 0)
	ctx := ledgertest.Soon(t)
	expire := func(id string) {
		t.Helper()
		for {
			if _, err := s.Store.Expire(ctx, "s"); err != nil {
				t.Fatal(err)
			}
			if r, err := s.Store.ReservationIn(ctx, "s", id); err != nil {
				t.Fatal(err)
			} else if r.State == record.Expired {
				return
			}
		}
	}
	reserve := func(id string) {
		t.Helper()
		listing, _ := s.Catalogue().Sale("s")
		lines := []sale.Line{{SKU: "a", Quantity: 1}}
		a := &sale.Attempt{Sale: "s", Buyer: "buyer of " + id, Lines: lines, Key: "key of " + id, Print: "p"}
		if _, no, err := s.Hold(ctx, id, listing, a, lines, edge.HoldOptions{HoldFor: time.Millisecond, Mode: record.ModeBackend}); no != nil || err != nil {
			t.Fatal(no, err)
		}
	}
	end := s.Drain(l, ledgertest.NewCounts())
	reserve("refused")
	expire("refused")
	reserve("late")
	reserve("both")
	s.UntilDrained(l)
	end()
	// from here on only Redis knows
	expire("late")
	expire("both")
	for _, id := range []string{"refused", "both"} {
		if state, err := s.Store.Release(ctx, "s", id, reservation.SourceShop, ""); state != record.Released || err != nil {
			t.Fatal(id, state, err)
		}
	}
	ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Force: true})
	for _, id := range []string{"refused", "both"} {
		_, err := s.Store.Confirm(ctx, "s", id, reservation.SourceShop, "")
		if conflict, ok := errors.AsType[*reservation.ConflictError](err); !ok || conflict.State != record.Released {
			t.Errorf("the shop has released %s, and its confirm says %v", id, err)
		}
	}
	if state, err := s.Store.Confirm(ctx, "s", "late", reservation.SourceShop, ""); state != record.Confirmed || err != nil {
		t.Errorf("what had expired is %s, error %v", state, err)
	}
	if b, err := s.Store.SaleStock(ctx, "s"); err != nil || !b.Balanced || b.Items[0].Available != 9 {
		t.Errorf("the stock is %+v, error %v", b, err)
	}
	s.Drain(l, ledgertest.NewCounts())
	s.UntilDrained(l)
}

// breakOff lets a rebuild end before it has merged anything, and returns what
// lets the next one go on.
func breakOff(t *testing.T, c *redis.Client, rebuild func() error) (mend func()) {
	t.Helper()
	const key = "stockgate:{s.0}:returns"
	kept, err := c.HGetAll(ledgertest.Soon(t), key).Result()
	if err == nil {
		err = errors.Join(c.Del(ledgertest.Soon(t), key).Err(), c.Set(ledgertest.Soon(t), key, "", 0).Err())
	}
	if err == nil {
		err = rebuild()
	}
	if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Fatalf("with a key of another type: %v", err)
	}
	return func() {
		t.Helper()
		const key = "stockgate:{s.0}:previous:returns"
		err := c.Del(ledgertest.Soon(t), key).Err()
		if err == nil && len(kept) > 0 {
			err = c.HSet(ledgertest.Soon(t), key, kept).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What was released in the previous life must not be held again.
func TestCarryOfWhatWasReleased(t *testing.T) {
	_, s, _ := ledgertest.Drained(t, 10, 0)
	ctx := ledgertest.Soon(t)
	for id, state := range map[string]record.State{"h": record.Held, "d": record.InDoubt, "c": record.Confirmed} {
		if got, err := s.Store.Release(ctx, "s", id, reservation.SourceUnsent, "gone"); got != "tombstone" || err != nil {
			t.Fatal(got, err)
		}
		want := record.Released
		if state == record.Confirmed {
			want = state
		}
		r := &record.Record{State: state, Deadline: time.Now().Add(time.Hour), Created: time.Now(), Changed: time.Now(), Lines: []record.CellUnits{{Cell: "a", Units: 1}}}
		if got, made, err := recovery.NewRestorer(s.Store).MergeReservation(ctx, "s", id, r); got != want || !made || err != nil {
			t.Errorf("%s is %s, merged %v, error %v", state, got, made, err)
		}
	}
	if b, err := s.Store.SaleStock(ctx, "s"); err != nil || !b.Balanced || b.Items[0].Available != 9 {
		t.Errorf("the stock is %+v, error %v", b, err)
	}
}

// A hold that was extended, and of which the ledger has the earlier deadline, lives as
// long as its token says.
func TestRebuildKeepsAnExtension(t *testing.T) {
	server, s, l := ledgertest.Drained(t, 10, 0)
	ctx := ledgertest.Soon(t)
	lines := []sale.Line{{SKU: "a", Quantity: 1}}
	end := s.Drain(l, ledgertest.NewCounts())
	h, no, err := s.Hold(ctx, "h", must(s.Catalogue().Sale("s")), &sale.Attempt{Sale: "s", Buyer: "b", Lines: lines}, lines,
		edge.HoldOptions{HoldFor: 10 * time.Minute, Margin: time.Minute, Mode: record.ModeBackend})
	if no != nil || err != nil {
		t.Fatal(no, err)
	}
	s.UntilDrained(l)
	end()
	extended, err := s.Store.Extend(ctx, "s", "h", time.Hour, 2*time.Hour)
	if err != nil || !extended.Deadline.After(h.Deadline) {
		t.Fatal(extended, err)
	}
	before := ledgertest.Raw(t, server.Client())
	mend := breakOff(t, server.Client(), func() error {
		_, err := recovery.Rebuild(ctx, l, s.Store, "s", recovery.RebuildOptions{Force: true})
		return err
	})
	// until it is merged, nothing ends by the ledger's deadline
	if err := server.Client().ZAdd(ctx, "stockgate:{s.0}:deadlines", redis.Z{Score: 1, Member: "h"}).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Store.Expire(ctx, "s"); n != 0 || err != nil {
		t.Errorf("%d holds end, error %v", n, err)
	}
	mend()
	ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{})
	after := ledgertest.Raw(t, server.Client())
	if after["records"]["h"] != before["records"]["h"] || fmt.Sprint(after["deadlines"]) != fmt.Sprint(before["deadlines"]) {
		t.Errorf("it is %q %v, it was %q %v", after["records"]["h"], after["deadlines"], before["records"]["h"], before["deadlines"])
	}
	s.Drain(l, ledgertest.NewCounts())
	s.UntilDrained(l)
}

// What the operator has taken out of the stock after holds were released is taken out again once these are.
func TestRebuildTakesOutWhatCameBack(t *testing.T) {
	take := func(t *testing.T, s *ledgertest.Seller) {
		t.Helper()
		if _, err := s.Store.Adjust(ledgertest.Soon(t), "s", "out", "a", -10, "test"); err != nil {
			t.Fatal(err)
		}
	}
	every := func(t *testing.T, do func(id string) error) {
		t.Helper()
		for i := range 10 {
			if err := do(fmt.Sprint("r", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(t *testing.T, s *ledgertest.Seller, out *recovery.Rebuilt, stock int64, adjustments, notes int) {
		t.Helper()
		b, err := s.Store.SaleStock(ledgertest.Soon(t), "s")
		if err != nil || !b.Balanced || b.Items[0].Stock != stock || b.Items[0].Available != 0 {
			t.Errorf("the stock is %+v, error %v", b, err)
		}
		if n := strings.Count(strings.Join(out.Notes, "\n"), "The adjustment out of -10"); n != notes || out.Merged.Adjustments != adjustments {
			t.Errorf("%d notes of it, merged %+v, notes %q", n, out.Merged, out.Notes)
		}
	}
	t.Run("released", func(t *testing.T) {
		_, s, l := ledgertest.Drained(t, 10, 0)
		end := s.Drain(l, ledgertest.NewCounts())
		every(t, func(id string) error { return held(t, s, id) })
		s.UntilDrained(l)
		end()
		every(t, func(id string) error {
			_, err := s.Store.Release(ledgertest.Soon(t), "s", id, reservation.SourceShop, "")
			return err
		})
		take(t, s)
		check(t, s, ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Force: true}), 0, 1, 0)
		s.Drain(l, ledgertest.NewCounts())
		s.UntilDrained(l)
	})
	t.Run("sold in the other life", func(t *testing.T) {
		server, s, l := ledgertest.Drained(t, 10, 0)
		old := ledgertest.Backup(t, server.Client())
		end := s.Drain(l, ledgertest.NewCounts())
		every(t, func(id string) error { return held(t, s, id) })
		s.UntilDrained(l)
		end()
		ledgertest.Restore(t, server.Client(), old)
		take(t, s)
		if err := s.Store.SetStatus(ledgertest.Soon(t), "s", sale.Paused, "test"); err != nil {
			t.Fatal(err)
		}
		check(t, s, ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Force: true}), 10, 0, 1)
	})
}

// held reserves a unit.
func held(t *testing.T, s *ledgertest.Seller, id string) error {
	t.Helper()
	if _, no, err := ledgertest.Attempt(t, s, id, ""); no != nil || err != nil {
		return fmt.Errorf("%s: %v, %w", id, no, err)
	}
	return nil
}

// An order that the shop has confirmed when its units were sold to another one is still known afterwards: it is
// confirmed if there are units again, and otherwise unbacked.
func TestRebuildKeepsUnbacked(t *testing.T) {
	for _, known := range []record.State{record.Held, record.InDoubt, record.Released, record.Expired} {
		for _, more := range []int64{0, 1} {
			t.Run(fmt.Sprint(known, " more ", more), func(t *testing.T) {
				_, s, l := ledgertest.Drained(t, 1, 0)
				ctx := ledgertest.Soon(t)
				end := s.Drain(l, ledgertest.NewCounts())
				reach(t, s, "x", known)
				s.UntilDrained(l)
				end()
				loseUnits(t, s, "x", "y")
				if more > 0 {
					if _, err := s.Store.Adjust(ctx, "s", "more", "a", more, "test"); err != nil {
						t.Fatal(err)
					}
				}
				out := ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Force: true})
				want, short := record.Unbacked, "[x]"
				if more > 0 {
					want, short = record.Confirmed, "[]"
				}
				x, err := s.Store.ReservationIn(ctx, "s", "x")
				if err != nil || x.State != want || fmt.Sprint(out.Merged.NoStock) != short || out.Merged.Settled[want] != 1 || len(out.Merged.Settled) != 1 {
					t.Errorf("it is %+v, error %v, merged %+v", x, err, out.Merged)
				}
				if y, err := s.Store.ReservationIn(ctx, "s", "y"); err != nil || y.State != record.Confirmed {
					t.Errorf("the order that has its units is %+v, error %v", y, err)
				}
				if b, err := s.Store.SaleStock(ctx, "s"); err != nil || !b.Balanced || b.Items[0].Available != 0 {
					t.Errorf("the stock is %+v, error %v", b, err)
				}
				s.Drain(l, ledgertest.NewCounts())
				s.UntilDrained(l)
			})
		}
	}
}

// A rebuild that broke off after it had released the hold goes on with the order.
func TestRebuildKeepsUnbackedWhenItBreaksOff(t *testing.T) {
	server, s, l := ledgertest.Drained(t, 1, 0)
	ctx := ledgertest.Soon(t)
	end := s.Drain(l, ledgertest.NewCounts())
	reach(t, s, "x", record.Held)
	s.UntilDrained(l)
	end()
	loseUnits(t, s, "x", "y")
	mend := breakOff(t, server.Client(), func() error {
		_, err := recovery.Rebuild(ctx, l, s.Store, "s", recovery.RebuildOptions{Force: true})
		return err
	})
	if _, err := s.Store.Release(ctx, "s", "x", reservation.SourceForce, "rebuilt: as redis had it"); err != nil {
		t.Fatal(err)
	}
	mend()
	out := ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{})
	if x, err := s.Store.ReservationIn(ctx, "s", "x"); err != nil || x.State != record.Unbacked || fmt.Sprint(out.Merged.NoStock) != "[x]" {
		t.Errorf("it is %+v, error %v, merged %+v", x, err, out.Merged)
	}
}

// reach makes a reservation and brings it into a state.
func reach(t *testing.T, s *ledgertest.Seller, id string, state record.State) {
	t.Helper()
	ctx := ledgertest.Soon(t)
	lines := []sale.Line{{SKU: "a", Quantity: 1}}
	o := edge.HoldOptions{HoldFor: time.Hour, Mode: record.ModeBackend}
	if state == record.Expired {
		o.HoldFor = time.Millisecond
	}
	_, no, err := s.Hold(ctx, id, must(s.Catalogue().Sale("s")), &sale.Attempt{Sale: "s", Buyer: "buyer of " + id, Lines: lines}, lines, o)
	if no != nil || err != nil {
		t.Fatal(no, err)
	}
	switch state {
	case record.InDoubt:
		_, err = s.Store.Doubt(ctx, "s", id, "")
	case record.Released:
		_, err = s.Store.Release(ctx, "s", id, reservation.SourceUnsent, "")
	case record.Expired:
		ledgertest.Eventually(t, id+" expires", func() bool {
			if _, err := s.Store.Expire(ctx, "s"); err != nil {
				t.Fatal(err)
			}
			r, err := s.Store.ReservationIn(ctx, "s", id)
			return err == nil && r.State == record.Expired
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// loseUnits lets another order buy the units of a reservation, which the shop then confirms.
func loseUnits(t *testing.T, s *ledgertest.Seller, id, other string) {
	t.Helper()
	ctx := ledgertest.Soon(t)
	if r, err := s.Store.ReservationIn(ctx, "s", id); err != nil {
		t.Fatal(err)
	} else if r.State == record.Held || r.State == record.InDoubt {
		if _, err := s.Store.Release(ctx, "s", id, reservation.SourceShop, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := held(t, s, other); err != nil {
		t.Fatal(err)
	}
	if state, err := s.Store.Confirm(ctx, "s", other, reservation.SourceAnswer, ""); state != record.Confirmed || err != nil {
		t.Fatal(state, err)
	}
	if state, err := s.Store.Confirm(ctx, "s", id, reservation.SourceAnswer, ""); state != record.Unbacked || err != nil {
		t.Fatal(state, err)
	}
}

// What was refunded since, as the ledger knows, is not owed again.
func TestRebuildKeepsARefund(t *testing.T) {
	server, s, l := ledgertest.Drained(t, 1, 0)
	ctx := ledgertest.Soon(t)
	end := s.Drain(l, ledgertest.NewCounts())
	reach(t, s, "x", record.Released)
	loseUnits(t, s, "x", "y")
	old := ledgertest.Backup(t, server.Client())
	if state, err := s.Store.Release(ctx, "s", "x", reservation.SourceForce, "refunded"); state != record.Released || err != nil {
		t.Fatal(state, err)
	}
	s.UntilDrained(l)
	end()
	ledgertest.Restore(t, server.Client(), old)
	if err := s.Store.SetStatus(ctx, "s", sale.Paused, "test"); err != nil {
		t.Fatal(err)
	}
	out := ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Force: true})
	if x, err := s.Store.ReservationIn(ctx, "s", "x"); err != nil || x.State != record.Released || len(out.Merged.NoStock) != 0 {
		t.Errorf("it is %+v, error %v, merged %+v", x, err, out.Merged)
	}
}

// An order that was sent, and of which the ledger knows only that it waits, is at the shop afterwards: it does not
// wait, is not released, and counts as at the shop.
func TestRebuildKeepsWhatWasSent(t *testing.T) {
	for _, open := range []bool{false, true} {
		t.Run(fmt.Sprint("its request is open ", open), func(t *testing.T) {
			server, s, l := ledgertest.Drained(t, 10, 0)
			c := server.Client()
			end := s.Drain(l, ledgertest.NewCounts())
			for _, id := range []string{"first", "h"} {
				queued(t, s, id)
			}
			s.UntilDrained(l)
			end()
			// from here on only Redis knows
			if _, err := s.Store.Confirm(ledgertest.Soon(t), "s", "first", reservation.SourceAnswer, ""); err != nil {
				t.Fatal(err)
			}
			do(t, s, lua.Turn, "A", 60000, 0, 0, 1, 200, "gate")
			do(t, s, lua.Send, "h", "A", 1, "response", 60000, 1000)
			before := ledgertest.Raw(t, c)
			mend := breakOff(t, c, func() error {
				_, err := recovery.Rebuild(ledgertest.Soon(t), l, s.Store, "s", recovery.RebuildOptions{Force: true})
				return err
			})
			if open {
				do(t, s, lua.Rejoin, "h", "B", "gate", "packed")
			}
			mend()
			ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Open: true})
			do(t, s, lua.Orphans, 0, 100, 0)
			after := ledgertest.Raw(t, c)
			if after["records"]["h"] != before["records"]["h"] || fmt.Sprint(after["deadlines"]) != fmt.Sprint(before["deadlines"]) {
				t.Errorf("it is %q %v, it was %q %v", after["records"]["h"], after["deadlines"], before["records"]["h"], before["deadlines"])
			}
			if !open {
				queued(t, s, "next") // the first to come to the line since
			}
			keys := s.Store.Shard().ShardKeys("s")
			orders, err := c.HKeys(ledgertest.Soon(t), keys[shard.LineKey+1]).Result()
			if slices.Contains(orders, "h") || err != nil {
				t.Errorf("it waits: %q, error %v", orders, err)
			}
			if shops, err := c.ZRange(ledgertest.Soon(t), keys[shard.LineKey+2], 0, -1).Result(); fmt.Sprint(shops) != "[h]" || err != nil {
				t.Errorf("at the shop is %q, error %v", shops, err)
			}
			s.Drain(l, ledgertest.NewCounts())
			s.UntilDrained(l)
		})
	}
}

// queued reserves a unit for an order that waits if another one is at the shop.
func queued(t *testing.T, s *ledgertest.Seller, id string) {
	t.Helper()
	lines := []sale.Line{{SKU: "a", Quantity: 1}}
	_, no, err := s.Hold(ledgertest.Soon(t), id, must(s.Catalogue().Sale("s")), &sale.Attempt{Sale: "s", Buyer: "buyer of " + id, Lines: lines}, lines,
		edge.HoldOptions{HoldFor: time.Hour, Margin: time.Minute, Mode: record.ModeResponse, Queue: &reservation.QueueOptions{
			Pace: reservation.Pace{AtOnce: 1}, Most: 10, Memory: 1 << 20, Longest: time.Hour, Edge: "A", Gate: "gate", Order: []byte("packed"),
		}})
	if no != nil || err != nil {
		t.Fatal(no, err)
	}
}

// do runs an operation, which succeeds.
func do(t *testing.T, s *ledgertest.Seller, what *lua.Operation, args ...any) {
	t.Helper()
	if r, _, err := s.Store.Do(ledgertest.Soon(t), "s", shard.Op(what, args...)); err != nil || r.Code() != "ok" {
		t.Fatal(what.Name, r, err)
	}
}

// An order that was sent, and then was in doubt, cannot be released by an operator as one that waits: its token is
// good as long as it was.
func TestRebuildKeepsTheTokenOfWhatIsInDoubt(t *testing.T) {
	_, s, l := ledgertest.Drained(t, 10, 0)
	ctx := ledgertest.Soon(t)
	end := s.Drain(l, ledgertest.NewCounts())
	for _, id := range []string{"first", "h"} {
		queued(t, s, id)
	}
	s.UntilDrained(l)
	end()
	if _, err := s.Store.Confirm(ctx, "s", "first", reservation.SourceAnswer, ""); err != nil {
		t.Fatal(err)
	}
	do(t, s, lua.Turn, "A", 60000, 0, 0, 1, 200, "gate")
	do(t, s, lua.Send, "h", "A", 1, "response", time.Hour.Milliseconds(), 1000)
	if _, err := s.Store.Doubt(ctx, "s", "h", "timeout"); err != nil {
		t.Fatal(err)
	}
	was, err := s.Store.ReservationIn(ctx, "s", "h")
	if err != nil {
		t.Fatal(err)
	}
	ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Force: true})
	is, err := s.Store.ReservationIn(ctx, "s", "h")
	if err != nil || is.State != record.InDoubt || is.Mode != was.Mode || !is.Exp.Equal(was.Exp) || !is.Deadline.Equal(was.Deadline) {
		t.Errorf("it is %+v, error %v, it was %+v", is, err, was)
	}
	if state, err := s.Store.Release(ctx, "s", "h", reservation.SourceOperator, ""); err == nil {
		t.Errorf("it is %s", state)
	}
	s.Drain(l, ledgertest.NewCounts())
	s.UntilDrained(l)
}
