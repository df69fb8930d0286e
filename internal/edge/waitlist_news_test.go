package edge_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/waitlist"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// placeClient is a client of an edge that waits for news of a buyer's place.
type placeClient struct {
	*crowded
	*waitlist.PlaceWatch
	edge  int
	buyer string
}

func (c *crowded) watch(i int, buyer string) *placeClient {
	c.Helper()
	w := c.edges[i].Watch("s", c.edges[i].BuyerHash(attempt(buyer, 1)))
	if w == nil {
		c.Fatal("there is no room")
	}
	c.Cleanup(w.Close)
	return &placeClient{c, w, i, buyer}
}

// hears looks at the place at each news, and at no other moment, until it is as wanted.
func (w *placeClient) hears(what string, wanted func(p waitlist.EntryPlace) bool) (p waitlist.EntryPlace) {
	w.Helper()
	for {
		p, found := w.place(w.edge, w.buyer)
		if found && wanted(p) {
			return p
		}
		select {
		case <-w.News:
		case <-stocktest.Soon(w.T).Done():
			w.Fatalf("%s never hears: %s; the place is %+v", w.buyer, what, p)
		}
	}
}

func isOffered(p waitlist.EntryPlace) bool  { return p.Entry.Offered }
func isSoldOut(p waitlist.EntryPlace) bool  { return p.SoldOut }
func notSoldOut(p waitlist.EntryPlace) bool { return p.Ended == "" && !p.SoldOut }

func (c *crowded) settles(settle func() error) {
	c.Helper()
	if err := settle(); err != nil {
		c.Fatal(err)
	}
}

// Clients hear at once, on every edge, what becomes of an entry: whichever edge makes the offer, and without asking again.
func TestNewsOfAnOffer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		c := newCrowded(t, b, 2, 1)
		store := c.edges[0].Store
		stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
		c.enter(0, "Ben", 1)
		c.enter(1, "Cid", 1)
		var bens, cids []*placeClient
		for i := range c.edges {
			bens, cids = append(bens, c.watch(i, "Ben")), append(cids, c.watch(i, "Cid"))
			bens[i].hears("that they wait", func(p waitlist.EntryPlace) bool { return p.Place == 1 })
			cids[i].hears("that they wait", func(p waitlist.EntryPlace) bool { return p.Place == 2 })
		}
		c.settles(func() error {
			_, err := store.Release(stocktest.Soon(t), "s", "r1", reservation.SourceShop, "test")
			return err
		})
		var until time.Time
		for _, w := range bens {
			until = w.hears("of the offer", isOffered).Entry.Until
		}
		c.settles(func() error { return store.SetStatus(stocktest.Soon(t), "s", sale.Paused, "test") })
		for _, w := range bens {
			w.hears("of the pause", func(p waitlist.EntryPlace) bool { return p.Entry.Until.IsZero() })
		}
		c.settles(func() error { return store.SetStatus(stocktest.Soon(t), "s", sale.Open, "test") })
		for _, w := range bens {
			w.hears("of the end of the pause", func(p waitlist.EntryPlace) bool {
				return !p.Entry.Until.IsZero() && p.Entry.Until.Before(until.Add(time.Hour))
			})
		}
		if _, err := c.edges[0].Withdraw(stocktest.Soon(t), c.listing(0), c.edges[0].BuyerHash(attempt("Ben", 1))); err != nil {
			t.Fatal(err)
		}
		for i := range c.edges {
			bens[i].hears("that they left", func(p waitlist.EntryPlace) bool { return p.Ended == "left" })
			cids[i].hears("of the offer", isOffered)
		}
	})
}

// All who wait hear at once when no unit can come back any more, and when one has.
func TestNewsOfTheTruth(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		c := newCrowded(t, b, 2, 2)
		store := c.edges[0].Store
		stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
		stocktest.MustHold(t, c.edges[1], "r2", "Art", 1)
		c.enter(0, "Ben", 1)
		clients := []*placeClient{c.watch(0, "Ben"), c.watch(1, "Ben")}
		all := func(what string, wanted func(waitlist.EntryPlace) bool) {
			t.Helper()
			for _, w := range clients {
				w.hears(what, func(p waitlist.EntryPlace) bool { return p.Left >= 0 && wanted(p) })
			}
		}
		all("that some may come back", notSoldOut)
		c.settles(func() error {
			_, err := store.Confirm(stocktest.Soon(t), "s", "r1", reservation.SourceShop, "test")
			return err
		})
		c.settles(func() error { _, err := store.Doubt(stocktest.Soon(t), "s", "r2", "test"); return err })
		all("that one is in doubt", notSoldOut)
		c.settles(func() error {
			_, err := store.Confirm(stocktest.Soon(t), "s", "r2", reservation.SourceShop, "test")
			return err
		})
		all("that all are sold", isSoldOut)
		c.settles(func() error { _, err := store.Adjust(stocktest.Soon(t), "s", "more", "a", 1, "test"); return err })
		all("of the offer of another one", isOffered)
	})
}

// An edge that begins to follow a sale knows what is sold, and until when units are offered.
func TestNewsForAnEdgeThatStarts(t *testing.T) {
	c := newCrowded(t, redistest.Start(t), 1, 2)
	store := c.edges[0].Store
	stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
	stocktest.MustHold(t, c.edges[0], "r2", "Art", 1)
	c.enter(0, "Ben", 1)
	c.enter(0, "Cid", 1)
	c.settles(func() error {
		_, err := store.Release(stocktest.Soon(t), "s", "r1", reservation.SourceShop, "test")
		return err
	})
	c.settles(func() error {
		_, err := store.Confirm(stocktest.Soon(t), "s", "r2", reservation.SourceShop, "test")
		return err
	})
	until := c.watch(0, "Ben").hears("of the offer", isOffered).Entry.Until
	e := stocktest.Ready(t, c.edges[0].Store.Shard().Options)
	c.edges = append(c.edges, e)
	stocktest.Look(t, e)
	e.Start()
	ben, cid := c.watch(1, "Ben"), c.watch(1, "Cid")
	if p := ben.hears("of the offer", isOffered); !p.Entry.Until.Equal(until) || until.IsZero() {
		t.Errorf("until %v, want %v", p.Entry.Until, until)
	}
	cid.hears("that one is offered", func(p waitlist.EntryPlace) bool { return p.Left == 1 && !p.SoldOut })
	if h, no := c.order(1, "r3", "Ben", 1); no != nil {
		t.Fatalf("%+v %+v", h, no)
	}
	c.settles(func() error {
		_, err := store.Confirm(stocktest.Soon(t), "s", "r3", reservation.SourceShop, "test")
		return err
	})
	cid.hears("that all are sold", isSoldOut)
}

// With the sale the entries end, and a client of an edge that stops hears that there will be no news.
func TestNewsOfTheEnd(t *testing.T) {
	c := newCrowded(t, redistest.Start(t), 2, 1)
	stocktest.MustHold(t, c.edges[0], "r1", "Ann", 1)
	c.enter(0, "Ben", 1)
	ben, other := c.watch(0, "Ben"), c.watch(1, "Ben")
	ben.hears("that they wait", func(p waitlist.EntryPlace) bool { return p.Place == 1 })
	if err := c.edges[1].Stop(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	for !other.IsOver() {
		select {
		case <-other.News:
		case <-stocktest.Soon(t).Done():
			t.Fatal("the end of the edge is not told")
		}
	}
	c.settles(func() error { return c.edges[0].Store.SetStatus(stocktest.Soon(t), "s", sale.Closed, "test") })
	ben.hears("that the sale is closed", func(p waitlist.EntryPlace) bool { return p.Ended == "closed" })
}

// A ticket names one buyer of one sale.
func TestReadWaitTicket(t *testing.T) {
	e := stocktest.Ready(t, stocktest.Options(redistest.Start(t)))
	stocktest.Look(t, e)
	hash := e.BuyerHash(attempt("Ben", 1))
	ticket, err := e.WaitTicket("s", hash)
	if err != nil {
		t.Fatal(err)
	}
	if s, b, ok := e.ReadWaitTicket(ticket); !ok || s != "s" || b != hash {
		t.Errorf("%q %q %t", s, b, ok)
	}
	for _, wrong := range []string{"", "~", "s~", ticket + "x", ticket[:len(ticket)-1], "t" + ticket[1:], ticket[:2] + "x" + ticket[3:], ticket + ticket + ticket + ticket} {
		if _, _, ok := e.ReadWaitTicket(wrong); ok {
			t.Errorf("%q is read", wrong)
		}
	}
}
