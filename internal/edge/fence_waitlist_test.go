package edge_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/waitlist"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// An entry and an offer are promises as orders are: after a failover the edge has read them in the journal, or tells
// them again.
func TestPeopleWhoWaitAfterAFailover(t *testing.T) {
	for name, lose := range map[string]func(*pair){"read in the journal": (*pair).stall, "told again": (*pair).blind} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			e := p.edge(p.options())
			file := stocktest.OpenSale("s", 1000)
			file.Waitlist = &sale.Waitlist{Offer: sale.Span(time.Hour), Max: 100}
			stocktest.Apply(t, e, file)
			stocktest.Look(t, e)
			north := func(id, buyer string, units int64) {
				t.Helper()
				lines := []sale.Line{{SKU: "b", Region: "north", Quantity: units}}
				l, _ := e.Catalogue().Sale("s")
				if _, no, err := e.Hold(stocktest.Soon(t), id, l, &sale.Attempt{Sale: "s", Buyer: buyer, Lines: lines}, lines, edge.HoldOptions{HoldFor: time.Hour, Mode: record.ModeBackend}); no != nil || err != nil {
					t.Fatalf("%s: %+v, %v", id, no, err)
				}
			}
			north("r0", "Xavier", 4)
			north("r1", "Yvonne", 1)
			stocktest.Replicated(t, e.Store.Shard())
			lose(p)
			desk := waitlist.NewDesk(e.Store)
			t.Cleanup(desk.Close)
			for _, buyer := range []string{"Ann", "Bob", "Cid"} {
				if _, no, err := desk.Enter(stocktest.Soon(t), &waitlist.Entrant{Sale: "s", Cell: "b@north", Quantity: 1, Buyer: buyer, Identities: " phone=of-" + buyer, Most: 100}); no != nil || err != nil {
					t.Fatalf("%s: %+v, %v", buyer, no, err)
				}
			}
			if _, err := e.Store.Release(stocktest.Soon(t), "s", "r1", reservation.SourceShop, ""); err != nil {
				t.Fatal(err)
			}
			l, _ := e.Catalogue().Sale("s")
			made, err := e.Store.Offer(stocktest.Soon(t), "s", []int64{1}, []*reservation.ReserveRequest{{
				Sale: "s", Version: l.Version, Buyer: "Ann", Lines: []sale.Line{{SKU: "b", Region: "north", Quantity: 1}}, HoldFor: time.Hour,
			}})
			if err != nil || made[0].Refusal != nil || made[0].Gone {
				t.Fatalf("%+v, %v", made, err)
			}
			if ok, err := desk.Leave(stocktest.Soon(t), "s", 3, "Cid", "left"); !ok || err != nil {
				t.Fatal(ok, err)
			}
			p.primary.Kill()
			p.promote()
			p.sells(e, "x")
			all, _, err := waitlist.ReadAll(stocktest.Soon(t), e.Store.Shard().Data("s"))
			if err != nil || len(all) != 2 || all[0].Buyer != "Ann" || !all[0].Offered || all[1].Buyer != "Bob" || all[1].Offered || all[1].Identity("phone") != "of-Bob" {
				for _, entry := range all {
					t.Logf("%+v", *entry)
				}
				t.Errorf("on the list are %d, %v", len(all), err)
			}
			h, no, err := e.Store.Accept(stocktest.Soon(t), &reservation.ReserveRequest{
				Sale: "s", ID: "order", Version: l.Version, Buyer: "Ann", Lines: []sale.Line{{SKU: "b", Region: "north", Quantity: 1}}, HoldFor: time.Hour, Mode: record.ModeBackend,
			}, " phone=of-Ann")
			if no != nil || err != nil || h.State != record.Held {
				t.Errorf("%+v, %+v, %v", h, no, err)
			}
			stocktest.Balanced(t, p.replica.Client(), e.Store, "s")
		})
	}
}
