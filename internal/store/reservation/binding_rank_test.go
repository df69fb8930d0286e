package reservation_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// contest are two reservations that name the same binding fields, one after the other.
type contest struct {
	ids    [2]string
	fields []string
	looks  []reservation.Operation // ask the scripts to whom each field belongs
	edit   []func(*reservation.ReserveRequest)
}

// contestOf is one of a key and a ref, or of a purchase without a key.
func contestOf(name string, single bool, mode record.Mode) *contest {
	look := func(guard, ref string) reservation.Operation {
		return reservation.Operation{Name: "lookup", Args: []any{guard, "", ref, "Ann", "a 1", 0}}
	}
	ids := [2]string{name + "-1", name + "-2"}
	if single {
		return &contest{ids, []string{"d|" + name}, []reservation.Operation{look("d|"+name, "")}, []func(*reservation.ReserveRequest){withSingle(name), inMode(mode)}}
	}
	ttl := func(c *reservation.ReserveRequest) { c.Binding.TTL = 10 * time.Millisecond } // at least until the sale ends
	return &contest{
		ids, []string{"k|" + name, record.RefField("Ann", name)}, []reservation.Operation{look("k|"+name, ""), look("", name)},
		[]func(*reservation.ReserveRequest){withKey(name, ""), withRef(name), inMode(mode), ttl},
	}
}

// ends brings a hold to each end that has to do with what it binds.
var ends = map[string]func(c *clocked, id string){
	"held":     func(*clocked, string) {},
	"in_doubt": func(c *clocked, id string) { c.must("in_doubt")(c.Doubt(stocktest.Soon(c.t), "s", id, "")) },
	"confirmed": func(c *clocked, id string) {
		c.must("confirmed")(c.Confirm(stocktest.Soon(c.t), "s", id, reservation.SourceAnswer, ""))
	},
	"released": func(c *clocked, id string) {
		c.must("released")(c.Release(stocktest.Soon(c.t), "s", id, reservation.SourceShop, ""))
	},
	"unbacked": func(c *clocked, id string) {
		c.must("released")(c.Release(stocktest.Soon(c.t), "s", id, reservation.SourceShop, ""))
		rest := "rest-" + id
		c.reserve(rest, ofLines(sale.Line{SKU: "a", Quantity: stocktest.CellA(c.t, c.Store).Available}))
		c.must("unbacked")(c.Confirm(stocktest.Soon(c.t), "s", id, reservation.SourceAnswer, ""))
		c.must("released")(c.Release(stocktest.Soon(c.t), "s", rest, reservation.SourceShop, ""))
	},
	"overdue": func(c *clocked, _ string) {
		c.step(2 * time.Minute)
		if _, err := c.Expire(stocktest.Soon(c.t), "s"); err != nil {
			c.t.Fatal(err)
		}
	},
	"answered": func(c *clocked, id string) {
		if _, _, err := c.Call(stocktest.Soon(c.t), "s", reservation.Operation{Name: "free", Args: []any{id}}); err != nil {
			c.t.Fatal(err)
		}
	},
}

// To whom a key, a ref and a purchase without a key belong: the ranks in Go say what the scripts
// do, whatever becomes of two reservations that name the same.
func TestBindingRanksAreThoseOfTheScripts(t *testing.T) {
	eachClock(t, 1000, func(t *testing.T, c *clocked) {
		var all []*contest
		for first := range ends {
			for _, second := range []string{"held", "confirmed", "released", "unbacked"} {
				name := first + "-" + second
				var some []*contest
				if first != "answered" { // in mode response the hold ends with the answer
					some = append(some, contestOf("named-"+name, false, record.ModeResponse))
				}
				if second == "held" || second == "confirmed" {
					some = append(some, contestOf("backend-"+name, true, record.ModeBackend))
				}
				if first != "answered" && second == "held" {
					some = append(some, contestOf("single-"+name, true, record.ModeResponse))
				}
				for _, of := range some {
					c.contend(of, first, second)
				}
				all = append(all, some...)
			}
		}
		c.step(400 * 24 * time.Hour) // the time of keys is over
		for _, of := range all {
			c.agree(of)
		}
	})
}

// contend lets two reservations come to their ends, and then be confirmed late.
func (c *clocked) contend(of *contest, first, second string) {
	c.t.Helper()
	c.reserve(of.ids[0], of.edit...)
	ends[first](c, of.ids[0])
	c.agree(of)
	if c.bound(of.ids[1], of.edit...) == nil {
		ends[second](c, of.ids[1])
		c.agree(of)
	}
	for _, id := range of.ids {
		_, _ = c.Confirm(stocktest.Soon(c.t), "s", id, reservation.SourceAnswer, "") // not found where it was refused
		c.agree(of)
	}
}

// agree checks that what the scripts say of each field follows from the ranks of those that
// name it: none has a higher one than the owner, and what is sure is bound.
func (c *clocked) agree(of *contest) {
	c.t.Helper()
	b, err := c.SaleStock(stocktest.Soon(c.t), "s")
	if err != nil {
		c.t.Fatal(err)
	}
	_, replies, err := c.Call(stocktest.Soon(c.t), "s", of.looks...)
	if err != nil {
		c.t.Fatal(err)
	}
	for i, field := range of.fields {
		owner, ranks := "", map[string]record.BindingRank{}
		if replies[i][0] == "bound" {
			owner = replies[i][2].(string)
		}
		for _, id := range of.ids {
			r, err := recovery.NewRestorer(c.Store).RecordOf(stocktest.Soon(c.t), "s", id)
			if err != nil {
				c.t.Fatal(err)
			}
			if r != nil {
				ranks[id] = r.BindingRankAt(field, c.now, b.EndsAt)
			}
		}
		has := ranks[owner]
		if owner != "" && (has == record.RankNone || has == record.RankOverdue) {
			c.t.Errorf("%s belongs to %s, whose rank is %d", field, owner, has)
		}
		for id, rank := range ranks {
			if id != owner && (rank > has && owner != "" || rank.Sure() && owner == "") {
				c.t.Errorf("%s belongs to %q of rank %d, and %s has %d", field, owner, has, id, rank)
			}
		}
	}
}
