package reservation_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/stockgate/stockgate/internal/test/model"
)

var background = context.Background()

const (
	noon    = int64(1_762_819_200_000) // a time in ms
	forever = int64(99_999_999_999_999)
)

// Whatever is done in whatever order, at whatever time: redis-server, the embedded
// server and the model give the same answers and hold the same, nothing is
// oversold, nothing takes effect twice, every hold is in one state, a refusal
// charges nothing and the stock balances, after every step. In the end every hold
// ends.
func TestRandomOperations(t *testing.T) {
	t.Parallel()
	on := servers(t)
	var sales atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		d := &driver{twin: newTwin(rt, on, fmt.Sprintf("s%d", sales.Add(1))), rt: rt, orphans: map[string]string{}, queues: true}
		d.setTime(noon)
		if rapid.IntRange(0, 9).Draw(rt, "unloaded") < 9 {
			d.load()
		}
		rt.Repeat(map[string]func(*rapid.T){
			// rapid draws what comes first more often, by name too
			"1 reserve":   func(rt *rapid.T) { d.call(d.reserve(rt)) },
			"2 waitlist":  func(rt *rapid.T) { d.call(d.waitlist(rt)) },
			"2 queue":     func(rt *rapid.T) { d.call(d.queue(rt)) },
			"2 settle":    func(rt *rapid.T) { d.call(d.settle(rt)) },
			"2 settle it": func(rt *rapid.T) { d.call(d.settle(rt)) },
			"3 together":  d.together,
			"3 too late":  d.tooLate,
			"4 manage":    func(rt *rapid.T) { d.call(d.manage(rt)) },
			"5 clock":     d.clock,
			"6 expire":    d.expire,
			"7 repeat":    d.repeat,
			"7 forget":    d.forget,
			"8 expects":   d.expects,
			"8 align":     func(rt *rapid.T) { d.call(model.Align{Cause: cause(rt)}) },
			"8 probe":     func(rt *rapid.T) { d.call(d.probe(rt)) },
			"8 lapse": func(rt *rapid.T) {
				d.call(model.Lapse{Within: rapid.SampledFrom([]int64{1000, 60_000}).Draw(rt, "within")})
			},
			"9 edge dies":  d.edgeDies,
			"9 data lost":  d.loseData,
			"9 order lost": func(rt *rapid.T) { d.loseOrder(rt) },
		})
		d.end()
	})
}

// driver draws operations that make sense at the moment, and some that do not.
type driver struct {
	*twin
	rt      *rapid.T
	last    []effect          // what took effect
	made    []string          // reservations that were made
	tokens  []model.Confirm   // confirms with the tokens of all that was ever reserved
	orphans map[string]string // reservations of edges that died → mode
	ids     int
	noFiles bool // no sale file is applied
	queues  bool // orders may wait
}

type effect struct {
	op    model.Operation
	reply model.Reply
}

// load applies a sale and opens it.
func (d *driver) load() {
	d.call(model.Apply{Doc: "{}", Starts: noon - 5_000_000, Ends: noon + 100_000_000, Cause: "test", Deleted: 7, Deltas: []model.Delta{
		{Cell: "a", Units: 6}, {Cell: "b/1@n", Units: 3}, {Cell: "b/1@s", Units: 3},
	}})
	d.call(model.SetStatus{Status: "open"})
}

// call runs operations in one call and remembers what took effect.
func (d *driver) call(ops ...model.Operation) {
	was := d.model.Clone()
	for i, reply := range d.run(ops...) {
		if reply[0] != "ok" {
			continue
		}
		d.last = append(d.last, effect{ops[i], reply})
		o, ok := ops[i].(model.Reserve)
		if cell := overtakes(was, o); ok && cell != "" && len(ops) == 1 && was.Records[o.ID] == nil {
			d.t.Fatalf("%+v got units of %s, for which %+v wait", o, cell, was.Waitlist.People)
		}
		if accepted, is := ops[i].(model.Accept); is {
			o, ok = accepted.New, true
		}
		if ok && (reply[1] == "held" || reply[1] == "waiting") {
			if !slices.Contains(d.made, o.ID) {
				d.made = append(d.made, o.ID)
			}
			d.keepToken(o, reply)
		}
	}
	for id, r := range d.model.Records {
		if r.Mode == "offer" && !slices.Contains(d.made, id) {
			d.made = append(d.made, id)
		}
	}
	slices.Sort(d.made)
}

// keepToken makes of a reserve's answer what its token proves.
func (d *driver) keepToken(o model.Reserve, reply model.Reply) {
	e := &model.Evidence{
		Epoch: reply[4].(int64), Created: reply[5].(int64), Exp: reply[3].(int64),
		Buyer: o.Buyer, Ref: o.Ref, Mode: "backend", Lines: o.Lines,
	}
	for _, l := range o.Limits {
		e.Charges = append(e.Charges, l.Charge)
	}
	d.tokens = append(d.tokens, model.Confirm{ID: o.ID, Word: "shop", Evidence: e})
}

// together runs several operations in one call.
func (d *driver) together(rt *rapid.T) {
	draw := d.settle
	switch rapid.SampledFrom([]string{"settle", "claim", "mixed", "people"}).Draw(rt, "script") {
	case "people":
		draw = d.waitlist
	case "claim":
		draw = func(rt *rapid.T) model.Operation {
			if rapid.IntRange(0, 3).Draw(rt, "kind") == 3 {
				return d.manage(rt)
			}
			return d.reserve(rt)
		}
	case "mixed":
		draw = func(rt *rapid.T) model.Operation {
			if rapid.Bool().Draw(rt, "reserves") {
				return d.reserve(rt)
			}
			return d.settle(rt)
		}
	}
	ops := make([]model.Operation, rapid.IntRange(2, 4).Draw(rt, "operations"))
	for i := range ops {
		ops[i] = draw(rt)
	}
	d.call(ops...)
}

// repeat does again what was done last. A step between two states may have made
// another answer right, an expire finds others, and an apply is told apart by its
// version: only the last effect is sure to be the same.
func (d *driver) repeat(rt *rapid.T) {
	if len(d.last) == 0 {
		rt.Skip("nothing was done")
	}
	e := d.last[rapid.IntRange(0, len(d.last)-1).Draw(rt, "which")]
	if o, ok := e.op.(model.Reserve); ok && d.model.Forgotten[o.ID] != "" {
		rt.Skip("no edge tries an attempt for an hour")
	}
	_, isConfirm := e.op.(model.Confirm)
	switch e.op.(type) {
	case model.Reserve, model.Adjust, model.Return, model.Free, model.Lookup:
		d.again(e.op, e.reply)
	default:
		if isConfirm && e.reply[1] == "confirmed" { // for ever
			d.again(e.op, e.reply)
			return
		}
		d.run(e.op)
	}
}

// edgeDies reserves for an edge that is killed before it gets the answer of Redis, or
// before that of the shop. The edge may have repeated the request, or released it, and the
// release may arrive first. Only the deadline and probes are left to end the hold.
func (d *driver) edgeDies(rt *rapid.T) {
	o := d.reserve(rt).(model.Reserve)
	d.ids++
	o.ID = fmt.Sprintf("orphan%d", d.ids)
	o.KeyTTL, o.Waits = 0, nil
	given := model.Release{ID: o.ID, Word: "unsent", NotAfter: o.NotAfter}
	switch rapid.SampledFrom([]string{"", "", "repeated", "given up", "given up late"}).Draw(rt, "before it died") {
	case "":
		d.run(o)
	case "repeated":
		d.again(o, d.run(o)[0])
	case "given up":
		d.run(given)
		d.run(o)
	case "given up late":
		d.run(o)
		d.run(given)
	}
	if r, ok := d.model.Records[o.ID]; ok && r.State == model.Held {
		d.orphans[o.ID] = o.Mode
	}
}

// loseData takes all that Redis knows of the sale, as a failover to an empty server
// does. The sale is loaded again; the tokens are still in the shop.
func (d *driver) loseData(rt *rapid.T) {
	if rapid.IntRange(0, 5).Draw(rt, "spared") > 0 {
		rt.Skip("not this time")
	}
	d.lose()
	d.last, d.made, d.orphans = nil, nil, map[string]string{}
	d.load()
	for range rapid.IntRange(0, 4).Draw(rt, "late confirms") {
		d.call(d.confirmByToken(rt))
	}
}

// tooLate confirms a reservation that has given its units back, most of the time after
// another buyer has taken all that was available.
func (d *driver) tooLate(rt *rapid.T) {
	ended := d.among(model.Released, model.Expired, model.Unbacked)
	if len(ended) == 0 {
		rt.Skip("nothing has ended")
	}
	id := rapid.SampledFrom(ended).Draw(rt, "ended")
	if c, ok := d.model.Cell(d.model.Records[id].Lines[0].Cell); ok && c.Available > 0 && rapid.IntRange(0, 3).Draw(rt, "free") < 3 {
		d.ids++
		d.call(model.Reserve{
			ID: fmt.Sprintf("r%d", d.ids), Version: d.model.Version, NotAfter: forever, HoldFor: 30_000, Mode: "response", Buyer: "Eve",
			Lines: []model.Line{{Cell: d.model.Records[id].Lines[0].Cell, Units: c.Available}},
		})
	}
	d.call(model.Confirm{ID: id, Word: rapid.SampledFrom(confirmWords).Draw(rt, "word"), Cause: cause(rt)})
}

// among lists the reservations that are in one of some states, except those that no
// client knows of.
func (d *driver) among(states ...model.State) []string {
	var ids []string
	for id, r := range d.model.Records {
		if _, ok := d.orphans[id]; !ok && slices.Contains(states, r.State) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// confirmWords are whose word a confirm may have.
var confirmWords = []string{"answer", "shop", "operator", "probe"}

// confirmByToken draws a token of what was reserved at any time.
func (d *driver) confirmByToken(rt *rapid.T) model.Operation {
	if len(d.tokens) == 0 {
		return model.Confirm{ID: d.known(rt), Word: "shop"}
	}
	o := rapid.SampledFrom(d.tokens).Draw(rt, "token")
	if d.model.Forgotten[o.ID] != "" && o.Evidence.Exp > d.model.ForgottenExp { // of another life, in which the id was the same
		return model.Confirm{ID: o.ID, Word: "shop"}
	}
	o.Cause = cause(rt)
	return o
}

// end lets the time pass: what is held ends at its deadline, what is in doubt when
// the shop says twice that it knows nothing. Then every unit is on sale or sold.
func (d *driver) end() {
	last := d.model.Now()
	for _, r := range d.model.Records {
		last = max(last, r.Deadline, r.Probes.Next)
	}
	for _, r := range d.model.Records {
		last = max(last, r.Exp+60_000)
	}
	d.model.Latest, d.model.LatestTime = model.Unbounded, model.Unbounded
	d.setTime(last + max(0, -d.model.Lead)) // by either clock
	for more := int64(1); more != 0; {
		more = d.run(model.Expire{Most: 20})[0][2].(int64)
	}
	for id, mode := range d.orphans {
		got := d.state(id)
		if was := d.model.Forgotten[id]; was != "" {
			got = string(was)
		}
		if want := map[string]string{"response": "in_doubt", "backend": "expired"}[mode]; got != want {
			d.t.Fatalf("%s of an edge that died is %s, want %s", id, got, want)
		}
	}
	for range 2 {
		for _, gate := range gates {
			if !slices.ContainsFunc(slices.Collect(maps.Values(d.model.Records)), func(r *model.Record) bool {
				return r.State == model.InDoubt && r.Gate == gate
			}) {
				continue
			}
			claimed := d.run(model.Probe{Gate: gate, Most: 100, Wait: 1, Tries: 1000, LongestWait: 1})[0]
			for i := 2; i < len(claimed); i += 3 {
				d.run(model.Probed{ID: claimed[i].(string), Verdict: "absent", Cause: "status_404"})
			}
		}
		d.setTime(d.model.Time + 1)
	}
	if q := d.model.Queue; len(q.Orders)+len(q.AtShop) > 0 {
		d.t.Fatalf("%v wait and %v are at the shop, and every hold should have ended", q.Orders, q.AtShop)
	}
	for _, p := range d.model.Waitlist.People {
		if p.Offered {
			d.t.Fatalf("%+v has an offer, and every hold should have ended", p)
		}
	}
	for name := range d.model.Stock {
		if c, _ := d.model.Cell(name); c.Held != 0 || c.InDoubt != 0 {
			d.t.Fatalf("%s is %+v, and every hold should have ended", name, c)
		}
	}
}

func (d *driver) clock(rt *rapid.T) {
	step := rapid.SampledFrom([]int64{1, 50, 1000, 60_000, -1, -50, -60_000, 4_000_000, -4_000_000, 40_000_000}).Draw(rt, "step")
	d.setTime(max(d.model.Time+step, 1_000_000_000_000))
}

// expects draws what the callers expect of the clocks: one that has heard nothing cannot tell,
// one that knows of a step forward expects less than there is.
func (d *driver) expects(rt *rapid.T) {
	m := d.model
	m.Latest, m.LatestTime = model.Unbounded, model.Unbounded
	switch rapid.IntRange(0, 4).Draw(rt, "expects") {
	case 0:
		m.Latest, m.LatestTime = 0, 0
	case 1, 2:
		behind := rapid.SampledFrom([]int64{0, 999, 1000, 1001, 60_000, 4_000_000}).Draw(rt, "behind")
		m.Latest, m.LatestTime = max(m.Time+m.Lead, m.Clock)-behind, m.Time-behind
	}
}

// forget drops what is over, and lets a ledger follow.
func (d *driver) forget(rt *rapid.T) {
	if rapid.Bool().Draw(rt, "ledger") {
		d.call(model.Acknowledge{Epoch: d.model.Epoch, Seq: int64(rapid.IntRange(0, len(d.model.Journal)).Draw(rt, "acked"))})
	}
	const week = 7 * day
	d.call(model.Forget{Ended: hour, Overdue: 10 * hour, Patience: rapid.SampledFrom([]int64{week, week, hour, 0}).Draw(rt, "patience")})
}

// expire ends what is overdue: no unit comes back on sale while a token of it is good.
func (d *driver) expire(rt *rapid.T) {
	held := d.among(model.Held)
	d.call(model.Expire{Most: rapid.IntRange(1, 3).Draw(rt, "most"), Stepped: rapid.Bool().Draw(rt, "stepped")})
	for _, id := range held {
		if r := d.model.Records[id]; r.State == model.Expired && (r.Exp > d.model.Time || r.Exp > d.model.LatestTime+1000) {
			rt.Fatalf("%s has expired, and its token is good for %d ms", id, r.Exp-d.model.Time)
		}
	}
}
