package reservation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/model"
)

// entryStates are the states of Ann's entry, who wants two of "a", and Zoe waits behind her for one. Offered: two units are
// held for her.
var entryStates = []struct {
	name string
	ops  []model.Operation
}{
	{"no entry", nil},
	{"waits", []model.Operation{entersAs("Ann", 2), entersAs("Zoe", 1)}},
	{"offered", []model.Operation{entersAs("Ann", 2), entersAs("Zoe", 1), model.Release{ID: "first", Word: "shop"}, offerTo(1, "Ann", 2)}},
}

// offerHeld is the id of the offer to Ann.
var offerHeld = fmt.Sprintf("w1.%d", noon)

func entersAs(buyer string, units int64) model.Operation {
	return model.Enter{Cell: "a", Units: units, Most: 10, Buyer: buyer, Identities: " phone=of-" + buyer}
}

// offerTo offers units of "a" until the deadline.
func offerTo(number int64, buyer string, units int64) model.Operation {
	o := model.Offer{Number: number, Of: take("w", units)}
	o.Of.Buyer, o.Of.Margin, o.Of.Mode = buyer, 0, "offer"
	return o
}

// orders is what a person orders.
func orders(buyer, cell string, units int64) model.Operation {
	o := model.Accept{New: take("new", units), Identities: " phone=of-" + buyer}
	o.New.Buyer, o.New.Lines[0].Cell, o.New.Limits = buyer, cell, nil
	return o
}

func told(op model.Operation) model.Operation {
	switch o := op.(type) {
	case model.Enter:
		o.Told = true
		return o
	case model.Offer:
		o.Of.Told = true
		return o
	case model.Accept:
		o.New.Told = true
		return o
	case model.Swap:
		o.New.Told = true
		return o
	}
	return op
}

// swapOf changes the cart of an order of Ann, which has a unit of "b".
func swapOf(w *twin, cell string, units int64) model.Operation {
	if w.model.Records["r"] == nil {
		first := take("r", 1)
		first.Mode, first.Ref, first.Buyer, first.Lines[0].Cell, first.Version = "backend", "order-1", "Ann", "b", w.model.Version
		w.run(first)
	}
	o := model.Swap{Old: "r", New: take("new", units), Identities: " phone=of-Ann"}
	o.New.Mode, o.New.Ref, o.New.Buyer, o.New.Lines[0].Cell, o.New.Limits, o.New.Version = "backend", "order-1", "Ann", cell, nil, w.model.Version
	return o
}

// keyed is an order under an idempotency key.
func keyed(op model.Operation, id string) model.Operation {
	o := op.(model.Accept)
	o.New.ID, o.New.Guard, o.New.Print = id, "k|Ann key", "print"
	return o
}

// inQueue is an order of a gate with a queue.
func inQueue(op model.Operation) model.Operation {
	o := op.(model.Accept)
	o.New.Waits = waitsFor(1)
	return o
}

// withAnother is an order of a bundle: a unit of "b" goes with its units.
func withAnother(op model.Operation) model.Operation {
	b := model.Line{Cell: "b", Units: 1}
	if o, ok := op.(model.Accept); ok {
		o.New.Lines = append(o.New.Lines, b)
		return o
	}
	o := op.(model.Reserve)
	o.Lines = append(o.Lines, b)
	return o
}

// entryRows are the rows of the table. A model.Reserve and a model.Swap are of a person who is not on the list.
var entryRows = map[string]func(w *twin) model.Operation{
	"enter": func(*twin) model.Operation { return entersAs("Ann", 2) },
	"enter by another name": func(*twin) model.Operation {
		return model.Enter{Cell: "a", Units: 1, Most: 10, Buyer: "Anne", Identities: " phone=of-Ann"}
	},
	"enter by two names": func(*twin) model.Operation {
		return model.Enter{Cell: "a", Units: 1, Most: 10, Buyer: "Ann", Identities: " phone=of-Zoe"}
	},
	"enter where the list is full": func(*twin) model.Operation { return model.Enter{Cell: "a", Units: 1, Most: 2, Buyer: "Bob"} },
	"enter after a fence":          func(*twin) model.Operation { return told(entersAs("Ann", 2)) },
	"offer":                        func(*twin) model.Operation { return offerTo(1, "Ann", 2) },
	"offer less":                   func(*twin) model.Operation { return offerTo(1, "Ann", 1) },
	"offer to Zoe":                 func(*twin) model.Operation { return offerTo(1, "Zoe", 1) },
	"offer after a fence":          func(*twin) model.Operation { return told(offerTo(7, "Ann", 2)) },
	"order":                        func(*twin) model.Operation { return orders("Ann", "a", 2) },
	"order less":                   func(*twin) model.Operation { return orders("Ann", "a", 1) },
	"order more":                   func(*twin) model.Operation { return orders("Ann", "a", 3) },
	"order another item":           func(*twin) model.Operation { return orders("Ann", "b", 1) },
	"order after a fence":          func(*twin) model.Operation { return told(orders("Ann", "a", 2)) },
	"order by Zoe":                 func(*twin) model.Operation { return orders("Zoe", "a", 1) },
	"order by a newcomer":          func(*twin) model.Operation { return take("new", 1) },
	"swap by a newcomer": func(w *twin) model.Operation {
		other := take("r", 1)
		other.Mode, other.Ref, other.Buyer, other.Lines[0].Cell, other.Version = "backend", "order-1", "Eve", "b", w.model.Version
		w.run(other)
		o := model.Swap{Old: "r", New: take("new", 1)}
		o.New.Mode, o.New.Ref, o.New.Buyer, o.New.Version = "backend", "order-1", "Eve", w.model.Version
		return o
	},
	"swap":                             func(w *twin) model.Operation { return swapOf(w, "a", 2) },
	"swap for less":                    func(w *twin) model.Operation { return swapOf(w, "a", 1) },
	"swap for more":                    func(w *twin) model.Operation { return swapOf(w, "a", 3) },
	"swap for another item":            func(w *twin) model.Operation { return swapOf(w, "b", 2) },
	"swap after a fence":               func(w *twin) model.Operation { return told(swapOf(w, "a", 2)) },
	"offer less after a fence":         func(*twin) model.Operation { return told(offerTo(7, "Ann", 1)) },
	"order under a key":                func(*twin) model.Operation { return keyed(orders("Ann", "a", 2), "new") },
	"order under the same key":         func(*twin) model.Operation { return keyed(orders("Ann", "a", 2), "newer") },
	"order where the gate has a queue": func(*twin) model.Operation { return inQueue(orders("Ann", "a", 2)) },
	"bundle by a newcomer":             func(*twin) model.Operation { return withAnother(take("new", 1)) },
	"bundle by Ann":                    func(*twin) model.Operation { return withAnother(orders("Ann", "a", 1)) },
	"leave":                            func(*twin) model.Operation { return model.Withdraw{Number: 1, Buyer: "Ann", Cause: "left"} },
	"leave by Zoe":                     func(*twin) model.Operation { return model.Withdraw{Number: 1, Buyer: "Zoe", Cause: "left"} },
	"leave after a fence":              func(*twin) model.Operation { return model.Withdraw{Buyer: "Ann", Cause: "left"} },
	"taken off by an operator":         func(*twin) model.Operation { return model.Withdraw{Number: 1, Cause: "operator"} },
	"expire":                           func(*twin) model.Operation { return model.Expire{Most: 100} },
	"pause offers":                     func(*twin) model.Operation { return model.Offers{Pause: true, Cause: "me"} },
	"resume offers":                    func(*twin) model.Operation { return model.Offers{Cause: "me"} },
	"pause":                            func(*twin) model.Operation { return model.SetStatus{Status: "paused"} },
	"close":                            func(*twin) model.Operation { return model.SetStatus{Status: "closed"} },
	"confirm by answer":                func(*twin) model.Operation { return model.Confirm{ID: offerHeld, Word: "answer"} },
	"confirm by operator":              func(*twin) model.Operation { return model.Confirm{ID: offerHeld, Word: "operator"} },
	"doubt":                            func(*twin) model.Operation { return model.Doubt{ID: offerHeld} },
	"extend":                           func(*twin) model.Operation { return model.Extend{ID: offerHeld, HoldFor: 5000, Longest: 60_000} },
	"return":                           func(*twin) model.Operation { return model.Return{ID: offerHeld, Return: "x"} },
	"probed present":                   func(*twin) model.Operation { return model.Probed{ID: offerHeld, Verdict: "present"} },
	"release by shop":                  func(*twin) model.Operation { return model.Release{ID: offerHeld, Word: "shop"} },
	"release as unsent":                func(*twin) model.Operation { return model.Release{ID: offerHeld, Word: "unsent"} },
	"release by probe":                 func(*twin) model.Operation { return model.Release{ID: offerHeld, Word: "probe"} },
	"release by operator":              func(*twin) model.Operation { return model.Release{ID: offerHeld, Word: "operator"} },
	"release by force":                 func(*twin) model.Operation { return model.Release{ID: offerHeld, Word: "force"} },
}

// entryCircumstances may stand behind the name of a row.
var entryCircumstances = map[string]func(w *twin){
	"again":   nil,
	"overdue": func(w *twin) { w.setTime(deadline) },
	"lapsed": func(w *twin) {
		w.setTime(deadline)
		w.run(model.Expire{Most: 100})
	},
	"paused": func(w *twin) { w.do(model.SetStatus{Status: "paused"}) },
	"reopened": func(w *twin) {
		w.do(model.SetStatus{Status: "paused"})
		w.setTime(noon + hour)
		w.do(model.SetStatus{Status: "open"})
	},
	"offers paused":         func(w *twin) { w.do(model.Offers{Pause: true}) },
	"offered after a fence": func(w *twin) { w.run(told(offerTo(7, "Ann", 1))) },
	"opened again":          func(w *twin) { w.do(model.SetStatus{Status: "open"}) },
	"the sale ends later": func(w *twin) {
		w.do(model.Apply{Version: w.model.Version, Starts: noon, Ends: saleEnds + hour})
	},
	"ordered under a key": func(w *twin) { w.run(upToDate(w, keyed(orders("Ann", "a", 2), "new"))) },
	"closed":              func(w *twin) { w.do(model.SetStatus{Status: "closed"}) },
	"after the sale":      func(w *twin) { w.setTime(saleEnds) },
	"a unit free":         func(w *twin) { w.do(model.Adjust{ID: "j", Cell: "a", Delta: 1}) },
	"declined":            func(w *twin) { w.run(model.Withdraw{Number: 1, Buyer: "Ann", Cause: "declined"}) },
}

// What becomes of an entry and of an offer, as docs/reservations.md has it, on redis-server, on the embedded server and
// in the model.
func TestEveryEntryInEveryState(t *testing.T) {
	t.Parallel()
	on, begun, done := servers(t), &beginnings{}, map[string]bool{}
	_, _, rows := tables(t)
	for n, row := range rows {
		name, circumstances := row.name, []string(nil)
		for entryRows[name] == nil {
			i := strings.LastIndex(name, ", ")
			if i < 0 {
				t.Fatalf("the table has a row %q, and there is no such operation", row.name)
			}
			circumstances = append([]string{name[i+2:]}, circumstances...)
			name = name[:i]
		}
		done[name] = true
		var got []string
		for i, in := range entryStates {
			w := newTwin(t, on, fmt.Sprintf("entry%d.%d", n, i))
			apply := model.Apply{Starts: noon, Ends: saleEnds, Deltas: []model.Delta{{Cell: "a", Units: 2}, {Cell: "b", Units: 4}}}
			first := take("first", 2)
			first.Mode, first.Buyer = "backend", "Xavier"
			begun.begin(w, append([]model.Operation{apply, model.SetStatus{Status: "open"}, first}, in.ops...)...)
			for _, what := range circumstances {
				change, ok := entryCircumstances[what]
				if !ok {
					t.Fatalf("the row %q names %q, and the test has no such circumstance", row.name, what)
				}
				if change != nil {
					change(w)
				} else {
					w.run(upToDate(w, entryRows[name](w)))
				}
			}
			op := upToDate(w, entryRows[name](w))
			was := w.model.Clone()
			got = append(got, w.entryWords(was, w.run(op)[0]))
		}
		if !slices.Equal(got, row.cells) {
			t.Errorf("the row should be:\n| %s | %s |", row.name, strings.Join(got, " | "))
		}
	}
	for name := range entryRows {
		if !done[name] {
			t.Errorf("the table does not say what becomes of %q", name)
		}
	}
}

// upToDate is an operation by an edge that knows the sale as it is.
func upToDate(w *twin, op model.Operation) model.Operation {
	switch o := op.(type) {
	case model.Reserve:
		o.Version = w.model.Version
		return o
	case model.Offer:
		o.Of.Version = w.model.Version
		return o
	case model.Accept:
		o.New.Version = w.model.Version
		return o
	case model.Swap:
		o.New.Version = w.model.Version
		return o
	}
	return op
}

// annStands is where Ann stands: no entry, waits or offered.
func annStands(s *model.Shard) string {
	for _, p := range s.Waitlist.People {
		switch {
		case p.Buyer != "Ann":
		case p.Offered:
			return "offered"
		default:
			return "waits"
		}
	}
	return "no entry"
}

// entryWords says what came of an operation: where Ann stands then, how many units are free, until when an offer lasts.
func (w *twin) entryWords(was *model.Shard, reply model.Reply) string {
	code := reply[0].(string)
	if code != "ok" {
		return code
	}
	words := "same"
	if before, after := annStands(was), annStands(w.model); before != after {
		words = after
	}
	if made := w.model.Records["new"]; made != nil && was.Records["new"] == nil {
		words = strings.TrimPrefix(words+", held", "same, ")
	}
	if c, _ := w.model.Cell("a"); c.Available > 0 {
		words += fmt.Sprintf(", %d free", c.Available)
	}
	if is, before := w.model.Records[offerHeld], was.Records[offerHeld]; is != nil && before != nil && is.Deadline > before.Deadline {
		words += ", later"
	}
	return words
}
