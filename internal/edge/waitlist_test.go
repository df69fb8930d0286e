package edge_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/waitlist"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// crowded is a sale with a waiting list whose units are held, on some edges that run.
type crowded struct {
	*testing.T
	edges []*edge.Edge
}

func newCrowded(t *testing.T, b redistest.Backend, edges int, stock int64, limits ...sale.Limit) *crowded {
	file := stocktest.OpenSale("s", stock, limits...)
	file.Waitlist = &sale.Waitlist{Offer: sale.Span(time.Hour), Max: 1000}
	c := &crowded{T: t}
	for range edges {
		c.edges = append(c.edges, stocktest.Ready(t, stocktest.Options(b)))
	}
	stocktest.Load(t, c.edges[0].Store, file)
	for _, e := range c.edges {
		stocktest.Look(t, e)
		e.Start()
		stocktest.Eventually(t, "an edge that follows", func() bool {
			l, ok := e.Catalogue().Sale("s")
			return ok && l.IsFollowed()
		})
	}
	return c
}

func (c *crowded) listing(i int) *edge.Listing {
	l, _ := c.edges[i].Catalogue().Sale("s")
	return l
}

func attempt(buyer string, units int64) *sale.Attempt {
	return &sale.Attempt{Sale: "s", Buyer: buyer, Lines: []sale.Line{{SKU: "a", Quantity: units}}}
}

// enter puts a buyer on the list.
func (c *crowded) enter(i int, buyer string, units int64) (waitlist.Entered, *sale.Refusal) {
	c.Helper()
	a := attempt(buyer, units)
	entered, no, err := c.edges[i].Enter(stocktest.Soon(c.T), c.listing(i), a, a.Lines)
	if err != nil {
		c.Fatal(err)
	}
	return entered, no
}

func (c *crowded) place(i int, buyer string) (waitlist.EntryPlace, bool) {
	p, found, _ := c.edges[i].Waiting(c.listing(i), c.edges[i].BuyerHash(attempt(buyer, 1)))
	return p, found
}

// offered waits until every edge knows of an offer to a buyer.
func (c *crowded) offered(buyer string) {
	c.Helper()
	for i := range c.edges {
		stocktest.Eventually(c.T, "an offer to "+buyer, func() bool {
			p, found := c.place(i, buyer)
			return found && p.Entry.Offered
		})
	}
}

func (c *crowded) order(i int, id, buyer string, units int64) (reservation.Hold, *sale.Refusal) {
	c.Helper()
	h, no, err := stocktest.Hold(stocktest.Soon(c.T), c.edges[i], id, buyer, units)
	if err != nil {
		c.Fatal(err)
	}
	return h, no
}

func (c *crowded) cell() record.Cell { return stocktest.CellA(c.T, c.edges[0].Store) }

// Units that come back are held for the person whose turn it is: no other person gets them, on any edge.
func TestWhatComesBackIsOffered(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		c := newCrowded(t, b, 2, 2)
		if _, no := c.enter(0, "Ben", 1); no == nil || no.Reason != sale.UnitsFree {
			t.Fatalf("while units are free: %+v", no)
		}
		stocktest.MustHold(t, c.edges[0], "r1", "Ann", 2)
		first, no := c.enter(0, "Ben", 1)
		if no != nil || !first.New {
			t.Fatalf("%+v, %+v", first, no)
		}
		if again, no := c.enter(1, "Ben", 2); no != nil || again.New || again.Number != first.Number || again.Quantity != 1 {
			t.Errorf("again: %+v, %+v", again, no)
		}
		if _, no := c.enter(1, "Cid", 2); no != nil {
			t.Fatal(no)
		}
		for i, want := range []int{1, 2} {
			stocktest.Eventually(t, "a place", func() bool {
				p, found := c.place(1, []string{"Ben", "Cid"}[i])
				return found && p.Place == want
			})
		}
		if _, no := c.order(1, "r2", "Dan", 1); no == nil || no.Reason != sale.NotYourTurn && no.Reason != sale.AllHeld {
			t.Fatalf("a stranger: %+v", no)
		}
		if _, err := c.edges[0].Store.Release(stocktest.Soon(t), "s", "r1", reservation.SourceShop, "test"); err != nil {
			t.Fatal(err)
		}
		c.offered("Ben")
		c.offered("Cid")
		p, _ := c.place(0, "Cid")
		if p.Entry.Quantity != 1 {
			t.Errorf("Cid is offered %d, one is left", p.Entry.Quantity)
		}
		for i := range 20 { // the units are held, and no person waits: all that others can hear is that they are
			if _, no := c.order(i%2, "r3", "Dan", 1); no == nil || no.Reason != sale.AllHeld {
				t.Fatalf("a stranger: %+v", no)
			}
		}
		if h, no := c.order(1, "r4", "Ben", 1); no != nil || h.State != record.Held {
			t.Errorf("Ben: %+v", no)
		}
		if _, no := c.order(0, "r5", "Cid", 2); no == nil {
			t.Error("Cid got more than the offer")
		}
		if h, no := c.order(0, "r6", "Cid", 1); no != nil || h.State != record.Held {
			t.Errorf("Cid: %+v", no)
		}
		if cell := c.cell(); cell.Available != 0 || cell.Held != 2 || !cell.Balanced() {
			t.Errorf("the cell is %+v", cell)
		}
		for _, buyer := range []string{"Ben", "Cid"} {
			stocktest.Eventually(t, "the end of the entry", func() bool {
				p, found := c.place(0, buyer)
				return found && p.Ended == "accepted"
			})
		}
	})
}

// A person cannot wait for more than a limit lets one person have.
func TestWaitsForNoMoreThanALimit(t *testing.T) {
	c := newCrowded(t, redistest.Start(t), 1, 1, stocktest.PerBuyer(2))
	stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
	if _, no := c.enter(0, "Ben", 3); no == nil || no.Reason != sale.LimitReached {
		t.Errorf("three: %+v", no)
	}
	if _, no := c.enter(0, "Ben", 2); no != nil {
		t.Errorf("two: %+v", no)
	}
}

// A check that does not read who buys stops no person with an offer.
func TestWhoBuysIsNotKnown(t *testing.T) {
	c := newCrowded(t, redistest.Start(t), 1, 1)
	stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
	c.enter(0, "Ben", 1)
	stocktest.Eventually(t, "a refusal of strangers", func() bool {
		a := attempt("Dan", 1)
		no := c.edges[0].Recall(c.listing(0), a, a.Lines)
		return no != nil && no.Reason == sale.NotYourTurn
	})
	a := attempt("", 1)
	if no := c.edges[0].Recall(c.listing(0), a, a.Lines); no != nil {
		t.Errorf("refused from memory: %+v", no)
	}
}

// Without a waiting list in the file all people are taken off it, and the units are for any buyer.
func TestWaitlistLeavesTheFile(t *testing.T) {
	c := newCrowded(t, redistest.Start(t), 2, 1)
	stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
	for i := range 250 { // more than one call takes off
		if _, no := c.enter(i%2, "Ben "+strconv.Itoa(i), 1); no != nil {
			t.Fatal(no)
		}
	}
	stocktest.Apply(t, c.edges[0], stocktest.OpenSale("s", 1))
	if _, err := c.edges[0].Store.Release(stocktest.Soon(t), "s", "r1", reservation.SourceShop, "test"); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "an order of a stranger", func() bool {
		_, no := c.order(0, "r2", "Dan", 1)
		return no == nil
	})
}

// A person who has entered at one edge leaves at another one, and is not told to be off the list, before that edge has read
// of the entry.
func TestAnEdgeThatHasNotReadOfAnEntry(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		c := newCrowded(t, b, 1, 1)
		stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
		other := stocktest.Ready(t, stocktest.Options(b)) // follows no journal
		stocktest.Look(t, other)
		l, _ := other.Catalogue().Sale("s")
		ben := c.edges[0].BuyerHash(attempt("Ben", 1))
		listed := func(want bool) {
			t.Helper()
			if listed, err := other.IsOnList(stocktest.Soon(t), l, ben); err != nil || listed != want {
				t.Errorf("Ben is on the list: %v, %v", listed, err)
			}
		}
		listed(false)
		if _, no := c.enter(0, "Ben", 1); no != nil {
			t.Fatal(no)
		}
		listed(true)
		for _, want := range []bool{true, false} {
			if was, err := other.Withdraw(stocktest.Soon(t), l, ben); err != nil || was != want {
				t.Errorf("Ben leaves: %v, %v", was, err)
			}
		}
		listed(false)
	})
}

// While an operator has paused offers, none is made by any edge, and no other person gets the units. Open ones are accepted.
func TestPausedOffers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		c := newCrowded(t, b, 2, 2)
		stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
		stocktest.MustHold(t, c.edges[0], "r2", "Ann", 1)
		for _, buyer := range []string{"Ben", "Cid"} {
			if _, no := c.enter(0, buyer, 1); no != nil {
				t.Fatal(no)
			}
		}
		release := func(id string) {
			if _, err := c.edges[0].Store.Release(stocktest.Soon(t), "s", id, reservation.SourceShop, "test"); err != nil {
				t.Fatal(err)
			}
		}
		release("r1")
		c.offered("Ben")
		for i, want := range []bool{true, false} { // the second time nothing changes
			if changed, err := c.edges[i].PauseOffers(stocktest.Soon(t), "s", true, "ann@unix"); err != nil || changed != want {
				t.Fatalf("%t, %v", changed, err)
			}
		}
		release("r2")
		if _, no := c.order(1, "r3", "Dan", 1); no == nil || no.Reason != sale.NotYourTurn && no.Reason != sale.AllHeld {
			t.Errorf("a stranger: %+v", no)
		}
		if h, no := c.order(1, "r4", "Ben", 1); no != nil || h.State != record.Held {
			t.Errorf("Ben: %+v", no)
		}
		for i := range c.edges {
			stocktest.Eventually(t, "an edge that follows", func() bool {
				p, found := c.place(i, "Cid")
				_, ended := c.place(i, "Ben")
				return found && p.Place == 1 && ended
			})
		}
		if changed, err := c.edges[1].PauseOffers(stocktest.Soon(t), "s", false, "bob@unix"); err != nil || !changed {
			t.Fatalf("%t, %v", changed, err)
		}
		c.offered("Cid")
		movements, err := c.edges[0].Store.Journal().Movements(stocktest.Soon(t), "s", 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for i := range movements {
			if m := &movements[i]; m.OfOffer() && m.Kind == "held" {
				told = append(told, "offer")
			} else if m.Kind == "offers_paused" || m.Kind == "offers_resumed" {
				told = append(told, m.Kind+" "+m.Cause)
			}
		}
		if got := strings.Join(told, ", "); got != "offer, offers_paused ann@unix, offers_resumed bob@unix, offer" {
			t.Errorf("the journal tells: %s", got)
		}
		l, _ := c.edges[1].Catalogue().Sale("s")
		state, err := c.edges[1].List(stocktest.Soon(t), l)
		if want := (waitlist.ListCounts{Entered: 2, People: 1, Offers: 2, Accepted: 1}); err != nil || state.ListCounts != want {
			t.Errorf("%+v, %v, want %+v", state, err, want)
		}
	})
}
