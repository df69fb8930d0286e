package edge_test

import (
	"errors"
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

// changes applies another file to the sale of a crowd.
func (c *crowded) changes(change func(file *sale.Sale)) {
	c.Helper()
	file := *c.listing(0).Sale
	if file.Waitlist != nil {
		list := *file.Waitlist
		file.Waitlist = &list
	}
	file.Items, file.Limits = append([]sale.Item(nil), file.Items...), append([]sale.Limit(nil), file.Limits...)
	change(&file)
	if _, err := c.edges[0].ApplyUnlessLost(stocktest.Soon(c.T), &file, reservation.ApplyOptions{By: "test", Force: true}); err != nil {
		c.Fatal(err)
	}
	for _, e := range c.edges {
		if err := e.Refresh(stocktest.Soon(c.T)); err != nil {
			c.Fatal(err)
		}
	}
}

// release gives the units of a hold back.
func (c *crowded) release(id string) {
	c.Helper()
	if _, err := c.edges[0].Store.Release(stocktest.Soon(c.T), "s", id, reservation.SourceShop, "test"); err != nil {
		c.Fatal(err)
	}
}

// enters is enter for any attempt.
func (c *crowded) enters(i int, a *sale.Attempt) (waitlist.Entered, *sale.Refusal, error) {
	c.Helper()
	a.Sale = "s"
	lines, no := c.listing(i).Sale.Resolve(a)
	if no != nil {
		return waitlist.Entered{}, no, nil
	}
	return c.edges[i].Enter(stocktest.Soon(c.T), c.listing(i), a, lines)
}

func (c *crowded) ended(buyer, why string) {
	c.Helper()
	for i := range c.edges {
		stocktest.Eventually(c.T, "that "+buyer+" is told "+why, func() bool {
			p, found := c.place(i, buyer)
			return found && p.Ended == why
		})
	}
}

func (c *crowded) waits(buyer string, place int) {
	c.Helper()
	for i := range c.edges {
		stocktest.Eventually(c.T, "a place of "+buyer, func() bool {
			p, found := c.place(i, buyer)
			return found && p.Place == place
		})
	}
}

// People who wait for an item leave as soon as a file without it is applied, and hear why. Others stay.
func TestItemOfPeopleWhoWaitIsRemoved(t *testing.T) {
	c := newCrowded(t, redistest.Start(t), 2, 1)
	c.changes(func(file *sale.Sale) { file.Items = append(file.Items, sale.Item{SKU: "c"}) })
	stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
	for i, buyer := range []string{"Ben", "Cid", "Dan"} {
		sku := map[bool]string{true: "c", false: "a"}[buyer == "Cid"]
		if _, no, err := c.enters(i%2, &sale.Attempt{Buyer: buyer, Lines: []sale.Line{{SKU: sku, Quantity: 1}}}); no != nil || err != nil {
			t.Fatalf("%s: %+v, %v", buyer, no, err)
		}
	}
	c.changes(func(file *sale.Sale) { file.Items = file.Items[:len(file.Items)-1] })
	c.ended("Cid", "unknown_item")
	c.waits("Ben", 1)
	c.waits("Dan", 2)
	c.changes(func(file *sale.Sale) { file.Items = append(file.Items, sale.Item{SKU: "c", Stock: 1}) })
	if _, no, err := c.enters(0, &sale.Attempt{Buyer: "Cid", Lines: []sale.Line{{SKU: "c", Quantity: 1}}}); err != nil || no == nil || no.Reason != sale.UnitsFree {
		t.Errorf("the item is back: %+v, %v", no, err)
	}
}

// A limit that names another identity while people wait counts their orders, and no person loses a place by it. One that
// names an identity no more joins no entries by it from then on.
func TestIdentitiesChangeWhilePeopleWait(t *testing.T) {
	c := newCrowded(t, redistest.Start(t), 2, 1)
	stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
	c.enter(0, "Ben", 1)
	c.changes(func(file *sale.Sale) {
		file.Limits = append(file.Limits, sale.Limit{Per: "phone", Every: "sale", Max: 1, Count: "units"})
	})
	by := func(buyer, phone string) *sale.Attempt {
		return &sale.Attempt{Sale: "s", Buyer: buyer, Identities: map[string]string{"phone": phone}, Lines: []sale.Line{{SKU: "a", Quantity: 1}}}
	}
	if _, no, err := c.enters(1, &sale.Attempt{Buyer: "Eve", Lines: []sale.Line{{SKU: "a", Quantity: 1}}}); err != nil || no == nil || no.Reason != sale.Malformed {
		t.Errorf("without a phone: %+v, %v", no, err)
	}
	if _, no, err := c.enters(1, by("Cid", "+491")); no != nil || err != nil {
		t.Fatalf("%+v, %v", no, err)
	}
	if twice, no, err := c.enters(0, by("Cid's other name", "+491")); no != nil || err != nil || twice.New {
		t.Errorf("the same phone: %+v, %+v, %v", twice, no, err)
	}
	c.release("r1")
	c.offered("Ben") // whose entry has no phone
	if _, no, err := c.edges[1].Hold(stocktest.Soon(t), "r2", c.listing(1), by("Ben", "+492"), stocktest.UnitsOfA(1), stocktest.HoldOptions); no != nil || err != nil {
		t.Fatalf("%+v, %v", no, err)
	}
	c.ended("Ben", "accepted")
	c.changes(func(file *sale.Sale) { file.Limits = nil })
	c.waits("Cid", 1)
	if other, no, err := c.enters(0, by("Dan", "+491")); no != nil || err != nil || !other.New {
		t.Errorf("no limit names the phone: %+v, %+v, %v", other, no, err)
	}
	c.waits("Dan", 2)
}

// Offers keep the deadline with which they were made, and people stay on a list that has more than it may.
func TestWaitlistOptionsChangeWhilePeopleWait(t *testing.T) {
	c := newCrowded(t, redistest.Start(t), 2, 2)
	stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
	stocktest.MustHold(t, c.edges[0], "r2", "Ann", 1)
	for _, buyer := range []string{"Ben", "Cid", "Dan"} {
		if _, no := c.enter(0, buyer, 1); no != nil {
			t.Fatalf("%+v", no)
		}
	}
	c.release("r1")
	c.offered("Ben")
	first, _ := c.place(0, "Ben")
	c.changes(func(file *sale.Sale) { file.Waitlist.Offer, file.Waitlist.Max = sale.Span(time.Minute), 1 })
	if _, no := c.enter(1, "Eve", 1); no == nil || no.Reason != sale.ListFull {
		t.Errorf("beyond max: %+v", no)
	}
	if again, no := c.enter(1, "Dan", 1); no != nil || again.New {
		t.Errorf("a person who waits: %+v, %+v", again, no)
	}
	c.release("r2")
	c.offered("Cid")
	second, _ := c.place(0, "Cid")
	if is, _ := c.place(0, "Ben"); !is.Entry.Until.Equal(first.Entry.Until) {
		t.Errorf("the offer lasted until %v, and lasts until %v", first.Entry.Until, is.Entry.Until)
	}
	if left := first.Entry.Until.Sub(second.Entry.Until); left < 30*time.Minute {
		t.Errorf("the second offer ends %v before the first", left)
	}
	c.waits("Dan", 1)
}

// Edges know which units may come back, also after a time in which the sale had no list.
func TestListIsTakenOutForAWhile(t *testing.T) {
	c := newCrowded(t, redistest.Start(t), 2, 1)
	stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
	c.enter(0, "Ben", 1)
	c.waits("Ben", 1)
	var list *sale.Waitlist
	c.changes(func(file *sale.Sale) { list, file.Waitlist = file.Waitlist, nil })
	c.ended("Ben", waitlist.NoWaitlist)
	read := func(i int) int64 {
		seq, _ := c.edges[i].Followed("s")
		return seq
	}
	before := max(read(0), read(1))
	c.settles(func() error {
		_, err := c.edges[0].Store.Adjust(stocktest.Soon(t), "s", "more", "a", 1, "test")
		return err
	})
	for i := range c.edges {
		stocktest.Eventually(t, "that an edge has read of the unit", func() bool { return read(i) > before })
	}
	stocktest.MustHold(t, c.edges[0], "r2", "Art", 1)
	c.changes(func(file *sale.Sale) { file.Waitlist = list })
	if _, no := c.enter(1, "Cid", 1); no != nil {
		t.Fatal(no)
	}
	c.settles(func() error {
		_, err := c.edges[0].Store.Confirm(stocktest.Soon(t), "s", "r1", reservation.SourceShop, "test")
		return err
	})
	for i := range c.edges {
		stocktest.Eventually(t, "that Cid is told that one is held", func() bool { // it is no news: one was left before, too
			p, found := c.place(i, "Cid")
			return found && p.Left == 1 && !p.SoldOut
		})
	}
}

// An offer is not made of fewer units than an order must have.
func TestNoOfferBelowTheLeastOrder(t *testing.T) {
	c := newCrowded(t, redistest.Start(t), 1, 3)
	c.changes(func(file *sale.Sale) { file.Items[0].Min = 2 })
	stocktest.MustHold(t, c.edges[0], "r1", "Ann", 3)
	c.enter(0, "Ben", 3)
	if _, err := c.edges[0].Store.Adjust(stocktest.Soon(t), "s", "more", "a", 1, "test"); err != nil {
		t.Fatal(err)
	}
	c.changes(func(file *sale.Sale) { file.Items[0].IDs = []string{"a1"} }) // one unit is too few
	c.waits("Ben", 1)
	if _, err := c.edges[0].Store.Adjust(stocktest.Soon(t), "s", "another", "a", 1, "test"); err != nil {
		t.Fatal(err)
	}
	c.offered("Ben")
	if p, _ := c.place(0, "Ben"); p.Entry.Quantity != 2 {
		t.Errorf("%d units are offered", p.Entry.Quantity)
	}
}

// Each region of an item has a list of its own.
func TestRegionsHaveListsOfTheirOwn(t *testing.T) {
	c := newCrowded(t, redistest.Start(t), 2, 1)
	in := func(buyer, region string, units int64) *sale.Attempt {
		return &sale.Attempt{Sale: "s", Buyer: buyer, Region: region, Lines: []sale.Line{{SKU: "b", Quantity: units}}}
	}
	hold := func(id, buyer, region string, units int64) *sale.Refusal {
		a := in(buyer, region, units)
		lines, no := c.listing(0).Sale.Resolve(a)
		if no == nil {
			_, no, _ = c.edges[0].Hold(stocktest.Soon(t), id, c.listing(0), a, lines, stocktest.HoldOptions)
		}
		return no
	}
	for id, region := range map[string]string{"n": "north", "s": "south"} {
		if no := hold(id, "Ann", region, 5); no != nil {
			t.Fatalf("%+v", no)
		}
	}
	if _, no, err := c.enters(0, in("Ben", "", 1)); err != nil || no == nil {
		t.Errorf("without a region: %+v, %v", no, err)
	}
	for i, region := range []string{"north", "south"} {
		if e, no, err := c.enters(i, in("of the "+region, region, 1)); no != nil || err != nil || e.Cell != "b@"+region {
			t.Fatalf("%+v, %+v, %v", e, no, err)
		}
	}
	c.waits("of the north", 1)
	c.waits("of the south", 1)
	c.release("s")
	c.offered("of the south")
	c.waits("of the north", 1)
	if no := hold("r1", "Dan", "south", 1); no != nil { // only one of five is offered, and no other person waits there
		t.Errorf("in the south: %+v", no)
	}
	if no := hold("r2", "Dan", "north", 1); no == nil || no.Reason != sale.NotYourTurn {
		t.Errorf("in the north: %+v", no)
	}
	if no := hold("r3", "of the south", "south", 1); no != nil {
		t.Errorf("the offer: %+v", no)
	}
}

// People wait for items, not for bundles; a bundle takes no unit for which others wait, and may have what is offered.
func TestBundlesOfAwaitedItems(t *testing.T) {
	c := newCrowded(t, redistest.Start(t), 1, 1)
	c.changes(func(file *sale.Sale) {
		file.Items = append(file.Items, sale.Item{SKU: "c", Stock: 9}, sale.Item{SKU: "pair", Components: []sale.Component{{SKU: "a", Units: 1}, {SKU: "c", Units: 1}}},
			sale.Item{SKU: "twin", Components: []sale.Component{{SKU: "a", Units: 2}}})
	})
	stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
	for _, sku := range []string{"pair", "twin"} {
		if _, no, err := c.enters(0, &sale.Attempt{Buyer: "Ben", Lines: []sale.Line{{SKU: sku, Quantity: 1}}}); no != nil || !errors.Is(err, edge.ErrBundle) {
			t.Errorf("%s: %+v, %v", sku, no, err)
		}
	}
	c.enter(0, "Ben", 1)
	pair := func(id, buyer string) *sale.Refusal {
		a := &sale.Attempt{Sale: "s", Buyer: buyer, Lines: []sale.Line{{SKU: "pair", Quantity: 1}}}
		lines, no := c.listing(0).Sale.Resolve(a)
		if no == nil {
			_, no, _ = c.edges[0].Hold(stocktest.Soon(t), id, c.listing(0), a, lines, stocktest.HoldOptions)
		}
		return no
	}
	if no := pair("r2", "Dan"); no == nil || no.Reason != sale.NotYourTurn {
		t.Errorf("a stranger: %+v", no)
	}
	c.release("r1")
	c.offered("Ben")
	if no := pair("r3", "Ben"); no != nil {
		t.Errorf("the person with the offer: %+v", no)
	}
	c.ended("Ben", "accepted")
}

// A person with an offer whose shop changes the cart of an order gets what is offered in that order.
func TestChangedCartTakesTheOffer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		c := newCrowded(t, b, 2, 2)
		c.changes(func(file *sale.Sale) { file.Items = append(file.Items, sale.Item{SKU: "c", Stock: 9}) })
		cart := func(i int, id, inPlaceOf string, lines ...sale.Line) (reservation.Hold, *sale.Refusal) {
			a := &sale.Attempt{Sale: "s", Buyer: "Ben", Ref: "order-1", Lines: lines}
			o := edge.HoldOptions{HoldFor: time.Hour, Margin: time.Minute, Mode: record.ModeBackend, InPlaceOf: inPlaceOf}
			h, no, err := c.edges[i].Hold(stocktest.Soon(t), id, c.listing(i), a, lines, o)
			if err != nil {
				t.Fatal(err)
			}
			if no == nil { // the shop has answered
				c.edges[i].Free(stocktest.Soon(t), "s", id)
			}
			return h, no
		}
		of := func(sku string, n int64) sale.Line { return sale.Line{SKU: sku, Quantity: n} }
		stocktest.MustHold(t, c.edges[0], "r1", "Ann", 2)
		if _, no := cart(0, "b1", "", of("c", 1)); no != nil {
			t.Fatalf("%+v", no)
		}
		c.enter(0, "Ben", 2)
		c.enter(0, "Cid", 1)
		if _, no := cart(0, "b2", "b1", of("a", 1), of("c", 1)); no == nil || no.Reason != sale.NotYourTurn {
			t.Fatalf("before an offer: %+v", no)
		}
		c.release("r1")
		c.offered("Ben")
		if _, no := cart(1, "b3", "b1", of("a", 1), of("c", 1)); no != nil {
			t.Fatalf("with the offer: %+v", no)
		}
		c.ended("Ben", "accepted")
		c.offered("Cid") // the unit that Ben has left
		if cell := c.cell(); cell.Held != 2 || cell.Available != 0 || !cell.Balanced() {
			t.Errorf("the cell is %+v", cell)
		}
	})
}
