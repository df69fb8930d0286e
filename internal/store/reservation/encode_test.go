package reservation_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// What a request has in common with others, as lua/reserve.lua reads it: when it is made, and when it is told
// again as one whose order went to the shop, or waits.
func TestProfiles(t *testing.T) {
	c := &reservation.ReserveRequest{
		ID: "r1", Version: 7, HoldFor: 30 * time.Second, Margin: 5 * time.Second, Mode: record.ModeBackend,
		Lines:   []sale.Line{{SKU: "a", Quantity: 2}, {SKU: "b", Region: "x", Quantity: 1}},
		Charges: []reservation.Charge{{Limit: &sale.Limit{Max: 3}, Field: "f", Amount: 2, From: 10, To: 20}, {Limit: &sale.Limit{Max: 4, Shadow: true}, Field: "g", Amount: 1, To: 30}},
	}
	const told = " 2 -9000000000000000 0 9000000000000000 1 -9000000000000000 0 9000000000000000"
	wants := func(made, went, waits string) {
		t.Helper()
		for want, got := range map[string]string{made: c.Profile(false, false), went: c.Profile(true, false), waits: c.Profile(true, true)} {
			if got != want {
				t.Errorf("the profile is %q, want %q", got, want)
			}
		}
	}
	wants("7 30000 5000 backend 0 2 a 2 b@x 1 2 3 10 20 1 -4 0 30",
		"told 30000 5000 backend 0 2 a 2 b@x 1"+told, "told 30000 5000 backend 0 2 a 2 b@x 1"+told)
	c.Unpaid = reservation.Owed{Fields: []string{"u", "v"}, AtOnce: 1, Ended: 2, Within: time.Minute}
	c.Queue = &reservation.QueueOptions{Pace: reservation.Pace{Orders: 5, Per: time.Second, AtOnce: 6}, Most: 7, Memory: 8, Longest: time.Hour, Edge: "e", Gate: "p"}
	const queue, owed = "backend:5:1000:6:7:8:3600000:e:p 2:", ":60000 2 a 2 b@x 1"
	wants("7 30000 5000 queued:"+queue+"1:2"+owed+" 2 3 10 20 1 -4 0 30",
		"told 30000 5000 goes:"+queue+"9000000000000000:9000000000000000"+owed+told,
		"told 30000 5000 waits:"+queue+"9000000000000000:9000000000000000"+owed+told)
	if c.Charges[0].Limit.Max != 3 || c.Charges[0].To != 20 || c.Unpaid.AtOnce != 1 {
		t.Errorf("a request that is told again changes the one that was made: %+v", c)
	}
}
