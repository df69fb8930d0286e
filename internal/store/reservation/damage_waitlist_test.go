package reservation_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// awaitedSale has units of "a" that are offered to Ann, and Zoe waits for one. Of "b" there are some.
func (s *server) awaitedSale(t *testing.T, sale string) {
	t.Helper()
	held := take("held", 1)
	held.Lines[0].Cell = "b"
	s.fill(t, sale, []model.Operation{
		model.Apply{Starts: noon, Ends: saleEnds, Deltas: []model.Delta{{Cell: "a", Units: 3}, {Cell: "b", Units: 5}}}, model.SetStatus{Status: "open"},
		model.Release{ID: "tombstone", Word: "unsent", NotAfter: noon + 500},
		take("first", 2), take("in_doubt", 1), model.Doubt{ID: "in_doubt"}, held, entersAs("Ann", 2), entersAs("Zoe", 1),
		model.Release{ID: "first", Word: "shop"}, offerTo(1, "Ann", 2),
	})
}

// onTheList are calls of a sale with a waiting list, by name: orders and what others do.
func onTheList() (ofOrders, ofPeople map[string]reservation.Operation) {
	other := take("new", 1)
	other.Lines[0].Cell = "b"
	version := func(op model.Operation) reservation.Operation {
		switch o := op.(type) {
		case model.Reserve:
			o.Version = 2
			return wire(o)
		case model.Accept:
			o.New.Version = 2
			return wire(o)
		case model.Offer:
			o.Of.Version = 2
			return wire(o)
		}
		return wire(op)
	}
	return map[string]reservation.Operation{
			"reserve": version(other), "confirm": wire(model.Confirm{ID: "held", Word: "shop"}), "release": wire(model.Release{ID: "held", Word: "shop"}),
			"order of another item": version(orders("Ann", "b", 1)),
		}, map[string]reservation.Operation{
			"enter": version(entersAs("Bob", 1)), "leave": wire(model.Withdraw{Number: 2, Buyer: "Zoe"}), "decline": wire(model.Withdraw{Number: 1, Buyer: "Ann"}),
			"order": version(orders("Ann", "a", 2)), "release the offer": wire(model.Release{ID: offerHeld, Word: "force"}),
			"pause": wire(model.SetStatus{Status: "paused"}), "close": wire(model.SetStatus{Status: "closed"}),
			"pause offers": wire(model.Offers{Pause: true}),
		}
}

// The keys of the waiting list, too, are written all or not at all.
func TestDamagedWaitlist(t *testing.T) {
	t.Parallel()
	calls, more := onTheList()
	maps.Copy(calls, more)
	for _, s := range servers(t) {
		t.Run(s.name, func(t *testing.T) {
			for _, name := range slices.Sorted(maps.Keys(calls)) {
				t.Run(name, func(t *testing.T) {
					sale := "list-" + strings.ReplaceAll(name, " ", "-")
					s.awaitedSale(t, sale)
					op := calls[name]
					if op.Claim != nil {
						op.Claim.Sale = sale
					}
					allOrNothing(t, s.client, s.store.Shard().ShardKeys(sale), func() error {
						_, _, err := s.store.Call(stocktest.Soon(t), sale, op)
						return err
					})
				})
			}
		})
	}
}

// Whatever another client has written into the fields of the list, orders of items for which people do not wait go on,
// and no operation fails.
func TestDamagedFieldsOfTheWaitlist(t *testing.T) {
	t.Parallel()
	calls, more := onTheList()
	for _, s := range servers(t) {
		for _, d := range otherValues {
			for _, of := range []map[string]reservation.Operation{calls, more} {
				for _, name := range slices.Sorted(maps.Keys(of)) {
					sale := "fields-" + strings.ReplaceAll(d.name+"-"+name, " ", "-")
					s.awaitedSale(t, sale)
					if err := d.do(stocktest.Soon(t), s.client, s.store.Shard().ShardKeys(sale)[shard.WaitlistKey]); err != nil {
						t.Fatal(err)
					}
					_, replies, err := s.store.Call(stocktest.Soon(t), sale, of[name])
					if _, order := calls[name]; err != nil || order && replies[0][0] != "ok" {
						t.Errorf("%s: with fields that are %s, %s answers %v, %v", s.name, d.name, name, replies, err)
					}
				}
			}
		}
	}
}
