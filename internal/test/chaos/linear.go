package main

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// event is one thing that must have had its effect at one moment between its beginning and
// its end: an order, or an answer that nothing is left.
type event struct {
	qty     int64
	stock   int64  // that operators put on sale: at most of an order; of sold_out, what was there from the beginning
	sold    bool   // the shop took it; otherwise the buyer heard sold_out
	slack   int64  // sold_out: units that were held by what was not sold
	proof   string // the name of the order
	heard   string // the name that the buyer heard; empty: none
	attempt *auditor.Attempt
}

// stockModel is one cell: its state are the units that are sold. No order may take more than
// there is, and no buyer may hear sold_out while units are left that no other had.
var stockModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		sold, e := state.(int64), input.(event)
		if e.sold {
			return sold+e.qty <= e.stock, sold + e.qty
		}
		return sold+e.slack+e.qty > e.stock, sold
	},
	DescribeOperation: func(input, _ any) string {
		e := input.(event)
		if e.sold {
			return fmt.Sprintf("%d sold as %s", e.qty, e.proof)
		}
		return fmt.Sprintf("sold_out for %d", e.qty)
	},
}

// keyModel is one buyer's key: its state is the order that it has. A key has one order, every
// success names it, and no refusal of a new purchase comes after a success.
var keyModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		order, e := state.(string), input.(event)
		switch {
		case e.sold:
			return order == "", e.proof
		case e.heard != "":
			return order == e.heard, order
		}
		return order == "", order // a refusal that only a new purchase gets
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// newOnly are refusals that a key which has an order does not get.
var newOnly = []string{"sold_out", "all_held", "paused", "ended", "closed", "limit_reached", "too_many_unpaid", "unknown_item"}

// linearizable looks for an order of all events in which each cell and each key behaves.
func linearizable(h *auditor.History) (found []auditor.Violation) {
	check := func(promise, what string, model porcupine.Model, ops []porcupine.Operation) {
		if result := porcupine.CheckOperationsTimeout(model, ops, 20*time.Minute); result != porcupine.Ok {
			v := auditor.Violation{Promise: promise, What: fmt.Sprintf("the history of %s is not linearizable (%s): %d events", what, result, len(ops))}
			slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
			for _, op := range ops[max(0, len(ops)-20):] {
				v.Evidence = append(v.Evidence, fmt.Sprintf("%d–%d %s", op.Call, op.Return, model.DescribeOperation(op.Input, nil)))
			}
			found = append(found, v)
		}
	}
	for cell, ops := range byCell(h) {
		check(auditor.NoOversell, "item "+cell, stockModel, ops)
	}
	for key, ops := range byKey(h) {
		check(auditor.AtMostOnce, fmt.Sprintf("key %s of buyer %s", key[1], key[0]), keyModel, ops)
	}
	for who, ops := range byPerson(h) {
		check(auditor.WaitlistSay, fmt.Sprintf("the waiting list at %s as %s hears of it", who.edge, who.path), storyModel, ops)
	}
	return found
}

// orders are what the shop took, by the attempt that brought it.
func orders(h *auditor.History) map[string]*auditor.Order {
	all := map[string]*auditor.Order{}
	for _, o := range h.Orders {
		if o.Taken && !o.Again {
			all[o.Attempt] = o
		}
	}
	return all
}

// byCell are the events of each cell: an order took its units between the moment at which it
// was asked for and the one at which the shop had it.
func byCell(h *auditor.History) map[string][]porcupine.Operation {
	all, taken, slack := map[string][]porcupine.Operation{}, orders(h), unsold(h)
	for _, a := range h.Attempts {
		if a.Browse || len(a.Lines) != 1 {
			continue
		}
		cell := a.Lines[0].Cell()
		e := event{qty: a.Lines[0].Qty, stock: stockOf(h, cell), attempt: a, slack: slack[cell]}
		end := a.Heard
		if o := taken[a.ID]; o != nil {
			e.sold, e.proof, end = true, o.Proof, o.At
		} else if a.Reason != "sold_out" || a.Heard == 0 {
			continue
		} else {
			e.stock = firstStock(h, cell)
		}
		all[cell] = append(all[cell], porcupine.Operation{ClientId: len(all[cell]), Input: e, Call: a.Sent, Return: end})
	}
	return all
}

// unsold are the units of each cell that were held at some time and not sold.
func unsold(h *auditor.History) map[string]int64 {
	sold, units := map[string]bool{}, map[string]int64{}
	for _, o := range orders(h) {
		sold[o.JTI] = true
	}
	for _, s := range h.Shards {
		for _, m := range s.Movements {
			if m.Kind == "held" && !sold[m.ID] {
				for _, l := range m.Lines {
					units[l.Cell] += l.Qty
				}
			}
		}
	}
	return units
}

func stockOf(h *auditor.History, cell string) (units int64) {
	for _, cells := range h.Stock {
		units += cells[cell]
	}
	return units
}

// firstStock are the units of a cell that a sale file loaded: what operators add while buyers ask may come later than an
// answer, or never. Without such a movement it is all stock.
func firstStock(h *auditor.History, cell string) (units int64) {
	found := false
	for _, s := range h.Shards {
		for _, m := range s.Movements {
			for _, l := range m.Lines {
				if m.Kind == "loaded" && l.Cell == cell {
					units, found = units+l.Qty, true
				}
			}
		}
	}
	if !found {
		return stockOf(h, cell)
	}
	return units
}

// byKey are the events of each buyer's key. An order and its answer are two events: a buyer
// may hear of it later, or not at all.
func byKey(h *auditor.History) map[[2]string][]porcupine.Operation {
	all, taken := map[[2]string][]porcupine.Operation{}, orders(h)
	for _, a := range h.Attempts {
		if a.Key == "" {
			continue
		}
		k := [2]string{a.Buyer, a.Key}
		add := func(e event, begin, end int64) {
			all[k] = append(all[k], porcupine.Operation{ClientId: len(all[k]), Input: e, Call: begin, Return: end})
		}
		if o := taken[a.ID]; o != nil {
			add(event{sold: true, proof: o.Proof, attempt: a}, a.Sent, o.At)
		}
		switch {
		case a.Heard == 0:
		case a.Won() && a.Proof != "":
			add(event{heard: a.Proof, attempt: a}, a.Sent, a.Heard)
		case slices.Contains(newOnly, a.Reason):
			add(event{attempt: a}, a.Sent, a.Heard)
		}
	}
	return all
}

// answer is what a person heard of the waiting list, between two movements of its sale.
type answer struct {
	people   *auditor.People
	wait     *auditor.Wait
	from, to int64
}

// storyModel is the waiting list as one person hears of it: its state is the movement after which the last answer was true.
// Each answer is true after that one or a later one: no person hears of what was before, or is the new one of an entry twice.
var storyModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		a, from := input.(answer), state.(int64)
		if a.wait.Status == http.StatusCreated {
			from++
		}
		seq, ok := a.people.Fits(a.wait, max(from, a.from), a.to)
		return ok, seq
	},
	DescribeOperation: func(input, _ any) string {
		a := input.(answer)
		return fmt.Sprintf("%s %d %s %+v, movements %d to %d", a.wait.Method, a.wait.Status, a.wait.Reason, a.wait.WaitAnswer, a.from, a.to)
	},
}

// listener is a person, by the place, at an edge; without an edge, what Redis answers over all of them.
type listener struct{ path, edge string }

// byPerson are the answers about each person. Those from the memory of an edge may be older than those from Redis, and
// than the memory of another edge.
func byPerson(h *auditor.History) map[listener][]porcupine.Operation {
	all := map[listener][]porcupine.Operation{}
	for _, list := range h.Waitlists {
		i := slices.IndexFunc(h.Shards, func(s *auditor.Shard) bool { return s.Sale == list.Sale })
		if i < 0 || list.ToldAgain { // movements that are told again have other numbers
			continue
		}
		people := auditor.ReplayPeople(list, h.Shards[i].Movements)
		for _, w := range h.Waits {
			if w.Sale != list.Sale || w.Heard == 0 || w.Path == "" || w.Status != 200 && w.Status != 201 {
				continue
			}
			who := listener{path: w.Path}
			if w.Method == "GET" {
				who.edge = w.Edge
			}
			from, to := people.Span(h, w)
			all[who] = append(all[who], porcupine.Operation{ClientId: len(all[who]), Input: answer{people, w, from, to}, Call: w.Sent, Return: w.Heard})
		}
	}
	return all
}
