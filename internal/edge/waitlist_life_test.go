package edge_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/waitlist"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// A closed sale that is deleted takes its list with it: a new sale of the same name begins with an empty one.
func TestDeletedSaleHasNoList(t *testing.T) {
	b := redistest.Start(t)
	c := newCrowded(t, b, 2, 1)
	stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
	c.enter(0, "Ben", 1)
	c.enter(1, "Cid", 1)
	c.release("r1")
	c.offered("Ben")
	store := c.edges[0].Store
	if err := store.SetStatus(stocktest.Soon(t), "s", sale.Closed, "test"); err != nil {
		t.Fatal(err)
	}
	c.ended("Ben", "closed")
	if err := store.Delete(stocktest.Soon(t), "s", true); err != nil {
		t.Fatal(err)
	}
	keys, err := b.Client().Keys(stocktest.Soon(t), "*{s.*").Result()
	if err != nil || len(keys) > 0 {
		t.Errorf("redis still has %v, %v", keys, err)
	}
	file := stocktest.OpenSale("s", 1)
	file.Waitlist = &sale.Waitlist{Offer: sale.Span(time.Hour), Max: 100}
	stocktest.Load(t, store, file)
	for _, e := range c.edges {
		stocktest.Eventually(t, "the new sale", func() bool {
			if err := e.Refresh(stocktest.Soon(t)); err != nil {
				t.Fatal(err)
			}
			l, ok := e.Catalogue().Sale("s")
			return ok && l.Status == sale.Open && l.IsFollowed()
		})
	}
	for _, buyer := range []string{"Ben", "Cid"} {
		if p, found := c.place(1, buyer); found {
			t.Errorf("%s is on the new list: %+v", buyer, p)
		}
	}
	if all, last, err := waitlist.ReadAll(stocktest.Soon(t), store.Shard().Data("s")); err != nil || len(all)+int(last) > 0 {
		t.Errorf("the new list has %d people, the last is %d, %v", len(all), last, err)
	}
	stocktest.MustHold(t, c.edges[1], "r2", "Dan", 1)
	if e, no := c.enter(0, "Ben", 1); no != nil || !e.New || e.Number != 1 {
		t.Errorf("%+v, %+v", e, no)
	}
}

// An edge that starts while an offer is open knows until when it lasts.
func TestEdgeStartsWhileAnOfferIsOpen(t *testing.T) {
	b := redistest.Start(t)
	c := newCrowded(t, b, 1, 1)
	stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
	c.enter(0, "Ben", 1)
	c.release("r1")
	c.offered("Ben")
	later := stocktest.Ready(t, stocktest.Options(b))
	stocktest.Look(t, later)
	later.Start()
	c.edges = append(c.edges, later)
	c.offered("Ben")
	first, _ := c.place(0, "Ben")
	if p, _ := c.place(1, "Ben"); first.Entry.Until.IsZero() || !p.Entry.Until.Equal(first.Entry.Until) {
		t.Errorf("the offer lasts until %v, and the edge that started later says %v", first.Entry.Until, p.Entry.Until)
	}
	if err := c.edges[0].Store.SetStatus(stocktest.Soon(t), "s", sale.Paused, "test"); err != nil {
		t.Fatal(err)
	}
	for i := range c.edges {
		stocktest.Eventually(t, "the pause", func() bool {
			p, found := c.place(i, "Ben")
			return found && p.Entry.Offered && p.Entry.Until.IsZero()
		})
	}
}
