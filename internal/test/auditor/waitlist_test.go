package auditor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// offer is the record of units that are held for a person until a time.
func offer(buyer string, exp int64) string {
	return fmt.Sprintf("held\t9\t%d\t1\t1\toffer\t%s\t7 1\t\t\t1\t\t\t0\t\t\t\t\t", exp, buyer)
}

// order is a reservation without a charge.
func order(state, buyer string) string {
	return state + "\t9\t8\t1\t1\tbackend\t" + buyer + "\t7 1\t\t\t1\t\t\t0\t\tmain\t\t\t"
}

// hash is as long as the hash of a buyer.
func hash(buyer string) string { return strings.Repeat(buyer[:1], 22) }

func placeOf(buyer string) string { return "/waitlist/s~" + hash(buyer) + strings.Repeat("p", 22) }

// listed is a history in which one unit is held by zoe and comes back. Ann, bob and eve wait for it: ann lets her
// offer lapse, bob orders, and eve waits in the end.
func listed() *told {
	h := &auditor.History{}
	h.Load("s", "7", 1)
	h.Waitlists = []auditor.Waitlist{{Sale: "s", Max: 3}}
	s := &told{History: h, shard: &auditor.Shard{
		Sale: "s", Cells: map[string]string{"7": "1 0 1 0 0"}, Deadlines: []string{"r2"},
		Records: map[string]string{"r1": order("released", "z"), "w1.5": "released\t" + offer(hash("ann"), 90_000)[5:], "w2.6": "released\t" + offer(hash("bob"), 91_000)[5:], "r2": order("held", hash("bob"))},
		Waitlist: map[string]string{
			"last": "3", "live": "1", "c|7": "1 0", "e|0": fmt.Sprintf("\n3 w 7 1 7 %s phone=%s", hash("eve"), strings.Repeat("3", 22)),
		},
	}}
	for i, movements := range []string{
		"loaded\t1\t\t7 1\t\top\t",
		"open\t1\t\t\t\top\t",
		"held\tr1\t\t7 1\tz\t\t" + order("held", "z"),
		"entered\t1\t\t7 1\t" + hash("ann") + "\t phone=" + strings.Repeat("1", 22) + "\t",
		"entered\t2\t\t7 1\t" + hash("bob") + "\t phone=" + strings.Repeat("2", 22) + "\t",
		"entered\t3\t\t7 1\t" + hash("eve") + "\t phone=" + strings.Repeat("3", 22) + "\t",
		"released\tr1\theld\t7 1\tz\tshop\t",
		"held\tw1.5\t\t7 1\t" + hash("ann") + "\t\t" + offer(hash("ann"), 90_000),
		"released\tw1.5\theld\t7 1\t" + hash("ann") + "\tlapsed\t",
		"held\tw2.6\t\t7 1\t" + hash("bob") + "\t\t" + offer(hash("bob"), 91_000),
		"released\tw2.6\theld\t7 1\t" + hash("bob") + "\taccepted\t",
		"held\tr2\t\t7 1\t" + hash("bob") + "\t\t" + order("held", hash("bob")),
	} {
		s.entries = append(s.entries, auditor.Entry{ID: fmt.Sprintf("%d-0", i+1), Time: fmt.Sprint(1000 * (i + 1)), Movements: movements})
	}
	at := func(seq int64) { s.Mark("s", func() (int64, bool) { return seq, true }) }
	wait := func(method, buyer, path string, status int, a auditor.WaitAnswer) *auditor.Wait {
		w := &auditor.Wait{Sent: s.Tick(), Heard: s.Tick(), Method: method, Sale: "s", Buyer: buyer, Phone: buyer + "'s", Line: auditor.Line{SKU: "7", Qty: 1}, Path: path, Status: status, WaitAnswer: a}
		s.Waited(w)
		return w
	}
	at(1)
	wait("POST", "ann", "", 409, auditor.WaitAnswer{}).Reason = "available"
	at(3)
	for i, buyer := range []string{"ann", "bob", "eve"} {
		at(int64(3 + i))
		wait("POST", buyer, placeOf(buyer), 201, auditor.WaitAnswer{State: "waiting", SKU: "7", Quantity: 1})
		at(int64(4 + i))
		wait("GET", buyer, placeOf(buyer), 200, auditor.WaitAnswer{State: "waiting", SKU: "7", Quantity: 1, Place: int64(i + 1)})
	}
	wait("POST", "bob", placeOf("bob"), 200, auditor.WaitAnswer{State: "waiting", SKU: "7", Quantity: 1})
	wait("POST", "kim", "", 409, auditor.WaitAnswer{}).Reason = "list_full"
	both := wait("POST", "bob", "", 409, auditor.WaitAnswer{})
	both.Reason, both.Phone = "two_entries", "eve's"
	wait("GET", "kim", "/waitlist/s~forged", 404, auditor.WaitAnswer{})
	at(7)
	h.Heard(&auditor.Attempt{ID: "1", Sent: s.Tick(), Heard: s.Tick(), Buyer: "kim", Lines: []auditor.Line{{SKU: "7", Qty: 1}}, Status: 409, Reason: "not_your_turn"})
	at(8)
	wait("GET", "ann", placeOf("ann"), 200, auditor.WaitAnswer{State: "offered", SKU: "7", Quantity: 1, Until: time.UnixMilli(90_000)})
	at(8)
	at(9)
	wait("GET", "ann", placeOf("ann"), 200, auditor.WaitAnswer{State: "ended", Why: "lapsed"})
	at(11)
	s.Ordered(&auditor.Order{At: s.Tick(), Attempt: "2", JTI: "r2", Buyer: "bob", Sale: "s", Lines: []auditor.Line{{SKU: "7", Qty: 1}}, Proof: "ord-1", Answer: 201})
	h.Heard(&auditor.Attempt{ID: "2", Sent: s.Tick(), Heard: s.Tick(), Buyer: "bob", Lines: []auditor.Line{{SKU: "7", Qty: 1}}, Status: 201, Reservation: "r2", Proof: "ord-1"})
	at(12)
	wait("GET", "eve", placeOf("eve"), 200, auditor.WaitAnswer{State: "waiting", SKU: "7", Quantity: 1, Place: 1})
	at(12)
	return s
}

func TestTruthOfAWaitlistHolds(t *testing.T) {
	if found := listed().judged(t); len(found) > 0 {
		t.Errorf("a history that keeps every promise breaks %v", found)
	}
}

// An answer from an edge's memory may be a second old, one from Redis may not.
func TestAnswersFromMemoryMayBeOld(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		s := listed()
		s.Waited(&auditor.Wait{
			Sent: s.Tick(), Heard: s.Tick(), Method: method, Sale: "s", Buyer: "ann", Line: auditor.Line{SKU: "7", Qty: 1}, Path: placeOf("ann"), Status: 200,
			WaitAnswer: auditor.WaitAnswer{State: "offered", SKU: "7", Quantity: 1, Until: time.UnixMilli(90_000)},
		})
		if named, may := len(s.judged(t)) > 0, method == "GET"; named == may {
			t.Errorf("%s: named %v", method, named)
		}
	}
}

func TestEveryBrokenPromiseOfAWaitlistIsNamed(t *testing.T) {
	wait := func(s *told, n int) *auditor.Wait { return s.Waits[n] }
	lapses := func(s *told, old, new string) {
		for i := range s.entries {
			s.entries[i].Movements = strings.ReplaceAll(s.entries[i].Movements, old, new)
		}
	}
	for _, test := range []struct {
		name, promise, text string
		doctor              func(s *told)
	}{
		{"an order that overtakes", auditor.InTurn, "for which 1 people wait", func(s *told) {
			s.entries[10].Movements = strings.Replace(s.entries[10].Movements, "accepted", "left", 1)
		}},
		{"an order of more than was offered", auditor.InTurn, "holds 2 units", func(s *told) {
			s.entries[11].Movements = strings.Replace(s.entries[11].Movements, "7 1", "7 2", 1)
		}},
		{"an offer to one who came later", auditor.InTurn, "came later", func(s *told) {
			lapses(s, "w1.5", "w3.7")
			s.entries[7].Movements = strings.ReplaceAll(s.entries[7].Movements, hash("ann"), hash("eve"))
		}},
		{"an offer to one who does not wait", auditor.InTurn, "which does not wait", func(s *told) { lapses(s, "w2.6", "w1.5") }},
		{"an offer that is sold", auditor.InTurn, "as if it were an order", func(s *told) {
			s.entries[8].Movements = "confirmed\tw1.5\theld\t7 1\t" + hash("ann") + "\tshop\t"
		}},
		{"more than the person waits for", auditor.InTurn, "does not wait for", func(s *told) { s.entries[7].Movements = strings.Replace(s.entries[7].Movements, "7 1", "7 2", 1) }},
		{"another one's offer", auditor.InTurn, "were offered to another one", func(s *told) { s.Orders[0].Buyer = "eve"; s.Attempts[1].Buyer = "eve" }},
		{"two entries of a person", auditor.OneEntry, "who has one", func(s *told) { lapses(s, strings.Repeat("2", 22), strings.Repeat("1", 22)) }},
		{"an entry that leaves twice", auditor.OneEntry, "does not wait", func(s *told) { s.add("left\t1\t\t7 1\t" + hash("ann") + "\tleft\t") }},
		{"an entry that Redis has lost", auditor.Balance, "lacks the entry", func(s *told) { s.shard.Waitlist["e|0"] = "" }},
		{"an entry that Redis has too many", auditor.Balance, "do not tell", func(s *told) { s.shard.Waitlist["e|0"] += "\n4 w 7 1 8 " + hash("kim") }},
		{"a count that is wrong", auditor.Balance, "people for cell 7", func(s *told) { s.shard.Waitlist["c|7"] = "2 0" }},
		{"available while none is free", auditor.WaitlistSay, "available", func(s *told) { wait(s, 0).Sent, wait(s, 0).Heard = s.Tick(), s.Tick() }},
		{"list_full while there is room", auditor.WaitlistSay, "list_full", func(s *told) { s.Waitlists[0].Max = 4 }},
		{"an entry that was not made", auditor.WaitlistSay, "201", func(s *told) {
			w := *wait(s, 1)
			w.Sent, w.Heard = s.Tick(), s.Tick()
			s.Waited(&w)
		}},
		{"a wrong place", auditor.WaitlistSay, "Place:3", func(s *told) { wait(s, 4).Place = 3 }},
		{"a wrong number of units", auditor.WaitlistSay, "Quantity:2", func(s *told) { wait(s, 4).Quantity = 2 }},
		{"offered while the person waits", auditor.WaitlistSay, "offered", func(s *told) { last(s).State = "offered" }},
		{"sold out while units may come back", auditor.WaitlistSay, "SoldOut:true", func(s *told) { last(s).SoldOut = true }},
		{"not sold out while none can come back", auditor.WaitlistSay, "SoldOut:false", func(s *told) { lapses(s, "loaded\t1\t\t7 1", "loaded\t1\t\t7 0") }},
		{"paused while offers are made", auditor.WaitlistSay, "Paused:true", func(s *told) { last(s).Paused = true }},
		{"not paused while no offers are made", auditor.WaitlistSay, "Paused:false", func(s *told) {
			s.entries[1].Movements = "offers_paused\t1\t\t\t\top\t"
			s.Apart("s")
		}},
		{"a wrong deadline", auditor.WaitlistSay, "offered", func(s *told) { wait(s, 11).Until = time.UnixMilli(95_000) }},
		{"a deadline that is none", auditor.WaitlistSay, "offered", func(s *told) {
			lapses(s, "\t90000\t", "\t4000000000000\t")
			wait(s, 11).Until = time.UnixMilli(4_000_000_000_000)
		}},
		{"no deadline without a pause", auditor.WaitlistSay, "offered", func(s *told) { wait(s, 11).Until = time.Time{} }},
		{"ended while the person waits", auditor.WaitlistSay, "ended", func(s *told) { last(s).WaitAnswer = auditor.WaitAnswer{State: "ended"} }},
		{"ended for another reason", auditor.WaitlistSay, "Why:accepted", func(s *told) { wait(s, 12).Why = "accepted" }},
		{"ended, told just after the person entered", auditor.WaitlistSay, "ended", func(s *told) { wait(s, 2).WaitAnswer = auditor.WaitAnswer{State: "ended"} }},
		{"left, and the person waits", auditor.WaitlistSay, "DELETE", func(s *told) {
			last(s).Method, last(s).WaitAnswer = "DELETE", auditor.WaitAnswer{State: "ended", Why: "left"}
		}},
		{"a place that is not there", auditor.WaitlistSay, "404", func(s *told) { last(s).Status, last(s).WaitAnswer = 404, auditor.WaitAnswer{} }},
		{"two_entries for one person", auditor.WaitlistSay, "two_entries", func(s *told) {
			w := last(s)
			w.Method, w.Status, w.Reason, w.WaitAnswer = "POST", 409, "two_entries", auditor.WaitAnswer{}
		}},
		{"no place", auditor.WaitlistSay, "201", func(s *told) { wait(s, 1).Path = "" }},
		{"not_your_turn while no person waits", auditor.WaitlistSay, "not_your_turn", func(s *told) {
			s.Attempts[0].Lines[0].SKU = "8"
			s.Load("s", "8", 1)
			s.entries[0].Movements = "loaded\t1\t\t7 1 8 1\t\top\t"
			s.shard.Cells["8"] = "1 1 0 0 0"
		}},
		{"a refusal of a person who has an offer", auditor.InTurn, "while units were held for the buyer", func(s *told) {
			a := *s.Attempts[0]
			a.Buyer, a.Sent, a.Heard = "ann", wait(s, 11).Sent, wait(s, 11).Heard
			s.Heard(&a)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := listed()
			test.doctor(s)
			found := s.judged(t)
			if !slices.ContainsFunc(found, func(v auditor.Violation) bool {
				return v.Promise == test.promise && strings.Contains(v.String(), test.text)
			}) {
				t.Errorf("found %v, want %s: …%s…", found, test.promise, test.text)
			}
		})
	}
}

// last is the last request at the waiting list.
func last(s *told) *auditor.Wait { return s.Waits[len(s.Waits)-1] }

// With a failover, promises that were told again come in another order; what Redis keeps is judged all the same.
func TestAWaitlistThatIsToldAgain(t *testing.T) {
	s := listed()
	s.Waitlists[0].ToldAgain = true
	s.entries[10].Movements = strings.Replace(s.entries[10].Movements, "accepted", "left", 1)
	last(s).WaitAnswer = auditor.WaitAnswer{State: "ended"}
	if found := s.judged(t); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	for name, a := range map[string]auditor.WaitAnswer{
		"an offer":                {State: "offered", SKU: "7", Quantity: 1, Until: time.UnixMilli(90_000)},
		"another deadline":        {State: "offered", SKU: "7", Quantity: 1, Until: time.UnixMilli(95_000)},
		"another number of units": {State: "offered", SKU: "7", Quantity: 2, Until: time.UnixMilli(90_000)},
		"an end":                  {State: "ended", Why: "lapsed"},
		"another end":             {State: "ended", Why: "left"},
	} {
		s.Waits[12].WaitAnswer = a // ann's
		if found := s.judged(t); len(found) > 0 != strings.HasPrefix(name, "another") {
			t.Errorf("%s, told late: found %v", name, found)
		}
	}
	s.Waits[12].WaitAnswer = auditor.WaitAnswer{State: "ended"}
	last(s).Path, last(s).Method, last(s).Status = placeOf("kim"), "POST", 201
	if found := s.judged(t); len(found) == 0 {
		t.Error("an entry that a person was told, and of which no movement tells, is not named")
	}
}
