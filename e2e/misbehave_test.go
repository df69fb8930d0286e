package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stockgate/stockgate/internal/shop"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Every way in which a shop misbehaves, one after the other: what becomes of its
// holds, and whether their units can be sold again.
func TestMisbehavingShop(t *testing.T) {
	const answersCode = `
		@refused {
			status 200
			json code 500
		}
		@sold {
			json code 0
		}
		confirm @sold
		release @refused 4xx`
	tests := []struct {
		name  string
		rule  string // of the shop
		gate  string
		state string // of every hold
		cause string
		sees  int  // what buyers see
		wrote bool // the shop has written the orders
	}{
		{name: "400", rule: "status=400", state: "released", cause: "status_400", sees: 400},
		{name: "402", rule: "status=402", state: "released", cause: "status_402", sees: 402},
		{name: "408", rule: "status=408", state: "in_doubt", cause: "status_408", sees: 408},
		{name: "409", rule: "status=409", state: "in_doubt", cause: "status_409", sees: 409},
		{name: "499", rule: "status=499", state: "in_doubt", cause: "status_499", sees: 499},
		{name: "409 by rule", rule: "status=409", gate: "release 4xx", state: "released", cause: "status_409", sees: 409},
		{name: "500", rule: "status=500", state: "in_doubt", cause: "status_500", sees: 500},
		{name: "503", rule: "status=503", state: "in_doubt", cause: "status_503", sees: 503},
		{name: "503 by rule", rule: "status=503", gate: "release 503 4xx", state: "released", cause: "status_503", sees: 503},
		{name: "500 after the order", rule: "500-after", state: "in_doubt", cause: "status_500", sees: 500, wrote: true},
		{name: "hang", rule: "hang", gate: "forward_timeout 5s", state: "in_doubt", cause: "timeout", sees: 504},
		{name: "order, then hang", rule: "delay-after=10m", gate: "forward_timeout 20s", state: "in_doubt", cause: "timeout", sees: 504, wrote: true},
		{name: "drop before", rule: "drop-before", state: "in_doubt", cause: "connection_lost", sees: 502},
		{name: "drop after", rule: "drop-after", state: "in_doubt", cause: "connection_lost", sees: 502, wrote: true},
		{name: "panic", rule: "panic", state: "in_doubt", cause: "connection_lost", sees: 502},
		{name: "redirect", rule: "redirect", state: "in_doubt", cause: "status_302", sees: 302, wrote: true},
		{name: "redirect is success", rule: "redirect", gate: "confirm 302", state: "confirmed", cause: "status_302", sees: 302, wrote: true},
		{name: "code 500 is read", rule: "code500", gate: answersCode, state: "released", cause: "status_200", sees: 200},
		{name: "code 500 matches no rule", rule: "code500", gate: "@sold {\n json code 0\n}\nconfirm @sold", state: "in_doubt", cause: "status_200", sees: 200},
		{name: "code 500 is not read", rule: "code500", state: "confirmed", cause: "status_200", sees: 200},
	}
	counters, shops, sites := newCounters(t, len(tests)), make([]*shop.Shop, len(tests)), make([]site, len(tests))
	for i, test := range tests {
		s, addr := startShop(t, counters[i].edge)
		shops[i], sites[i] = s, site{shop: addr, gate: roomy + test.gate}
	}
	open(counters, sites)
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			const stock, crowdSize = 5, 20
			s, c := shops[i], counters[i].of(t)
			e := c.edge
			e.sell(c.sale, fmt.Sprintf(`  - {sku: "7", stock: %d}`, stock))

			if err := s.SetMisbehaviour(test.rule); err != nil {
				t.Fatal(err)
			}
			results := crowd(buyers(crowdSize, func(i int) order { return one(fmt.Sprintf("early-%d", i), "7", 1, "") }), noRoom, e)
			reached := 0
			for _, r := range results {
				switch {
				case r.err != nil:
					t.Errorf("no answer: %v", r)
				case r.reason == "": // the shop's answer, or that there was none
					reached++
					if r.status != test.sees {
						t.Errorf("a buyer sees %v, it should be %d", r, test.sees)
					}
					e.mustState(r.reservation, test.state, test.cause)
				case r.reason != "all_held" && r.reason != "sold_out":
					t.Errorf("refused: %v", r)
				}
			}
			if reached < stock || test.state != "released" && reached != stock {
				t.Errorf("%d of %d units were forwarded: %v", reached, stock, tally(results))
			}
			orders, err := s.Orders(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int{true: stock}[test.wrote]; len(orders) != want {
				t.Errorf("the shop has %d orders, it should have %d", len(orders), want)
			}
			switch test.state {
			case "released":
				e.expect(c.sale, stock, 0, 0, 0)
			case "in_doubt":
				e.expect(c.sale, 0, 0, stock, 0)
			case "confirmed":
				e.expect(c.sale, 0, 0, 0, stock)
			}

			// The shop is well again: what was released is sold, what is in doubt is not.
			if err := s.SetMisbehaviour("none"); err != nil {
				t.Fatal(err)
			}
			late := crowd(buyers(crowdSize, func(i int) order {
				return one(fmt.Sprintf("late-%d", i), "7", 1, "")
			}), noRoom, e)
			switch test.state {
			case "released":
				if len(bought(late)) != stock {
					t.Errorf("what was released was not sold: %v", tally(late))
				}
				e.expect(c.sale, 0, 0, 0, stock)
				audit(t, e, c.sale, s, late)
			case "in_doubt":
				if tally(late)["all_held"] != crowdSize {
					t.Errorf("units in doubt may come back, buyers hear: %v", tally(late))
				}
				e.expect(c.sale, 0, 0, stock, 0)
			case "confirmed":
				if tally(late)["sold_out"] != crowdSize {
					t.Errorf("buyers hear: %v", tally(late))
				}
			}
		})
	}
}

// A shop that does all of it at random, and buyers who come back: nothing is
// oversold and every order has its unit.
func TestShopOfManyMoods(t *testing.T) {
	t.Parallel()
	e := newEdge(t, "")
	s, addr := startShop(t, e)
	e.start(site{redis: redisAt(redistest.Start(t).Addr()), shop: addr, gate: roomy + "forward_timeout 10s"})
	e.sell("moody", `  - {sku: "7", stock: 60}`)
	if err := s.SetMisbehaviour("delay=5ms:0.3,delay-after=5ms:0.3,status=400:0.2,500-after:0.1,drop-after:0.1,drop-before:0.05,status=500:0.05,hang:0.02,redirect:0.05,panic:0.03"); err != nil {
		t.Fatal(err)
	}
	tries := 0
	again := func(r result) bool { return r.status == http.StatusBadRequest || noRoom(r) }
	results := crowd(buyers(300, func(i int) order { return one(fmt.Sprintf("buyer-%d", i), "7", 1, "") }), again, e)
	for n := 0; ; n++ { // what the edge gave up while all was held is sold to those who come later
		eventually(t, "no hold is left", func() bool { return e.stock("moody").only(t)[1] == 0 })
		if e.stock("moody").only(t)[0] == 0 || t.Failed() {
			break
		}
		results = append(results, crowd(buyers(20, func(i int) order { return one(fmt.Sprintf("late-%d-%d", n, i), "7", 1, "") }), again, e)...)
	}
	for _, n := range s.Counts().Tokens {
		tries += n
	}
	audit(t, e, "moody", s, results)
	b := e.stock("moody").only(t)
	if b[1] != 0 || b[0]+b[2]+b[3] != 60 {
		t.Errorf("holds are left or units are lost: %v", e.stock("moody"))
	}
	if b[0] != 0 {
		t.Errorf("%d units are unsold, and buyers were refused: %v", b[0], tally(results))
	}
	if b[2] == 0 || b[3] == 0 || int64(tries) <= b[2]+b[3] {
		t.Errorf("the shop was not moody: %v after %d tries", b, tries)
	}
}

// What is in doubt stays in doubt when its deadline has passed, until a person says
// what happened.
func TestDoubtIsKeptUntilResolved(t *testing.T) {
	t.Parallel()
	e := newEdge(t, "")
	s, addr := startShop(t, e)
	e.start(site{shop: addr, gate: soonOver})
	e.sell("flash", `  - {sku: "7", stock: 2}`)
	if err := s.SetMisbehaviour("drop-after"); err != nil {
		t.Fatal(err)
	}
	first, second := e.buy(one("a", "7", 1, "")), e.buy(one("b", "7", 1, ""))
	if status, answer := e.askAdmin("POST", "reservations/"+first.reservation+"/release", "{}", nil); status != http.StatusConflict {
		t.Fatalf("released before the deadline: %d %s", status, answer)
	}
	var r redisRecord
	eventually(t, "the deadline has passed and the operator may release", func() bool {
		r = e.record(first.reservation)
		if r.State != "in_doubt" {
			t.Fatalf("the reservation became %s (%s) on its own", r.State, r.Cause)
		}
		status, _ := e.askAdmin("POST", "reservations/"+first.reservation+"/release", "{}", nil)
		return status == http.StatusOK
	})
	e.mustState(first.reservation, "released", "operator:admin@unix")
	e.mustState(second.reservation, "in_doubt", "connection_lost")
	if holds := e.holds("flash", "in_doubt"); len(holds) != 1 || holds[0].ID != second.reservation {
		t.Fatalf("in doubt: %+v", holds)
	}
	e.must("POST", "reservations/"+second.reservation+"/confirm", "", nil)
	e.expect("flash", 1, 0, 0, 1)
}
