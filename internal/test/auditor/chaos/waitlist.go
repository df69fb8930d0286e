package chaos

import (
	"fmt"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

// mostPeople is how many may wait in a sale; a nemesis allows fewer for a while.
const mostPeople, fewPeople = 10_000, 8

// waitlistOptions are the options of a sale in which people wait.
const waitlistOptions = "waitlist: {offer: 30s, max: 10000}\n"

// listOf is what holds for people who wait in a sale.
func (r *Run) listOf(sale string) auditor.Waitlist {
	return auditor.Waitlist{Sale: sale, Max: fewPeople, ToldAgain: r.Class != Kept}
}

// waiters are the people who have been told a place, and those who have heard no answer and may have one.
type waiters struct {
	mu  sync.Mutex
	all []*crowd.Person
}

func (w *waiters) add(p *crowd.Person) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, p)
}

// people order the scarce items of both sales, and wait for them where they get none. Units come back, because the shop
// refuses orders and an operator adds stock.
func (r *Run) people(stop <-chan struct{}) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, sale := range r.sales {
		all.Go(func() { r.addsStock(sale, stop) })
		if r.Class == Kept { // a journal that another server goes on with has other numbers
			all.Go(func() { r.marks(sale, stop) })
		}
	}
	crowd.Rush(0, 3*together, stop, func(i int) { r.person(i, stop) })
}

func (r *Run) marks(sale string, stop <-chan struct{}) {
	for read := rig.LastMovement(r.store.home(sale).Addr(), sale); rests(5*time.Millisecond, stop); {
		r.h.Mark(sale, read)
	}
}

// rests waits; false: it is time to stop.
func rests(d time.Duration, stop <-chan struct{}) bool {
	select {
	case <-time.After(d):
		return true
	case <-stop:
		return false
	}
}

// addsStock adds a unit of the scarce item again and again.
func (r *Run) addsStock(sale string, stop <-chan struct{}) {
	sku := items(sale)[1]
	for i := 0; rests(200*time.Millisecond, stop); i++ {
		r.h.Load(sale, sku, 1)
		r.edges[i%len(r.edges)].Admin("POST", "sales/"+sale+"/items/"+sku+"/stock", fmt.Sprintf(`{"id":"add-%d","delta":1}`, i))
	}
}

// person orders, and waits where that is refused: until there is an offer, or patience ends.
func (r *Run) person(i int, stop <-chan struct{}) {
	sale := r.sales[r.chance(len(r.sales), "list", i)]
	p := &crowd.Person{Sale: sale, Buyer: fmt.Sprintf("person%d", i), Line: auditor.Line{SKU: items(sale)[1], Qty: 1}}
	door := func(n int) int { return r.chance(len(r.doors), "way", i, n) }
	buy := func(n int) *auditor.Attempt {
		return r.buy(door(n), crowd.Wish{Buyer: p.Buyer, Key: "key-of-" + p.Buyer, Lines: []auditor.Line{p.Line}})
	}
	rests(time.Duration(20+r.chance(60, "comes", i))*time.Millisecond, stop)
	switch got := buy(0); got.Reason {
	case "all_held", "sold_out", "not_your_turn":
	default:
		return
	}
	for n := 1; n < 5 && p.Place == ""; n++ { // without an answer it is not known whether there is an entry: the same again
		if w := r.crowd.Enter(r.doors[door(n)], p); w.Heard > 0 && w.Status < 500 && p.Place == "" {
			return
		}
		rests(100*time.Millisecond, stop)
	}
	r.waiting.add(p)
	if p.Place == "" {
		return
	}
	for n, most := 5, 10+r.chance(50, "patience", i); n < most; n++ {
		w := r.crowd.Stands(r.doors[door(n)], p)
		switch {
		case w.State == "ended":
			return
		case w.State == "offered" && r.chance(8, "comes", i) > 0:
			buy(n)
		}
		if !rests(time.Duration(100+r.chance(200, "asks", i, n))*time.Millisecond, stop) {
			return
		}
	}
	if r.chance(4, "says", i) > 0 {
		r.crowd.Withdraw(r.doors[door(0)], p)
	}
}

// leaveLists takes all people off the lists: what comes back is for others.
func (r *Run) leaveLists() {
	insists := func(what string, ask func(*crowd.Door, *crowd.Person) *auditor.Wait, i int) {
		r.until(what, func() bool {
			w := ask(r.doors[i%len(r.doors)], r.waiting.all[i])
			return w.Heard > 0 && w.Status < 500
		})
	}
	crowd.Rush(len(r.waiting.all), together, nil, func(i int) {
		if p := r.waiting.all[i]; p.Place == "" {
			insists("a person hears of the entry, or that there is none", r.crowd.Enter, i)
			if p.Place == "" {
				return
			}
		}
		insists("a person has left", r.crowd.Withdraw, i)
	})
	for _, sale := range r.sales {
		r.until("the list of "+sale+" is empty", func() bool {
			live, err := r.home(sale).Do("HGET", rig.Key(sale, "waitlist"), "live")
			return err == nil && (live == nil || live == "0")
		})
	}
}

// triesOfApply is after how many files that were not applied an operator looks, about every five seconds.
const triesOfApply = 10

// applyList lets the sale file say something else about the list for a while: other times, fewer people, none.
func (r *Run) applyList(s Step) {
	sale, e := oneOf(s, r.sales), oneOf(s, r.edges)
	other := []string{"waitlist: {offer: 10m}\n", "waitlist: {offer: 31s, max: 8}\n", "", "waitlist: {}\n"}[s.Amount%4]
	for _, text := range []string{other, waitlistOptions} {
		tries := 0
		r.insist("a sale file is applied", func() error {
			if tries++; tries%triesOfApply == 0 {
				r.operate(e, sale)
			}
			_, err := e.Command(rig.SaleFile(sale, r.stockOf(sale), "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z", perBuyer+text), "sale", "apply", "-")
			return err
		})
		if text == other {
			time.Sleep(s.For)
		}
	}
}

// pauseSale pauses a sale for a while.
func (r *Run) pauseSale(s Step) {
	sale := oneOf(s, r.sales)
	for i, act := range []string{"pause", "open"} {
		r.insist("a sale is "+act+"d", func() error {
			_, err := r.edges[(s.Target+i)%len(r.edges)].Command("", "sale", act, sale)
			return err
		})
		if i == 0 {
			time.Sleep(s.For)
		}
	}
}

// reloadEdges gives both edges another configuration for a while.
func (r *Run) reloadEdges(s Step) {
	for _, reads := range []string{[]string{"identity phone {header.X-Phone}", "rate {client_ip} 100000 1s"}[s.Amount%2], ""} {
		for i, e := range r.edges {
			site := r.sites[i]
			site.Reads = reads
			r.insist("an edge is reloaded", func() error {
				if !e.Alive() { // it comes with the first configuration
					return nil
				}
				return e.Reload(site)
			})
		}
		if reads != "" {
			time.Sleep(s.For)
		}
	}
}
