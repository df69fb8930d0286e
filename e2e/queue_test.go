package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stockgate/stockgate/token"
)

// A process that is killed leaves orders in the line: some were told their place, and the requests
// of others were open. Another process sends each of them once, in order, and at the old places
// buyers hear the shop's answers from it.
func TestQueueOutlivesItsEdge(t *testing.T) {
	t.Parallel()
	s := newSlowShop(t)
	first, second, _ := twoEdges(t, site{shop: serve(t, s), gate: "hold_for 30s\n queue {\n at_once 1\n }"})
	first.sell("flash", `  - {sku: "7", stock: 10}`)
	second.untilSelling("flash")
	lost := first.goBuy(one("a", "7", 1, ""))
	await(t, "the shop has the first order", s.working)
	var places []string
	var open []<-chan result
	for i := range 2 {
		o := one(fmt.Sprint("told-", i), "7", 1, "")
		o.header = http.Header{"Prefer": {"respond-async"}}
		r := first.buy(o)
		if r.status != http.StatusAccepted {
			t.Fatalf("%v", r)
		}
		places = append(places, r.header.Get("Location"))
		open = append(open, first.goBuy(one(fmt.Sprint("open-", i), "7", 1, "")))
		first.untilExpected("flash", int64(7-2*i), int64(3+2*i), 0, 0)
	}
	first.kill()
	for _, done := range append(open, lost) {
		if r := await(t, "a buyer of the killed process", done); r.err == nil {
			t.Errorf("the buyer sees %v", r)
		}
	}
	s.answer <- http.StatusCreated // to the first order, whose connection is gone
	// its slot is free when its hold is in doubt
	for range 4 {
		await(t, "the shop has the next order", s.working)
		s.answer <- http.StatusCreated
	}
	second.untilExpected("flash", 5, 0, 1, 4)
	var buyers, ids []string
	for _, r := range s.requests() {
		buyers = append(buyers, r.header.Get("X-User-Id"))
		ids = append(ids, r.header.Get(token.Header))
	}
	if want := []string{"a", "told-0", "open-0", "told-1", "open-1"}; !slices.Equal(buyers, want) {
		t.Errorf("the shop got the orders of %v, want %v", buyers, want)
	}
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != 5 {
		t.Errorf("the shop got %d tokens for 5 orders", n)
	}
	for _, at := range places {
		eventually(t, "the shop's answer at the place", func() bool {
			status, _, _ := second.get(at)
			return status == http.StatusCreated
		})
	}
}

// A process that was stopped for longer than its turn lasts, and wakes up, does not send what
// another one has sent since.
func TestQueueAndAPausedEdge(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	open := make(chan struct{})
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("X-User-Id"), "busy") {
			<-open
		}
		w.WriteHeader(http.StatusCreated)
	}
	first, second, _ := twoEdges(t, site{shop: serve(t, s), gate: "hold_for 1m\n queue {\n at_once 1\n }"})
	first.sell("flash", `  - {sku: "7", stock: 100}`)
	second.untilSelling("flash")
	busy := second.goBuy(one("busy", "7", 1, ""))
	eventually(t, "the shop has an order", func() bool { return s.orders() == 1 })
	var all []<-chan result
	for i := range 20 {
		all = append(all, first.goBuy(one(fmt.Sprint("b", i), "7", 1, "")))
	}
	second.untilExpected("flash", 79, 21, 0, 0)
	if err := first.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	close(open)
	await(t, "the busy order", busy)
	eventually(t, "the other process sends orders", func() bool { return s.orders() > 2 })
	if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, done := range all { // no buyer hears that nothing was bought
		if r := await(t, "an answer", done); r.status != http.StatusCreated && r.status != http.StatusAccepted {
			t.Errorf("%v", r)
		}
	}
	second.untilExpected("flash", 79, 0, 0, 21)
	seen := map[string]int{}
	for _, r := range s.requests() {
		if seen[r.header.Get("X-User-Id")]++; seen[r.header.Get("X-User-Id")] > 1 {
			t.Errorf("the shop got the order of %s twice", r.header.Get("X-User-Id"))
		}
	}
}
