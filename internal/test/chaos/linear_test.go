package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// bought is one attempt with what came of it; at 0: the shop took nothing.
type bought struct {
	sent, heard, at int64
	key             string
	qty             int64
	proof, hears    string
	reason          string
}

func historyOf(stock int64, all []bought) *auditor.History {
	h := &auditor.History{}
	h.Load("s", "7", stock)
	h.Shards = []*auditor.Shard{{Sale: "s"}}
	for i, b := range all {
		id := fmt.Sprint(i)
		lines := []auditor.Line{{SKU: "7", Qty: max(b.qty, 1)}}
		a := &auditor.Attempt{ID: id, Sent: b.sent, Heard: b.heard, Buyer: "ann", Key: b.key, Lines: lines, Status: 201, Proof: b.hears, Reason: b.reason}
		if b.reason != "" {
			a.Status = 409
		}
		h.Heard(a)
		if b.at > 0 {
			h.Ordered(&auditor.Order{At: b.at, Attempt: id, JTI: "r" + id, Sale: "s", Lines: lines, Proof: b.proof, Taken: true})
		}
	}
	return h
}

// What cannot have happened is found, and what can is not.
func TestWrongHistoriesAreFound(t *testing.T) {
	held := auditor.Movement{Kind: "held", ID: "gone", Lines: []auditor.Units{{Cell: "7", Qty: 1}}}
	for name, test := range map[string]struct {
		stock   int64
		history []bought
		held    bool  // one unit was held for a while
		loaded  int64 // by the sale file, where operators add the rest
		want    string
	}{
		"sold, then sold out":               {stock: 1, history: []bought{{sent: 1, at: 2, heard: 3, proof: "a", hears: "a"}, {sent: 4, heard: 5, reason: "sold_out"}}},
		"sold out while it is sold":         {stock: 1, history: []bought{{sent: 1, at: 4, heard: 5, proof: "a", hears: "a"}, {sent: 2, heard: 3, reason: "sold_out"}}},
		"sold out before it was asked":      {stock: 1, history: []bought{{sent: 3, at: 4, heard: 5, proof: "a", hears: "a"}, {sent: 1, heard: 2, reason: "sold_out"}}, want: auditor.NoOversell},
		"sold out while a hold went on":     {stock: 1, history: []bought{{sent: 3, at: 4, heard: 5, proof: "a", hears: "a"}, {sent: 1, heard: 2, reason: "sold_out"}}, held: true},
		"sold out before stock was added":   {stock: 2, loaded: 1, history: []bought{{sent: 1, at: 2, heard: 3, proof: "a", hears: "a"}, {sent: 4, heard: 5, reason: "sold_out"}, {sent: 6, at: 7, heard: 8, proof: "b", hears: "b"}}},
		"sold out before the first is sold": {stock: 2, loaded: 1, history: []bought{{sent: 1, heard: 2, reason: "sold_out"}, {sent: 3, at: 4, heard: 5, proof: "a", hears: "a"}}, want: auditor.NoOversell},
		"too much for what is left":         {stock: 2, history: []bought{{sent: 1, at: 2, heard: 3, proof: "a", hears: "a"}, {sent: 4, heard: 5, qty: 2, reason: "sold_out"}}},
		"one unit twice":                    {stock: 1, history: []bought{{sent: 1, at: 2, heard: 3, proof: "a", hears: "a"}, {sent: 4, at: 5, proof: "b"}}, want: auditor.NoOversell},
		"an order without an answer":        {stock: 2, history: []bought{{sent: 1, at: 2, key: "k", proof: "a"}, {sent: 4, heard: 5, key: "k", hears: "a"}}},
		"two orders of a key":               {stock: 2, history: []bought{{sent: 1, at: 2, key: "k", proof: "a"}, {sent: 3, at: 4, key: "k", proof: "b"}}, want: auditor.AtMostOnce},
		"another order of a key":            {stock: 2, history: []bought{{sent: 1, at: 2, key: "k", proof: "a"}, {sent: 3, heard: 4, key: "k", hears: "b"}}, want: auditor.AtMostOnce},
		"a key whose order is forgotten": {stock: 2, history: []bought{
			{sent: 1, at: 2, heard: 3, key: "k", proof: "a", hears: "a"}, {sent: 4, heard: 5, key: "k", reason: "limit_reached"},
		}, want: auditor.AtMostOnce},
		"a key that is refused while it is sold": {stock: 2, history: []bought{{sent: 1, at: 5, heard: 6, key: "k", proof: "a", hears: "a"}, {sent: 2, heard: 3, key: "k", reason: "limit_reached"}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(test.stock, test.history)
			if test.held {
				h.Shards[0].Movements = []auditor.Movement{held}
			}
			if test.loaded > 0 {
				loaded := auditor.Movement{Kind: "loaded", Lines: []auditor.Units{{Cell: "7", Qty: test.loaded}}}
				h.Shards[0].Movements = append([]auditor.Movement{loaded}, h.Shards[0].Movements...)
			}
			got := ""
			for _, v := range linearizable(h) {
				got = v.Promise
			}
			if got != test.want {
				t.Errorf("broken is %q, want %q", got, test.want)
			}
		})
	}
}

// The shortest failing prefix is found where longer ones fail too.
func TestShortestPrefix(t *testing.T) {
	for needed := range 17 {
		prefix, fails := shortest(16, func(n int) int {
			if n >= needed {
				return 3
			}
			return 0
		})
		if prefix != needed && needed <= 16 || fails != 3 {
			t.Errorf("of 16 faults, with %d needed, the shortest prefix has %d and fails %d times", needed, prefix, fails)
		}
	}
	if prefix, fails := shortest(16, func(int) int { return 0 }); prefix != 16 || fails != 0 {
		t.Errorf("a failure that does not come again has prefix %d, fails %d times", prefix, fails)
	}
}

// A person hears of the waiting list in the order of its movements, at each edge; another edge may be behind.
func TestNoPersonHearsOfWhatWasBefore(t *testing.T) {
	const buyer, place = "aaaaaaaaaaaaaaaaaaaaaa", "/waitlist/s~aaaaaaaaaaaaaaaaaaaaaapppppppppppppppppppppp"
	offer := "held\t9\t90000\t1\t1\toffer\t" + buyer + "\t7 1\t\t\t1\t\t\t0\t\t\t\t\t\t"
	var entries []auditor.Entry
	for i, movements := range []string{
		"loaded\t1\t\t7 1\t\top\t", "entered\t1\t\t7 1\t" + buyer + "\t\t", "held\tw1.5\t\t7 1\t" + buyer + "\t\t" + offer, "released\tw1.5\theld\t7 1\t" + buyer + "\tlapsed\t",
	} {
		entries = append(entries, auditor.Entry{ID: fmt.Sprintf("%d-0", i+1), Time: "1", Movements: movements})
	}
	movements, err := auditor.ParseEntries(entries)
	if err != nil {
		t.Fatal(err)
	}
	line := auditor.Line{SKU: "7", Qty: 1}
	waiting := auditor.WaitAnswer{State: "waiting", SKU: "7", Quantity: 1, Place: 1}
	offered := auditor.WaitAnswer{State: "offered", SKU: "7", Quantity: 1, Until: time.UnixMilli(90_000)}
	lapsed := auditor.WaitAnswer{State: "ended", Why: "lapsed"}
	get := func(sent, heard int64, edge string, a auditor.WaitAnswer) *auditor.Wait {
		return &auditor.Wait{Sent: sent, Heard: heard, Method: "GET", Edge: edge, Sale: "s", Buyer: "ann", Line: line, Path: place, Status: 200, WaitAnswer: a}
	}
	enters := func(sent, heard int64, status int) *auditor.Wait {
		w := get(sent, heard, "e1", waiting)
		w.Method, w.Status = "POST", status
		return w
	}
	for name, test := range map[string]struct {
		waits  []*auditor.Wait
		broken bool
	}{
		"in order":                   {waits: []*auditor.Wait{enters(1, 2, 201), enters(3, 4, 200), get(5, 6, "e1", waiting), get(7, 8, "e1", offered), get(9, 10, "e1", lapsed)}},
		"back":                       {waits: []*auditor.Wait{get(5, 6, "e1", offered), get(7, 8, "e1", waiting)}, broken: true},
		"at the same time":           {waits: []*auditor.Wait{get(5, 8, "e1", offered), get(6, 7, "e1", waiting)}},
		"back, at another edge":      {waits: []*auditor.Wait{get(5, 6, "e1", offered), get(7, 8, "e2", waiting)}},
		"ended, and offered":         {waits: []*auditor.Wait{get(5, 6, "e1", lapsed), get(7, 8, "e1", offered)}, broken: true},
		"entered after it was there": {waits: []*auditor.Wait{enters(1, 2, 200), enters(3, 4, 201)}, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := &auditor.History{Waits: test.waits, Waitlists: []auditor.Waitlist{{Sale: "s", Max: 9}}, Shards: []*auditor.Shard{{Sale: "s", Movements: movements}}}
			if found := linearizable(h); len(found) > 0 != test.broken {
				t.Errorf("found %v", found)
			}
		})
	}
}
