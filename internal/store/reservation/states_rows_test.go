package reservation_test

import (
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/test/model"
)

// The sale of every row, and the reservation "r" in it: two of four units.
const (
	deadline = noon + 1000
	hour     = int64(3600_000)
	day      = 24 * hour
	saleEnds = noon + 2*day
	keyTTL   = 3 * day
)

// state is one in which a reservation can be met, and how it gets there.
type state struct {
	name string
	ops  func(r model.Reserve) []model.Operation
}

// states is every state that a record has.
var states = []state{
	{"held", func(r model.Reserve) []model.Operation { return []model.Operation{r} }},
	{"in_doubt", func(r model.Reserve) []model.Operation { return []model.Operation{r, model.Doubt{ID: "r"}} }},
	{"confirmed", func(r model.Reserve) []model.Operation {
		return []model.Operation{r, model.Confirm{ID: "r", Word: "shop"}}
	}},
	{"released", func(r model.Reserve) []model.Operation {
		return []model.Operation{r, model.Release{ID: "r", Word: "shop"}}
	}},
	{"expired", func(r model.Reserve) []model.Operation {
		r.Mode = "backend"
		return []model.Operation{r, tick(deadline), model.Expire{Most: 9}, tick(noon)}
	}},
	{"unbacked", func(r model.Reserve) []model.Operation {
		return []model.Operation{
			r, model.Release{ID: "r", Word: "shop"}, take("other", 4),
			model.Confirm{ID: "r", Word: "answer"}, model.Release{ID: "other", Word: "shop"},
		}
	}},
	{"tombstone", func(model.Reserve) []model.Operation {
		return []model.Operation{model.Release{ID: "r", Word: "unsent", NotAfter: noon + 500}}
	}},
	{"unknown", func(model.Reserve) []model.Operation { return nil }},
}

// queueStates are those of an order that has come into the line.
var queueStates = []state{
	{"waiting", inLine},
	{"its turn", func(r model.Reserve) []model.Operation { return append(inLine(r), turnFor("A", "gate")) }},
	{"sent", func(r model.Reserve) []model.Operation { return append(inLine(r), turnFor("A", "gate"), sendR("A", 1)) }},
}

// inLine has "r" wait, because another order is at the shop. Its edge asks for turns.
func inLine(r model.Reserve) []model.Operation {
	other := take("other", 1)
	other.Lines[0].Cell = "b"
	other.Waits, r.Waits = waitsFor(1), waitsFor(1)
	return []model.Operation{other, r, model.Turn{Edge: "A", Lease: turnLasts, AtOnce: 1, Most: 9, Gates: "gate"}}
}

// turnLasts is how many ms a turn lasts.
const turnLasts = 500

func waitsFor(atOnce int64) *model.Waits {
	return &model.Waits{AtOnce: atOnce, Longest: deadline - noon, Edge: "A", Gate: "gate", Packed: packed}
}

// turnFor asks for the turns of an edge that has a gate. There is room at the shop.
func turnFor(edge, gate string) model.Operation {
	return model.Turn{Edge: edge, Lease: turnLasts, AtOnce: 9, Most: 9, Gates: gate}
}

func sendR(edge string, try int64) model.Operation {
	return model.Send{ID: "r", Edge: edge, Try: try, Mode: "response", HoldFor: deadline - noon, Margin: 100}
}

// againR puts "r" off, which the shop may do so often.
func againR(edge string, most int64) model.Operation {
	return model.Again{ID: "r", Edge: edge, Try: 1, Gate: "gate", Packed: packed, Longest: deadline - noon, Margin: 100, Later: 100, Most: most}
}

// take reserves units of "a"; nothing but its id is bound.
func take(id string, units int64) model.Reserve {
	return model.Reserve{
		ID: id, Version: 2, NotAfter: forever, HoldFor: deadline - noon, Margin: 100, Mode: "response", Buyer: "Ann",
		Lines:  []model.Line{{Cell: "a", Units: units}},
		Limits: []model.Limit{{Charge: model.Charge{Field: "buyer:sale:units|-|" + id, Amount: units}, Max: units, To: forever}},
	}
}

// keyedR is what reserves "r": with an idempotency key, and the shop's name of the order.
func keyedR() model.Reserve {
	r := take("r", 2)
	r.Guard, r.Print, r.KeyTTL, r.Ref, r.Gate = "k|key", "print", keyTTL, "order-1", "main"
	r.Unpaid = model.Owed{Fields: []string{"buyer|Ann"}, AtOnce: 100, Ended: 100, Within: day}
	return r
}

// unpaidN reserves for the same buyer, who may have so many unpaid holds at a time, and of
// whom so many may have ended so.
func unpaidN(atOnce, ended int64) func(*twin) model.Operation {
	return func(*twin) model.Operation {
		r := take("n", 1)
		r.Unpaid = model.Owed{Fields: []string{"buyer|Ann"}, AtOnce: atOnce, Ended: ended, Within: day}
		return r
	}
}

// singleR reserves without a key: a second click is told apart by buyer and lines.
func singleR() model.Reserve {
	r := take("r", 2)
	r.Guard = "d|Ann a 2"
	return r
}

// tick is a step of the clock among operations.
type tick int64

func (tick) Run(*model.Shard) model.Reply { return nil }

// rowOperations are what the rows of the documented tables are called. Some prepare
// what they need; none looks at the state of "r".
var rowOperations = map[string]func(w *twin) model.Operation{
	"confirm by answer":                func(*twin) model.Operation { return model.Confirm{ID: "r", Word: "answer", Cause: "why"} },
	"confirm by shop":                  func(*twin) model.Operation { return model.Confirm{ID: "r", Word: "shop", Cause: "why"} },
	"confirm by operator":              func(*twin) model.Operation { return model.Confirm{ID: "r", Word: "operator", Cause: "why"} },
	"confirm by probe":                 func(*twin) model.Operation { return model.Confirm{ID: "r", Word: "probe", Cause: "why"} },
	"confirm with this epoch's token":  func(w *twin) model.Operation { return tokenR(w.model.Epoch) },
	"confirm with an older token":      func(w *twin) model.Operation { return tokenR(w.model.Epoch - 1) },
	"confirm with a token from beyond": func(w *twin) model.Operation { return tokenR(w.model.Epoch + 1) },

	"swap for more":    func(*twin) model.Operation { return swapR(3, 0) },
	"swap":             func(*twin) model.Operation { return swapR(1, 1) },
	"sold":             func(*twin) model.Operation { return soldR(2) },
	"sold a unit less": func(*twin) model.Operation { return soldR(1) },
	"sold a unit more": func(*twin) model.Operation { return soldR(3) },
	"sold nothing":     func(*twin) model.Operation { return soldR(0) },

	"release by shop":     func(w *twin) model.Operation { return releaseR("shop", w.model.Time+500) },
	"release as unsent":   func(w *twin) model.Operation { return releaseR("unsent", w.model.Time+500) },
	"release as unheard":  func(w *twin) model.Operation { return releaseR("unheard", w.model.Time+500) },
	"release by operator": func(*twin) model.Operation { return releaseR("operator", 0) },
	"release by probe":    func(*twin) model.Operation { return releaseR("probe", 0) },
	"release by force":    func(*twin) model.Operation { return releaseR("force", 0) },

	"doubt":             func(*twin) model.Operation { return model.Doubt{ID: "r", Cause: "why"} },
	"expire":            func(*twin) model.Operation { return model.Expire{Most: 100} },
	"forget":            func(*twin) model.Operation { return forgets },
	"free":              func(*twin) model.Operation { return model.Free{ID: "r"} },
	"extend":            func(*twin) model.Operation { return model.Extend{ID: "r", HoldFor: 5000, Longest: 60_000} },
	"extend by nothing": func(*twin) model.Operation { return model.Extend{ID: "r", HoldFor: 1, Longest: 60_000} },
	"extend too long":   func(*twin) model.Operation { return model.Extend{ID: "r", HoldFor: 5000, Longest: 1000} },

	"return a part":        func(*twin) model.Operation { return returnR("x", true, 1) },
	"return all":           func(*twin) model.Operation { return returnR("x", true) },
	"return all, off sale": func(*twin) model.Operation { return returnR("x", false) },
	"return too many":      func(*twin) model.Operation { return returnR("x", true, 3) },
	"return the rest after a part": func(w *twin) model.Operation {
		w.run(returnR("x", true, 1))
		return returnR("rest", true)
	},
	"return the rest after all": func(w *twin) model.Operation {
		w.run(returnR("x", true, 2))
		return returnR("rest", true)
	},
	"return another part with the same id": func(w *twin) model.Operation {
		w.run(returnR("x", true, 1))
		return returnR("x", true, 2)
	},
	"return a part, off sale, with the same id": func(w *twin) model.Operation {
		w.run(returnR("x", true, 1))
		return returnR("x", false, 1)
	},

	"reserve with its id": func(*twin) model.Operation { return keyedR() },
	"reserve as it was promised": func(*twin) model.Operation {
		o := keyedR()
		o.Told, o.Limits[0].From, o.Limits[0].To, o.Unpaid.AtOnce = true, 0, 1, 0
		return o
	},
	"reserve with its id and no more": func(*twin) model.Operation { return take("r", 1) },
	"reserve with its key":            func(*twin) model.Operation { return nextAttempt(func(o *model.Reserve) { o.Ref = "" }) },
	"reserve with its key for another thing": func(*twin) model.Operation {
		return nextAttempt(func(o *model.Reserve) { o.Ref, o.Print = "", "another" })
	},
	"reserve with its ref": func(*twin) model.Operation { return nextAttempt(func(o *model.Reserve) { o.Guard = "" }) },
	"reserve with its ref for another buyer": func(*twin) model.Operation {
		return nextAttempt(func(o *model.Reserve) { o.Guard, o.Buyer = "", "Bob" })
	},
	"reserve with its shared ref for another buyer": func(*twin) model.Operation {
		return nextAttempt(func(o *model.Reserve) { o.Guard, o.Buyer, o.Shared = "", "Bob", true })
	},
	"reserve with its ref after another buyer": func(w *twin) model.Operation {
		w.run(nextAttempt(func(o *model.Reserve) { o.ID, o.Guard, o.Buyer, o.Limits = "bob's", "", "Bob", nil }))
		return nextAttempt(func(o *model.Reserve) { o.Guard = "" })
	},
	"reserve with its ref and other lines": func(*twin) model.Operation {
		return nextAttempt(func(o *model.Reserve) { o.Guard, o.Lines[0].Units = "", 1 })
	},
	"reserve where one unpaid hold is allowed":    unpaidN(1, 100),
	"reserve where no hold may have ended unpaid": unpaidN(100, 1),
	"reserve with another key": func(*twin) model.Operation {
		return nextAttempt(func(o *model.Reserve) { o.Guard, o.Ref = "k|another", "" })
	},
	"reserve the same": func(*twin) model.Operation {
		o := singleR()
		o.ID, o.Limits[0].Field = "new", "buyer:sale:units|-|new"
		return o
	},

	"look up its key": func(*twin) model.Operation { return model.Lookup{Guard: "k|key", Print: "print"} },
	"look up its key for another thing": func(*twin) model.Operation {
		return model.Lookup{Guard: "k|key", Print: "another"}
	},
	"look up its ref": func(*twin) model.Operation {
		return model.Lookup{Guard: "k|another", Ref: "order-1", Buyer: "Ann", Lines: []model.Line{{Cell: "a", Units: 2}}}
	},
	"look up its ref for another buyer": func(*twin) model.Operation {
		return model.Lookup{Ref: "order-1", Buyer: "Bob", Lines: []model.Line{{Cell: "a", Units: 2}}}
	},
	"look up its shared ref for another buyer": func(*twin) model.Operation {
		return model.Lookup{Ref: "order-1", Shared: true, Buyer: "Bob", Lines: []model.Line{{Cell: "a", Units: 2}}}
	},
	"look up the same": func(*twin) model.Operation { return model.Lookup{Guard: "d|Ann a 2", Buyer: "Ann"} },
	"look up something else": func(*twin) model.Operation {
		return model.Lookup{Guard: "k|another", Ref: "order-2"}
	},

	"reserve with its id in a busy shop": func(*twin) model.Operation {
		o := keyedR()
		o.Waits = waitsFor(0)
		return o
	},

	"turn":                                   func(*twin) model.Operation { return turnFor("A", "gate") },
	"turn for another edge":                  func(*twin) model.Operation { return turnFor("B", "gate") },
	"turn for another edge with other gates": func(*twin) model.Operation { return turnFor("B", "other") },
	"send":                                   func(*twin) model.Operation { return sendR("A", 1) },
	"send by another edge":                   func(*twin) model.Operation { return sendR("B", 1) },
	"send after a fence": func(*twin) model.Operation {
		o := sendR("A", 0).(model.Send)
		o.Told = true
		return o
	},
	"again": func(*twin) model.Operation { return againR("A", 3) },
	"again of an earlier try": func(*twin) model.Operation {
		o := againR("A", 3).(model.Again)
		o.Try = 0
		return o
	},
	"again by another edge":           func(*twin) model.Operation { return againR("B", 3) },
	"again too often":                 func(*twin) model.Operation { return againR("A", 0) },
	"yield":                           func(*twin) model.Operation { return model.Yield{ID: "r", Edge: "A", Try: 1} },
	"yield and step back":             func(*twin) model.Operation { return model.Yield{ID: "r", Edge: "A", Try: 1, Behind: 100, Open: true} },
	"yield by another edge":           func(*twin) model.Operation { return model.Yield{ID: "r", Edge: "B", Try: 1} },
	"yield unsent":                    func(*twin) model.Operation { return unsentR("A", 1) },
	"yield unsent, of an earlier try": func(*twin) model.Operation { return unsentR("A", 0) },
	"yield unsent by another edge":    func(*twin) model.Operation { return unsentR("B", 1) },
	"leave":                           func(*twin) model.Operation { return model.Leave{ID: "r", Cause: "why"} },
	"rejoin":                          func(*twin) model.Operation { return model.Rejoin{ID: "r", Edge: "A", Gate: "gate", Packed: packed} },
	"drain":                           func(*twin) model.Operation { return model.Look{Does: "drain", Most: 9, Cause: "why"} },

	"probe":                 func(*twin) model.Operation { return askShop("main") },
	"probe by another gate": func(*twin) model.Operation { return askShop("other") },
	"probe at once again": func(w *twin) model.Operation {
		w.run(askShop("main"))
		return askShop("main")
	},
	"probe too often": func(w *twin) model.Operation {
		for range 2 {
			w.run(askShop("main"))
			w.setTime(w.model.Time + 100)
		}
		return askShop("main")
	},
	"probed present": func(w *twin) model.Operation { return probedR(w, "present") },
	"probed absent":  func(w *twin) model.Operation { return probedR(w, "absent") },
	"probed absent, twice": func(w *twin) model.Operation {
		w.run(probedR(w, "absent"))
		w.setTime(w.model.Time + 100)
		return probedR(w, "absent")
	},
	"probed unknown": func(w *twin) model.Operation { return probedR(w, "unknown") },
}

// unsentR lets "r" wait on, whose edge may have told that it sends it and has not.
func unsentR(edge string, try int64) model.Operation {
	return model.Yield{ID: "r", Edge: edge, Try: try, Packed: packed, Longest: deadline - noon, Margin: 100}
}

// forgets drops what is over, as edges do.
var forgets = model.Forget{
	Ended: record.EndedFor.Milliseconds(), Overdue: record.OverdueFor.Milliseconds(), Patience: record.OverdueFor.Milliseconds(),
}

func tokenR(epoch int64) model.Operation {
	return model.Confirm{ID: "r", Word: "shop", Cause: "why", Evidence: &model.Evidence{
		Epoch: epoch, Created: noon, Exp: deadline - 100, Buyer: "Ann", Ref: "order-1", Mode: "backend",
		Lines: []model.Line{{Cell: "a", Units: 2}}, Charges: []model.Charge{{Field: "buyer:sale:units|-|r", Amount: 2}},
	}}
}

// swapR is another cart of the order that was reserved as "r".
func swapR(a, b int64) model.Operation {
	o := model.Swap{Old: "r", New: take("new", a)}
	o.New.Mode, o.New.Ref, o.New.Guard, o.New.Version = "backend", "order-1", "d|Ann new", 2
	if b > 0 {
		o.New.Lines = append(o.New.Lines, model.Line{Cell: "b", Units: b})
	}
	return o
}

// inPlace has "r" reserved in the place of a hold of a unit of "a" and one of "b".
func inPlace(ops []model.Operation) (all []model.Operation) {
	first := take("old", 1)
	first.Mode, first.Ref, first.Lines = "backend", "order-1", append(first.Lines, model.Line{Cell: "b", Units: 1})
	for _, op := range ops {
		switch o, ok := op.(model.Reserve); {
		case ok && o.ID == "r":
			all = append(all, first, model.Swap{Old: "old", New: o})
		case ok: // one is kept
			o.Lines, o.Limits[0].Amount = []model.Line{{Cell: "a", Units: 3}}, 3
			all = append(all, o)
		default:
			all = append(all, op)
		}
	}
	return all
}

// soldR is what the shop says that it sold, and was reserved as "r".
func soldR(units int64) model.Operation {
	o := model.Sold{ID: "r", Word: "answer", Cause: "why", More: "more"}
	if units > 0 {
		o.Lines = []model.Line{{Cell: "a", Units: units}}
	}
	if units > 2 {
		o.Charges = []model.Charge{{Field: "buyer:sale:units|-|r", Amount: units - 2}}
	}
	return o
}

func releaseR(word string, notAfter int64) model.Operation {
	return model.Release{ID: "r", Word: word, NotAfter: notAfter, Cause: "why"}
}

func returnR(id string, restock bool, units ...int64) model.Operation {
	o := model.Return{ID: "r", Return: id, Restock: restock, Cause: "why"}
	for _, n := range units {
		o.Lines = append(o.Lines, model.Line{Cell: "a", Units: n})
	}
	return o
}

// nextAttempt is another attempt, with what "r" has bound, or some of it.
func nextAttempt(change func(*model.Reserve)) model.Operation {
	o := keyedR()
	o.ID, o.Limits[0].Field = "new", "buyer:sale:units|-|new"
	change(&o)
	return o
}

func askShop(gate string) model.Operation {
	return model.Probe{Gate: gate, Most: 9, Wait: 10, Tries: 2, LongestWait: 100}
}

// probedR claims what is in doubt and tells what the shop said.
func probedR(w *twin, verdict string) model.Operation {
	w.run(askShop("main"))
	return model.Probed{ID: "r", Verdict: verdict, Cause: "why"}
}

// circumstances are what may stand after an operation's name.
var circumstances = map[string]func(w *twin){
	"units gone": func(w *twin) { // to another buyer, as far as they were available
		if c, _ := w.model.Cell("a"); c.Available > 0 {
			w.run(take("else", c.Available))
		}
	},
	"edge stopped":  func(w *twin) { w.setTime(noon + turnLasts) },
	"line paused":   func(w *twin) { w.do(model.Look{Does: "pause"}) },
	"overdue":       func(w *twin) { w.setTime(deadline) },
	"a day later":   func(w *twin) { w.setTime(noon + day) },
	"an hour later": func(w *twin) { w.setTime(deadline + hour) },
	"almost":        func(w *twin) { w.setTime(w.model.Time - 1) },
	"a week later":  func(w *twin) { w.setTime(deadline + 7*day) },
	"forgotten": func(w *twin) {
		w.setTime(deadline + 7*day)
		w.run(forgets)
	},
	"the ledger is behind": func(w *twin) {
		w.run(model.Acknowledge{Epoch: w.model.Epoch, Seq: int64(min(len(w.model.Journal), 3))})
	},
	"the ledger has it": func(w *twin) { w.run(model.Acknowledge{Epoch: w.model.Epoch, Seq: int64(len(w.model.Journal))}) },
	"after the sale":    func(w *twin) { w.setTime(saleEnds) },
	"days after the sale": func(w *twin) {
		w.setTime(noon + keyTTL + 1000)
	},
	"paused":          func(w *twin) { w.do(model.SetStatus{Status: "paused"}) },
	"another version": nil, // of the sale than the edge knows
	"late":            nil, // the edge has given up on it
	"freed":           func(w *twin) { w.run(model.Free{ID: "r"}) },
	"answered":        func(w *twin) { w.run(model.Free{ID: "r"}) }, // it was reserved without a key, with outcome backend
	"swapped": func(w *twin) { // it was reserved without a key, with outcome backend
		w.run(model.Free{ID: "r"})
		w.run(swapR(1, 0))
	},
	"and confirmed":   func(w *twin) { w.run(model.Confirm{ID: "new", Word: "shop"}) },
	"and released":    func(w *twin) { w.run(model.Release{ID: "new", Word: "shop", Cause: "why"}) },
	"outcome backend": func(*twin) {}, // it was reserved so
	"without a key":   func(*twin) {}, // it was reserved so
	"made by a swap":  func(*twin) {}, // it was reserved in the place of another hold
	"again":           nil,            // done once before
}
