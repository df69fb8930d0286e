package auditor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// The auditor is tested by doctored histories: each is true but for one thing, and the
// auditor must name exactly the promise that it breaks.

const charge = "buyer:sale:units|-|x 1"

// record is a reservation's record with what a limit counts.
func record(state string) string {
	return state + "\t9\t8\t1\t1\tresponse\tx\t7 1\t" + charge + "\t\t1\t\t\t0\t\tmain\t\t\t"
}

// told is a history in which two of two units are sold and a third buyer is refused: the
// entries of its journal, and all else.
type told struct {
	*auditor.History
	entries []auditor.Entry
	shard   *auditor.Shard
}

func truth() *told {
	h := &auditor.History{Max: 1}
	h.Load("s", "7", 2)
	s := &told{History: h, shard: &auditor.Shard{
		Sale:    "s",
		Cells:   map[string]string{"7": "2 0 0 0 2"},
		Limits:  map[string]string{"buyer:sale:units|-|x": "2 0"},
		Records: map[string]string{"r1": record("confirmed"), "r2": record("confirmed")},
	}}
	for i, movements := range []string{
		"loaded\t1\t\t7 2\t\tann\t",
		"applied\t1\t\t\t\tann\t",
		"held\tr1\t\t7 1\tx\t\t" + record("held"),
		"held\tr2\t\t7 1\tx\t\t" + record("held"),
		"confirmed\tr1\theld\t7 1\tx\tstatus_201\t",
		"confirmed\tr2\theld\t7 1\tx\tstatus_201\t",
	} {
		s.entries = append(s.entries, auditor.Entry{ID: fmt.Sprintf("%d-0", i+1), Time: "1", Movements: movements})
	}
	line := []auditor.Line{{SKU: "7", Qty: 1}}
	for i, buyer := range []string{"ann", "bob"} {
		n := fmt.Sprint(i + 1)
		h.Ordered(&auditor.Order{At: h.Tick(), Attempt: n, JTI: "r" + n, Buyer: buyer, Key: "k", Sale: "s", Lines: line, Proof: "ord-" + n, Taken: true, Answer: 201})
		h.Heard(&auditor.Attempt{ID: n, Sent: h.Tick(), Heard: h.Tick(), Buyer: buyer, Key: "k", Lines: line, Status: 201, Reservation: "r" + n, Proof: "ord-" + n})
	}
	h.Heard(&auditor.Attempt{ID: "3", Sent: h.Tick(), Heard: h.Tick(), Buyer: "carl", Lines: line, Status: 409, Reason: "sold_out"})
	h.Heard(&auditor.Attempt{ID: "4", Sent: h.Tick(), Heard: h.Tick(), Browse: true, Status: 200, Proof: "browse"})
	return s
}

func (s *told) judged(t *testing.T) []auditor.Violation {
	t.Helper()
	var err error
	if s.shard.Movements, err = auditor.ParseEntries(s.entries); err != nil {
		t.Fatal(err)
	}
	s.Shards = []*auditor.Shard{s.shard}
	return auditor.Judge(s.History)
}

// add puts one more entry behind the others.
func (s *told) add(movement string) {
	s.entries = append(s.entries, auditor.Entry{ID: fmt.Sprintf("%d-0", len(s.entries)+1), Time: "1", Movements: movement})
}

// answer adds an answer to the first buyer's key.
func (s *told) answer(a auditor.Attempt) {
	a.ID, a.Sent, a.Heard, a.Buyer, a.Key = "5", s.Tick(), s.Tick(), "ann", "k"
	s.Heard(&a)
}

func TestTruthHolds(t *testing.T) {
	s := truth()
	s.answer(auditor.Attempt{Status: 201, Replayed: true, Proof: "ord-1", Reservation: "r1"})
	s.Hoarding = auditor.Hoarding{Fakes: map[string]bool{"carl": true}, Sales: []string{"s"}}
	if found := s.judged(t); len(found) > 0 {
		t.Errorf("a history that keeps every promise breaks %v", found)
	}
}

// queued is truth in which the two orders waited, and a third one was cancelled: at a place each
// buyer was told the truth.
func queued() *told {
	s := truth()
	s.Queues = []auditor.Queue{{Sale: "s", AtOnce: 1, Every: 10 * time.Second, InOrder: true}}
	s.entries = append(s.entries, auditor.Entry{ID: "7-0", Time: "1", Movements: "held\tr3\t\t8 1\tx\t\t" + record("held")},
		auditor.Entry{ID: "8-0", Time: "1", Movements: "released\tr3\theld\t8 1\tx\tcancelled by its buyer\t"})
	s.entries[0].Movements = "loaded\t1\t\t7 2 8 1\t\tann\t"
	s.Load("s", "8", 1)
	s.shard.Cells["8"], s.shard.Records["r3"] = "1 1 0 0 0", record("released")
	began := time.Unix(1e9, 0)
	for i, o := range s.Orders {
		o.Came, o.Left = began.Add(time.Duration(i)*10*time.Second), o.At
	}
	for i, state := range []string{"", "confirmed", "released"} {
		n := fmt.Sprint(i + 1)
		a := &auditor.Attempt{ID: n, Sent: s.Tick(), Heard: s.Tick(), Buyer: []string{"ann", "bob", "eve"}[i], Status: 202, Reservation: "r" + n, Queue: "waiting", Place: "/orders/" + n, RetryAfter: "5"}
		s.Heard(a)
		s.Looked(&auditor.Look{Sent: s.Tick(), Heard: s.Tick(), Of: a, Status: 200, State: "waiting"})
		l := &auditor.Look{Sent: s.Tick(), Heard: s.Tick(), Of: a, Status: 200, State: state}
		if state == "" {
			l.Status, l.Proof = 201, "ord-1"
		}
		s.Looked(l)
	}
	return s
}

func TestTruthOfAQueueHolds(t *testing.T) {
	if found := queued().judged(t); len(found) > 0 {
		t.Errorf("a history that keeps every promise breaks %v", found)
	}
}

// An order that was at the shop waits again only as often as an edge says that it has not sent it.
func TestAnOrderWaitsAgainIfItWasNotSent(t *testing.T) {
	for unsent, times := range []int{0, 1, 2} {
		for state, may := range map[string]bool{"at_shop": unsent >= times, "confirmed": times == 0} {
			s := queued()
			for range unsent {
				s.add("extended\tr2\theld\t7 1\tx\tunsent\t" + record("held"))
			}
			last := *s.Looks[3]
			s.Looks = slices.Delete(s.Looks, 3, 4)
			for range times {
				gone, waits := last, last
				gone.State, waits.State = state, "waiting"
				for _, l := range []*auditor.Look{&gone, &waits} {
					l.Sent, l.Heard = s.Tick(), s.Tick()
					s.Looked(l)
				}
			}
			named := slices.ContainsFunc(s.judged(t), func(v auditor.Violation) bool {
				return v.Promise == auditor.Places && strings.Contains(v.What, "had left the line")
			})
			if named == may {
				t.Errorf("%d times unsent, %d times %s and waiting: named %v", unsent, times, state, named)
			}
		}
	}
}

// An order that waited may be in doubt and never have reached the shop, if Redis was away after its
// edge said that it sends, or a fence waited for its edge in vain. Else it may not.
func TestInDoubtBeforeTheShopSawIt(t *testing.T) {
	for cause, may := range map[string]bool{"deadline": true, "its edge was lost": true, "no answer": false} {
		s := queued()
		s.entries[5].Movements = "in_doubt\tr2\theld\t7 1\tx\t" + cause + "\t"
		s.Orders = s.Orders[:1]
		named := slices.ContainsFunc(s.judged(t), func(v auditor.Violation) bool {
			return v.Promise == auditor.OneState && strings.Contains(v.What, "the shop never saw it")
		})
		if named == may {
			t.Errorf("in doubt, %s: named %v", cause, named)
		}
	}
}

func TestEveryBrokenPromiseOfAQueueIsNamed(t *testing.T) {
	look := func(s *told, n int) *auditor.Look { return s.Looks[2*n+1] }
	for _, test := range []struct {
		name, promise, text string
		doctor              func(s *told)
	}{
		{"orders that come too fast", auditor.Pace, "2 orders of sale s reached the shop in 1s; at most 1 may", func(s *told) {
			s.Queues[0].AtOnce = 0
			s.Orders[1].Came = s.Orders[0].Came.Add(time.Second)
			s.Orders[0].Left, s.Orders[1].Left = 0, 0
		}},
		{"two orders at once", auditor.Pace, "2 orders of sale s are at the shop at once", func(s *told) { s.Orders[0].Left = 99 }},
		{"an order before an earlier one", auditor.InOrder, "which the shop got before", func(s *told) {
			s.Orders[0].At, s.Orders[1].At = s.Orders[1].At, s.Orders[0].At
			s.Orders[0].Left, s.Orders[1].Left = s.Orders[0].At, s.Orders[1].At
		}},
		{"an order that is given up", auditor.NotLost, "given up: waited too long", func(s *told) {
			s.entries[7].Movements = strings.Replace(s.entries[7].Movements, "cancelled by its buyer", "waited too long", 1)
		}},
		{"a place that is not there", auditor.Places, "is not there", func(s *told) { look(s, 0).Status = 404 }},
		{"an order that waits again", auditor.Places, "had left the line", func(s *told) {
			l := *look(s, 0)
			l.Sent, l.Heard, l.State, l.Status, l.Proof = s.Tick(), s.Tick(), "waiting", 200, ""
			s.Looked(&l)
		}},
		{"released, and sold", auditor.Places, "heard released", func(s *told) { look(s, 1).State = "released" }},
		{"confirmed, and not sold", auditor.Places, "heard confirmed", func(s *told) { look(s, 2).State = "confirmed" }},
		{"an answer that the shop has not given", auditor.Places, "not what the shop has answered", func(s *told) { look(s, 0).Status = 422 }},
		{"the answer to another order", auditor.Places, "not what the shop has answered", func(s *told) { look(s, 0).Proof = "ord-2" }},
		{"another one's answer", auditor.Places, "another one's order", func(s *told) { s.Looks[0].Of.Buyer = "eve" }},
		{"not_sent, and sent", auditor.Places, "heard not_sent", func(s *told) {
			s.Orders[1].Attempt = "9"
			s.Heard(&auditor.Attempt{ID: "9", Sent: s.Tick(), Heard: s.Tick(), Buyer: "bob", Status: 503, Reason: "not_sent", RetryAfter: "1"})
		}},
		{"no place", auditor.Places, "told no place", func(s *told) { s.Looks[0].Of.Place = "" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := queued()
			test.doctor(s)
			for _, v := range s.judged(t) {
				if v.Promise == test.promise && strings.Contains(v.What, test.text) {
					return
				}
			}
			t.Errorf("the auditor finds %v, want %s: %s", s.judged(t), test.promise, test.text)
		})
	}
}

func TestEveryBrokenPromiseIsNamed(t *testing.T) {
	for _, test := range []struct {
		name, promise, text string
		doctor              func(s *told)
	}{
		{"an oversold journal", auditor.NoOversell, "more is held, in doubt and sold", func(s *told) {
			s.add("held\tr3\t\t7 1\tx\t\t" + record("held"))
		}},
		{"more orders than stock", auditor.NoOversell, "3 units of cell 7", func(s *told) {
			s.Ordered(&auditor.Order{JTI: "r3", Buyer: "carl", Sale: "s", Lines: []auditor.Line{{SKU: "7", Qty: 1}}, Proof: "ord-3", Taken: true})
		}},
		{"stock that no operator loaded", auditor.NoOversell, "operators loaded 2", func(s *told) {
			s.add("adjusted\tx\t\t7 1\t\t\t")
		}},
		{"an order whose units were given back", auditor.NoOversell, "on sale again", func(s *told) {
			s.entries[4].Movements = "released\tr1\theld\t7 1\tx\tstatus_500\t"
		}},
		{"a unit that is missing in Redis", auditor.Balance, `is "2 0 0 0 1"`, func(s *told) { s.shard.Cells["7"] = "2 0 0 0 1" }},
		{"a cell that is gone", auditor.Balance, `is "0 0 0 0 0"`, func(s *told) { delete(s.shard.Cells, "7") }},
		{"a journal with a gap", auditor.Balance, "gap", func(s *told) { s.entries[5].ID = "7-0" }},
		{"a sale in the movements that the shop does not have", auditor.Balance, "the shop has no such order", func(s *told) { s.Orders = s.Orders[:1] }},
		{"a duplicate order", auditor.AtMostOnce, "two orders of reservation r1", func(s *told) {
			again := *s.Orders[0]
			again.Key = ""
			s.Ordered(&again)
		}},
		{"a key with two orders at the shop", auditor.AtMostOnce, "under the key k", func(s *told) { s.Orders[1].Buyer = "ann" }},
		{"a key with two answers", auditor.AtMostOnce, "one key got two orders", func(s *told) {
			s.answer(auditor.Attempt{Status: 201, Proof: "ord-2"})
		}},
		{"a refusal of an order that the shop took", auditor.AtMostOnce, "took the order of this attempt", func(s *told) {
			s.Attempts[0].Status, s.Attempts[0].Reason = 503, "unavailable"
		}},
		{"a winner that heard sold_out", auditor.WinnerHears, "heard sold_out", func(s *told) {
			s.answer(auditor.Attempt{Status: 409, Reason: "sold_out"})
		}},
		{"a winner that heard paused", auditor.WinnerHears, "heard paused", func(s *told) {
			s.answer(auditor.Attempt{Status: 409, Reason: "paused"})
		}},
		{"a forged token", auditor.ValidToken, "signature", func(s *told) { s.Orders[0].Problem = "the token's signature is wrong" }},
		{"an order of which a part came", auditor.ValidToken, "in part", func(s *told) { s.CutOff(&auditor.Order{Attempt: "1"}) }},
		{"an empty 200", auditor.FromTheShop, "no order of that name", func(s *told) {
			s.Heard(&auditor.Attempt{ID: "6", Sent: s.Tick(), Heard: s.Tick(), Buyer: "dora", Status: 200})
		}},
		{"the order of another buyer", auditor.FromTheShop, "the order of another one", func(s *told) { s.Attempts[0].Proof = "ord-2" }},
		{"a 503 that says nothing of waiting", auditor.FailClosed, "without Retry-After", func(s *told) {
			s.Attempts[2].Status, s.Attempts[2].Reason = 503, "unavailable"
		}},
		{"another route that fails", auditor.FailClosed, "another route", func(s *told) { s.Attempts[3].Status = 503 }},
		{"a reservation in two states", auditor.OneState, `is "held" in its record`, func(s *told) { s.shard.Records["r1"] = record("held") }},
		{"an arrow that does not exist", auditor.OneState, `from "confirmed" to "expired"`, func(s *told) {
			s.add("expired\tr1\tconfirmed\t7 1\tx\tdeadline\t")
		}},
		{"a movement that contradicts those before", auditor.OneState, `the movements before say "confirmed"`, func(s *told) {
			s.add("released\tr1\theld\t7 1\tx\t\t")
		}},
		{"a list of holds that is wrong", auditor.OneState, "lists 1 reservations as held", func(s *told) { s.shard.Deadlines = []string{"r1"} }},
		{"in doubt, and never sent", auditor.OneState, "the shop never saw it", func(s *told) {
			s.entries[5].Movements = "in_doubt\tr2\theld\t7 1\tx\tdeadline\t"
			s.Orders = s.Orders[:1]
		}},
		{"a limit that was charged by a refusal", auditor.ChargesNone, `counts "3 0"`, func(s *told) { s.shard.Limits["buyer:sale:units|-|x"] = "3 0" }},
		{"a limit that was forgotten", auditor.ChargesNone, "has no counter", func(s *told) { clear(s.shard.Limits) }},
		{"more than the limit", auditor.ChargesNone, "the limit is 1", func(s *told) { s.Orders[0].Lines = []auditor.Line{{SKU: "7", Qty: 2}} }},
		{"a limit that cannot be reached", auditor.ChargesNone, "heard limit_reached", func(s *told) {
			s.Attempts[2].Reason = "limit_reached"
		}},
		{"a sale that hoarders keep from honest buyers", auditor.HalfForHonest, "0 of 2 units", func(s *told) {
			s.Hoarding.Sales = []string{"s"}
			s.Orders[0].Taken, s.Orders[1].Taken = false, false
		}},
		{"hoarders who keep nothing from honest buyers", auditor.Control, "no bound on unpaid holds", func(s *told) {
			s.Hoarding.Controls = []string{"s"}
		}},
		{"a hoarder who pays", auditor.Control, "never pays", func(s *told) { s.Hoarding.Fakes = map[string]bool{"ann": true} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := truth()
			test.doctor(s)
			found := s.judged(t)
			for _, v := range found {
				if v.Promise == test.promise && strings.Contains(v.String(), test.text) {
					return
				}
			}
			t.Errorf("found %v, want %s: …%s…", found, test.promise, test.text)
		})
	}
}

// While the link to the shop is cut its other routes answer 502; at any other time they must not.
func TestOtherRoutesWithoutTheShop(t *testing.T) {
	for _, away := range []bool{false, true} {
		s := truth()
		s.ShopAway = away
		s.Attempts[3].Status, s.Attempts[3].Proof = 502, ""
		if found := s.judged(t); len(found) == 0 != away {
			t.Errorf("with the shop away %v, a 502 breaks %v", away, found)
		}
		s.Attempts[3].Status = 503
		if found := s.judged(t); len(found) == 0 {
			t.Errorf("with the shop away %v, a 503 of another route breaks nothing", away)
		}
	}
}
