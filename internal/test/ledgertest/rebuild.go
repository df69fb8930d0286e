package ledgertest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Busy makes the seller's sale busy: it has two items, regions and limits, and buyers that do
// this many things.
func (s *Seller) Busy(seed uint64, times int) {
	s.t.Helper()
	now := time.Now().Truncate(time.Second)
	file := &sale.Sale{
		ID: "s", StartsAt: now.Add(-time.Hour), EndsAt: now.Add(48 * time.Hour), Timezone: "UTC",
		Items: []sale.Item{{SKU: "a", Stock: 2000}, {SKU: "b/1", Regions: map[string]int64{"n": 40, "s": 1000}}, {SKU: "none"}},
		Limits: []sale.Limit{
			{Per: "buyer", Every: "sale", Max: 9, Count: "units"}, {Per: "buyer", Every: "month", Max: 8, Count: "orders", SKU: "a"},
		},
	}
	ctx := Soon(s.t)
	if _, err := s.ApplyUnlessLost(ctx, file, reservation.ApplyOptions{By: "test", Force: true}); err != nil {
		s.t.Fatal(err)
	}
	if err := s.Refresh(ctx); err != nil {
		s.t.Fatal(err)
	}
	dice := rand.New(rand.NewPCG(seed, 0))
	for n := range times {
		if err := s.busy(dice, int(seed)*10_000+n); err != nil {
			s.t.Fatalf("seed %d, step %d: %v", seed, n, err)
		}
	}
}

// id is the id of the n-th reservation of Busy.
func id(n int) string { return fmt.Sprintf("b%d", n) }

func (s *Seller) busy(dice *rand.Rand, n int) error {
	ctx := Soon(s.t)
	known := id(n - dice.IntN(30))
	var err error
	switch dice.IntN(16) {
	case 0, 1:
		_, err = s.Store.Confirm(ctx, "s", known, reservation.SourceAnswer, "late status_201")
	case 2:
		_, err = s.Store.Release(ctx, "s", known, reservation.SourceForce, "no such\torder")
	case 3:
		_, err = s.Store.Doubt(ctx, "s", known, "timeout")
	case 4:
		_, err = s.Store.Return(ctx, "s", known, reservation.Return{ID: strconv.Itoa(dice.IntN(2)), Restock: dice.IntN(2) == 0, Lines: []sale.Line{{SKU: "a", Quantity: 1}}, Cause: "damaged"})
	case 5:
		_, err = s.Store.Return(ctx, "s", known, reservation.Return{ID: strconv.Itoa(dice.IntN(2)), Restock: dice.IntN(2) == 0})
	case 6:
		_, err = s.Store.Adjust(ctx, "s", fmt.Sprintf("adjust-%d", n), "a", dice.Int64N(9)-3, "test")
	case 7:
		_, err = s.Store.Extend(ctx, "s", known, 2*time.Hour, 9*time.Hour)
	default:
		err = s.buy(dice, n)
	}
	var conflict *reservation.ConflictError
	var many *reservation.TooManyError
	var bound *reservation.AlreadyBound
	var refund *reservation.RefundNeededError
	switch {
	case err == nil, errors.As(err, &conflict), errors.As(err, &many), errors.As(err, &bound), errors.As(err, &refund):
		return nil
	case errors.Is(err, reservation.ErrNotFound), errors.Is(err, reservation.ErrReused), errors.Is(err, shard.ErrRefused):
		return nil
	}
	return err
}

func (s *Seller) buy(dice *rand.Rand, n int) error {
	l, _ := s.Catalogue().Sale("s")
	lines := []sale.Line{{SKU: "a", Quantity: 1 + dice.Int64N(2)}}
	if dice.IntN(3) == 0 {
		lines = append(lines, sale.Line{SKU: "b/1", Region: []string{"n", "s"}[dice.IntN(2)], Quantity: 1})
	}
	a := &sale.Attempt{Sale: "s", Buyer: fmt.Sprintf("buyer %d", dice.IntN(100)), Lines: lines}
	if dice.IntN(3) > 0 {
		a.Key, a.Print = fmt.Sprintf("key %d", n-dice.IntN(2)), "print"
	}
	if dice.IntN(3) > 0 {
		a.Ref = fmt.Sprintf("order-%d", n-dice.IntN(2))
	}
	mode := []record.Mode{record.ModeResponse, record.ModeBackend}[dice.IntN(2)]
	h, no, err := s.Hold(Soon(s.t), id(n), l, a, lines, edge.HoldOptions{HoldFor: time.Hour, Margin: time.Minute, Mode: mode, Gate: "main", KeyTTL: time.Hour})
	if err != nil || no != nil || h.ID != id(n) {
		return err
	}
	if mode == record.ModeBackend {
		s.Free(Soon(s.t), "s", id(n))
	}
	if dice.IntN(2) == 0 {
		_, err = s.Store.Confirm(Soon(s.t), "s", id(n), reservation.SourceAnswer, "status_201")
	}
	return err
}

// Raw is what Redis has of sale "s": each key of its shard with its fields. It leaves out
// values that differ in another epoch: the journal; of meta epoch, seq, version, clock and what
// a ledger has acknowledged; of unpaid holds when others ended.
func Raw(t testing.TB, c *redis.Client) map[string]map[string]string {
	t.Helper()
	ctx := Soon(t)
	all := map[string]map[string]string{}
	for _, name := range []string{"meta", "cells", "limits", "records", "adjustments", "bindings", "returns", "unpaid", "waitlist"} {
		fields, err := c.HGetAll(ctx, "stockgate:{s.0}:"+name).Result()
		if err != nil {
			t.Fatal(err)
		}
		all[name] = fields
	}
	for field, text := range all["unpaid"] { // when holds ended unpaid is not in the ledger
		if held, _, _ := strings.Cut(text, " "); held != "0" {
			all["unpaid"][field] = held
		} else {
			delete(all["unpaid"], field)
		}
	}
	all["bindings"] = byRef(all["bindings"])
	for _, field := range []string{"epoch", "seq", "version", "clock", "acked", "acked_at"} {
		delete(all["meta"], field)
	}
	for _, name := range []string{"deadlines", "in_doubt", "unbacked", "tombstones"} {
		members, err := c.ZRangeWithScores(ctx, "stockgate:{s.0}:"+name, 0, -1).Result()
		if err != nil {
			t.Fatal(err)
		}
		all[name] = map[string]string{}
		for _, z := range members {
			all[name][z.Member.(string)] = strconv.FormatFloat(z.Score, 'f', -1, 64)
		}
	}
	return all
}

// byRef joins the two fields of each ref: the reservations of a ref have no order.
func byRef(bindings map[string]string) map[string]string {
	out := make(map[string]string, len(bindings))
	for field, text := range bindings {
		if ref, ok := record.NamedField(field); ok {
			first, others := (&record.ByName{Ref: ref}).Fields()
			ids := strings.Fields(bindings[first] + " " + bindings[others])
			slices.Sort(ids)
			field, text = "by ref "+ref, strings.Join(ids, " ")
		}
		out[field] = text
	}
	return out
}

// SameRaw fails unless two shards are the same.
func SameRaw(t testing.TB, got, want map[string]map[string]string) {
	t.Helper()
	for name := range want {
		if maps.Equal(got[name], want[name]) {
			continue
		}
		for field, text := range want[name] {
			if got[name][field] != text {
				t.Errorf("%s: %q is\n%q, was\n%q", name, field, got[name][field], text)
			}
		}
		for field, text := range got[name] {
			if _, ok := want[name][field]; !ok {
				t.Errorf("%s: %q is %q, and was not there", name, field, text)
			}
		}
	}
}

// rebuilds empties Redis when the ledger has everything: after a rebuild Redis has the
// same data, and both continue. Then it is emptied again.
func rebuilds(backend func(testing.TB) redistest.Backend, steps int) func(*testing.T, func() ledger.Ledger) {
	return func(t *testing.T, open func() ledger.Ledger) {
		l, b := ready(t, open), backend(t)
		s := NewSeller(t, b, 10)
		s.Drain(l, NewCounts())
		for round := range uint64(2) {
			s.Busy(5+round, steps)
			s.UntilDrained(l)
			before, at := Raw(t, b.Client()), position(t, l)
			if err := b.Client().FlushAll(Soon(t)).Err(); err != nil {
				t.Fatal(err)
			}
			dry, err := recovery.Rebuild(Soon(t), l, s.Store, "s", recovery.RebuildOptions{DryRun: true, Open: true})
			if err != nil || dry.Epoch != 0 || len(Raw(t, b.Client())["meta"]) != 0 {
				t.Fatalf("a dry run gives %+v, error %v", dry, err)
			}
			out, err := recovery.Rebuild(Soon(t), l, s.Store, "s", recovery.RebuildOptions{Open: true, By: "test"})
			if err != nil {
				t.Fatal(err)
			}
			SameRaw(t, Raw(t, b.Client()), before)
			if out.Found != recovery.FoundNothing || out.Ledger != at || out.Epoch <= at.Epoch || out.Status != sale.Open || out.Missing.AtLeast != 0 ||
				out.Limits != len(before["limits"]) || out.Cells != len(before["cells"]) || out.Returns != len(before["returns"]) || out.Adjustments != len(before["adjustments"]) ||
				!maps.Equal(out.Reservations, dry.Reservations) || !out.Until.Equal(dry.Until) {
				t.Errorf("it says %+v", out)
			}
			all, err := s.Store.Journal().Movements(Soon(t), "s", 0, 10)
			if err != nil || len(all) != 1 || all[0].Kind != "rebuilt" || all[0].Seq != 1 || all[0].Time.Before(out.Until) {
				t.Errorf("the journal begins with %+v, error %v", all, err)
			}
			if err := s.Refresh(Soon(t)); err != nil {
				t.Fatal(err)
			}
		}
		s.Sell(20)
		s.UntilDrained(l)
	}
}

func position(t testing.TB, l ledger.Ledger) ledger.Position {
	t.Helper()
	at, err := l.Position(Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	return at
}
