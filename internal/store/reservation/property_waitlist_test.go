package reservation_test

import (
	"pgregory.net/rapid"

	"github.com/stockgate/stockgate/internal/test/model"
)

// identities are those that people have beside their names: some share one.
var identities = []string{"", "", " phone=p1", " phone=p2", " phone=p1 ip=i1", " phone=p-3 ip=i1"}

// waitlist draws what happens on the waiting list.
func (d *driver) waitlist(rt *rapid.T) model.Operation {
	people := d.model.Waitlist.People
	switch what := rapid.SampledFrom([]string{"enter", "enter", "offer", "offer", "accept", "accept", "withdraw", "offers"}).Draw(rt, "on the list"); {
	case what == "enter" || len(people) == 0:
		return model.Enter{
			Cell: cell(rt), Units: int64(rapid.IntRange(1, 3).Draw(rt, "units")), Most: rapid.SampledFrom([]int64{100, 100, 100, 3}).Draw(rt, "most"),
			Told: rapid.IntRange(0, 19).Draw(rt, "told") == 19, Buyer: rapid.SampledFrom([]string{"Ann", "Bob", "Cid", "Dan", "Eve"}).Draw(rt, "buyer"),
			Identities: rapid.SampledFrom(identities).Draw(rt, "identities"),
		}
	case what == "offers":
		return model.Offers{Pause: rapid.IntRange(0, 2).Draw(rt, "pause") == 2, Cause: "me"} // mostly they go on
	case what == "withdraw":
		p := rapid.SampledFrom(people).Draw(rt, "person")
		o := model.Withdraw{Number: p.Number, Buyer: p.Buyer, Cause: "left"}
		switch rapid.IntRange(0, 9).Draw(rt, "odd") {
		case 9:
			o.Buyer = "Zoe"
		case 8:
			o.Number = 0
		case 7:
			o.Buyer = ""
		case 6:
			o.Number = 1000
		}
		return o
	case what == "offer":
		return d.offer(rt, rapid.SampledFrom(people).Draw(rt, "person"))
	}
	return d.accept(rt, people)
}

// offer draws an offer to a person, most of the time to one that can be made.
func (d *driver) offer(rt *rapid.T, p model.Waiter) model.Operation {
	o := model.Offer{Number: p.Number, Of: d.reserve(rt).(model.Reserve)}
	o.Of.ID, o.Of.Buyer, o.Of.Guard, o.Of.Print, o.Of.KeyTTL, o.Of.Ref, o.Of.Gate, o.Of.Margin = "w", p.Buyer, "", "", 0, "", "", 0
	o.Of.Waits, o.Of.Unpaid, o.Of.Shared, o.Of.Mode = nil, model.Owed{}, false, "offer"
	o.Of.Lines = []model.Line{{Cell: p.Cell, Units: p.Units}}
	if c, _ := d.model.Cell(p.Cell); c.Available > 0 && rapid.IntRange(0, 9).Draw(rt, "whole") < 9 {
		o.Of.Lines[0].Units = min(p.Units, c.Available)
	}
	for i := range o.Of.Limits {
		o.Of.Limits[i].Amount = o.Of.Lines[0].Units
	}
	return o
}

// accept draws an order, most of the time by a person who has an offer, and of its item.
func (d *driver) accept(rt *rapid.T, people []model.Waiter) model.Operation {
	o := model.Accept{New: d.reserve(rt).(model.Reserve), Identities: rapid.SampledFrom(identities).Draw(rt, "identities")}
	p := rapid.SampledFrom(people).Draw(rt, "person")
	for _, other := range people {
		if other.Offered && rapid.Bool().Draw(rt, "has an offer") {
			p = other
		}
	}
	if rapid.IntRange(0, 9).Draw(rt, "another") == 9 {
		return o
	}
	o.New.Buyer, o.New.Limits = p.Buyer, nil
	o.New.Lines[0] = model.Line{Cell: p.Cell, Units: max(p.Units+int64(rapid.IntRange(-1, 1).Draw(rt, "more")), 1)}
	return o
}

// swapForOffer draws who swaps, and lets some swap for what they are offered.
func (d *driver) swapForOffer(rt *rapid.T, o *model.Swap) {
	o.Identities = rapid.SampledFrom(identities).Draw(rt, "identities")
	for _, p := range d.model.Waitlist.People {
		if p.Offered && rapid.Bool().Draw(rt, "for an offer") {
			o.New.Lines, o.New.Limits, o.Identities = []model.Line{{Cell: p.Cell, Units: p.Units}}, nil, " is="+p.Buyer
			return
		}
	}
}

// overtakes is the cell of which an order got units for which others wait; empty: of none.
func overtakes(was *model.Shard, o model.Reserve) string {
	for _, line := range o.Lines {
		for _, p := range was.Waitlist.People {
			if p.Cell == line.Cell && !p.Offered && !o.Told {
				return line.Cell
			}
		}
	}
	return ""
}
