package reservation_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// damagedSale has something in every key of the shard.
func damagedSale() []model.Operation {
	one := func(r model.Reserve, id string) model.Reserve {
		r.ID, r.Guard, r.Ref, r.Limits[0].Field = id, "k|"+id, "o-"+id, "buyer:sale:units|-|"+id
		r.Unpaid = model.Owed{Fields: []string{"buyer|" + id, "ip|1"}, AtOnce: 100, Ended: 100, Within: 3_600_000}
		return r
	}
	ops := []model.Operation{
		model.Apply{Starts: noon, Ends: saleEnds, Deltas: []model.Delta{{Cell: "a", Units: 20}, {Cell: "b", Units: 1}}},
		model.SetStatus{Status: "open"},
		model.Adjust{ID: "j", Cell: "a", Delta: 1},
		model.Release{ID: "tombstone", Word: "unsent", NotAfter: noon + 500},
		one(take("unbacked", 2), "unbacked"), model.Release{ID: "unbacked", Word: "shop"}, take("rest", 21),
		model.Confirm{ID: "unbacked", Word: "answer"}, model.Release{ID: "rest", Word: "shop"},
	}
	for _, name := range []string{"held", "in_doubt", "confirmed", "released", "returned"} {
		ops = append(ops, one(take(name, 2), name))
	}
	single, expired := singleR(), one(take("expired", 2), "expired")
	single.ID, expired.Mode, expired.HoldFor = "single", "backend", 1
	return append(ops, single, expired,
		model.Doubt{ID: "in_doubt"}, model.Confirm{ID: "confirmed", Word: "shop"}, model.Release{ID: "released", Word: "shop"},
		model.Confirm{ID: "returned", Word: "shop"}, model.Return{ID: "returned", Return: "x", Restock: true, Lines: []model.Line{{Cell: "a", Units: 1}}},
		model.Probe{Gate: "", Most: 1, Wait: 1, Tries: 5, LongestWait: 1},
		tick(noon+1), model.Expire{Most: 9}, tick(noon+2),
	)
}

// damagedCall is one call of a script.
type damagedCall struct {
	first []model.Operation // what is done before
	at    int64             // when; 0: at once
	ops   []reservation.Operation
}

// damagedCalls are calls of the scripts of a shard that write, by name.
func damagedCalls() map[string]*damagedCall {
	calls := map[string]*damagedCall{}
	add := func(name string, at int64, ops ...model.Operation) *damagedCall {
		c := &damagedCall{at: at}
		for _, op := range ops {
			c.ops = append(c.ops, wire(op))
		}
		calls[name] = c
		return c
	}
	raw := func(name, operation string, args ...any) {
		calls[name] = &damagedCall{ops: []reservation.Operation{{Name: operation, Args: args}}}
	}
	bound := take("new", 1)
	bound.Guard, bound.Print, bound.KeyTTL, bound.Ref = "k|new", "print", keyTTL, "o-new"
	bound.Unpaid = model.Owed{Fields: []string{"buyer|new", "ip|1"}, AtOnce: 100, Ended: 100, Within: 3_600_000}
	plain := take("new", 1)
	plain.Limits = nil
	add("reserve", 0, bound)
	add("reserve without limits and names", 0, plain)
	add("reserve several", 0, bound, take("other", 1), take("rest", 100))
	for _, state := range []string{"held", "in_doubt", "released", "expired", "unbacked"} {
		word := "answer"
		if state == "expired" {
			word = "shop"
		}
		add("confirm "+state, 0, model.Confirm{ID: state, Word: word})
	}
	for _, state := range []string{"released", "expired"} {
		add("confirm "+state+" without units", 0, model.Confirm{ID: state, Word: "answer"}).first = []model.Operation{take("else", 12)}
	}
	add("recreate", 0, model.Confirm{ID: "lost", Word: "shop", Evidence: tokenR(noon - 1).(model.Confirm).Evidence})
	add("recreate a tombstone", 0, model.Confirm{ID: "tombstone", Word: "shop", Evidence: tokenR(noon - 1).(model.Confirm).Evidence})
	for _, state := range []string{"held", "in_doubt", "unbacked", "expired", "single"} {
		add("release "+state, 0, model.Release{ID: state, Word: "shop"})
	}
	add("release the unknown", 0, model.Release{ID: "unknown", Word: "unsent", NotAfter: noon + 500})
	add("doubt", 0, model.Doubt{ID: "held"})
	add("expire", deadline, model.Expire{Most: 100})
	add("expire tombstones", noon+day, model.Expire{Most: 100})
	add("extend", 0, model.Extend{ID: "held", HoldFor: 5000, Longest: 60_000})
	add("free", 0, model.Free{ID: "single"})
	add("return", 0, model.Return{ID: "confirmed", Return: "y", Restock: true})
	add("return off sale", 0, model.Return{ID: "returned", Return: "y"})
	for _, state := range []string{"held", "confirmed", "released"} {
		add("sold "+state, 0, model.Sold{ID: state, Word: "answer", More: "more", Lines: []model.Line{{Cell: "a", Units: 1}, {Cell: "b", Units: 1}},
			Charges: []model.Charge{{Field: "buyer:sale:units|-|more", Amount: 1}}})
	}
	cart := take("cart", 2)
	cart.Mode, cart.Ref, cart.Buyer = "backend", "o-cart", "Ann"
	another := take("another", 1)
	another.Mode, another.Ref, another.Buyer, another.Guard, another.Unpaid = "backend", "o-cart", "Ann", "d|another", bound.Unpaid
	add("swap", 0, model.Swap{Old: "cart", New: another}).first = []model.Operation{cart}
	add("confirm what was swapped", 0, model.Confirm{ID: "cart", Word: "shop"}).first = []model.Operation{cart, model.Swap{Old: "cart", New: another}}
	add("probe", 0, model.Probe{Most: 9, Wait: 10, Tries: 5, LongestWait: 100})
	add("probed present", 0, model.Probed{ID: "in_doubt", Verdict: "present"})
	add("probed absent", deadline, model.Probe{Most: 9, Wait: 10, Tries: 5, LongestWait: 100}, model.Probed{ID: "in_doubt", Verdict: "absent"})
	add("adjust", 0, model.Adjust{ID: "more", Cell: "a", Delta: 3})
	add("apply", 0, model.Apply{Version: 2, Starts: noon, Ends: saleEnds, Deltas: []model.Delta{{Cell: "a", Units: 1}, {Cell: "b", Units: -1, Removed: true}}})
	add("status", 0, model.SetStatus{Status: "paused"})
	add("several", 0, model.Confirm{ID: "held", Word: "answer"}, model.Doubt{ID: "single"}, model.Release{ID: "unbacked", Word: "shop"},
		model.Release{ID: "unknown", Word: "unsent", NotAfter: noon + 500}, model.Return{ID: "confirmed", Return: "y"})
	over := take("over", 1)
	over.Limits[0].Field = fmt.Sprintf("buyer:day:units|%d|Ann", noon+1)
	raw("sweep", "sweep", 0, 100)
	calls["sweep"].first = []model.Operation{over}
	raw("lapse", "lapse", 0, 100, 0)
	raw("acknowledge", "acknowledge", noon, 1)
	raw("outbox", "outbox", "me", 1000, noon, 1)
	raw("sent", "sent", noon, 1)
	lines := []record.CellUnits{{Cell: "a", Units: 1}}
	for _, state := range []record.State{"held", "in_doubt", "confirmed", "unbacked", "released"} {
		raw("merge "+string(state), "merge", "merged", (&record.Record{State: state, Lines: lines, Guard: "k|merged", Ref: "o-merged", Charges: "l|-|x 1", Unpaid: "buyer|x ip|1"}).Text())
	}
	raw("merge a later deadline", "merge", "held", (&record.Record{State: "held", Mode: record.ModeResponse, Lines: lines, Deadline: time.UnixMilli(deadline + 1)}).Text())
	raw("merge what was sent", "merge", "held", (&record.Record{State: "held", Mode: record.ModeBackend, Lines: lines, Changed: time.UnixMilli(deadline - 1), Deadline: time.UnixMilli(deadline + 1)}).Text())
	raw("merge what has expired", "merge", "held", (&record.Record{State: "expired", Lines: lines}).Text())
	raw("merge a tombstone", "merge", "tombstone", (&record.Record{State: "held", Lines: lines}).Text())
	for part, found := range map[string][3]string{
		"cell": {"a", "=1 1 0 0 0", "=2 2 0 0 0"}, "limit": {"l|-|x", "", "=1 0"}, "record": {"new", "", "=x"}, "binding": {"k|x", "", "=new"},
		"adjustment": {"x", "", "=a 1 1"}, "unpaid": {"ip|1", "=1 5", "=2 5"}, "return": {"x|x", "", "=1 a 1\ta 1"}, "deadlines": {"x", "", "=1"}, "in_doubt": {"x", "", "=1"},
		"unbacked": {"unbacked", fmt.Sprint("=", noon), ""}, "tombstones": {"x", "", "=1"},
	} {
		raw("repair "+part, "repair", noon, 1000, "me", 1, part, found[0], found[1], found[2], "why", "")
	}
	return calls
}

// Another client has put a key of another type in the place of one, or values that no
// script has written. A call that writes there does all or nothing; what is put right
// works at once.
func TestDamagedShard(t *testing.T) {
	t.Parallel()
	for _, s := range servers(t) {
		t.Run(s.name, func(t *testing.T) {
			calls := damagedCalls()
			for _, name := range slices.Sorted(maps.Keys(calls)) {
				t.Run(name, func(t *testing.T) {
					sale := strings.ReplaceAll(name, " ", "-")
					s.fill(t, sale, append(damagedSale(), calls[name].first...))
					s.setTime(cmp.Or(calls[name].at, noon+2))
					allOrNothing(t, s.client, s.store.Shard().ShardKeys(sale), func() error {
						_, _, err := s.store.Call(stocktest.Soon(t), sale, calls[name].ops...)
						return err
					})
				})
			}
		})
	}
}
