package reservation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/model"
)

// known draws a reservation that was made, most of the time.
func (d *driver) known(rt *rapid.T) string {
	if len(d.made) > 0 && rapid.IntRange(0, 2).Draw(rt, "live") == 2 {
		if live := d.among(model.Held, model.InDoubt); len(live) > 0 {
			return rapid.SampledFrom(live).Draw(rt, "hold")
		}
	}
	if len(d.made) == 0 || rapid.IntRange(0, 9).Draw(rt, "any") == 9 {
		return rapid.SampledFrom([]string{"r1", "r2", "r3", "r4", "r5"}).Draw(rt, "id")
	}
	return rapid.SampledFrom(d.made).Draw(rt, "made")
}

// fresh draws an id that was not used, most of the time.
func (d *driver) fresh(rt *rapid.T) string {
	if rapid.IntRange(0, 9).Draw(rt, "used") == 9 {
		if id := d.known(rt); d.model.Forgotten[id] == "" { // no edge makes one again
			return id
		}
	}
	for {
		d.ids++
		if id := fmt.Sprintf("r%d", d.ids); d.model.Forgotten[id] == "" { // known draws some of these names too
			return id
		}
	}
}

func cause(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"", "status_500", "two words", "a\ttab", "a\nline\r", "\x00\x1f\x7f", "是"}).Draw(rt, "cause")
}

func cell(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "a", "a", "a", "a", "a", "a", "a", "a", "b/1@n", "b/1@n", "b/1@n", "b/1@s", "b/1@s", "c", "nowhere"}).Draw(rt, "cell")
}

func (d *driver) reserve(rt *rapid.T) model.Operation {
	m := d.model
	buyer := rapid.SampledFrom([]string{"Ann", "Bob"}).Draw(rt, "buyer")
	o := model.Reserve{
		ID: d.fresh(rt), Version: m.Version, NotAfter: m.Time + 500,
		HoldFor: rapid.SampledFrom([]int64{30_000, 30_000, 100, 1, 0}).Draw(rt, "hold_for"),
		Margin:  rapid.SampledFrom([]int64{0, 50}).Draw(rt, "margin"),
		Mode:    rapid.SampledFrom([]string{"response", "backend"}).Draw(rt, "mode"), Buyer: buyer,
	}
	o.Guard = rapid.SampledFrom([]string{"", "", "", "k|1", "k|1", "k|2", "d|1"}).Draw(rt, "guard")
	if strings.HasPrefix(o.Guard, "k|") {
		o.Print = rapid.SampledFrom([]string{"p", "p", "p", "q"}).Draw(rt, "print")
		o.KeyTTL = rapid.SampledFrom([]int64{0, 1000, 500_000_000}).Draw(rt, "key_ttl")
	}
	o.Ref = rapid.SampledFrom([]string{"", "", "", "", "o1", "o2"}).Draw(rt, "ref")
	o.Shared = rapid.SampledFrom([]bool{false, false, true}).Draw(rt, "shared")
	o.Gate = rapid.SampledFrom(gates).Draw(rt, "gate")
	switch rapid.IntRange(0, 19).Draw(rt, "odd") {
	case 19:
		o.Version += rapid.SampledFrom([]int64{-1, 1}).Draw(rt, "version")
	case 18:
		o.NotAfter = m.Time - 1
	case 17:
		o.NotAfter = m.Time
	case 16:
		o.Told = true
	}
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(rt, "lines") { // equal cells too: no attempt may get more than there is
		o.Lines = append(o.Lines, model.Line{Cell: cell(rt), Units: rapid.SampledFrom([]int64{1, 1, 1, 2, 3}).Draw(rt, "units")})
	}
	for range rapid.SampledFrom([]int{0, 1, 1, 2}).Draw(rt, "limits") {
		kind := rapid.SampledFrom(limitKinds).Draw(rt, "limit")
		l := model.Limit{Max: int64(rapid.IntRange(1, 8).Draw(rt, "max")), From: 0, To: forever}
		l.Field = kind.id + "|-|" + buyer
		if l.Amount = kind.cost(o.Lines); l.Amount == 0 {
			continue // it is about another item
		}
		switch rapid.IntRange(0, 19).Draw(rt, "window") {
		case 19:
			l.To = m.Time
		case 18:
			l.From = m.Time
		case 17:
			l.From = m.Time + 1
		}
		o.Limits = append(o.Limits, l)
	}
	if kinds := rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(rt, "unpaid"); kinds > 0 {
		ip := rapid.SampledFrom([]string{"ip|1", "ip|2"}).Draw(rt, "ip")
		o.Unpaid = model.Owed{
			Fields: []string{"buyer|" + buyer, ip}[:kinds], AtOnce: int64(rapid.IntRange(1, 3).Draw(rt, "at_once")),
			Ended: int64(rapid.IntRange(1, 3).Draw(rt, "ended")), Within: rapid.SampledFrom([]int64{1000, 60_000, 3_600_000}).Draw(rt, "within"),
		}
	}
	if d.queues && !o.Told && rapid.IntRange(0, 2).Draw(rt, "waits") == 0 {
		o.Waits = &model.Waits{
			AtOnce: int64(rapid.IntRange(0, 2).Draw(rt, "at the shop")), Longest: rapid.SampledFrom([]int64{60_000, 60_000, 1000, 1}).Draw(rt, "longest wait"),
			Edge: queueEdge(rt), Gate: queueGate(rt), Packed: packed,
		}
	}
	return o
}

func queueEdge(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"A", "A", "B"}).Draw(rt, "edge")
}

func queueGate(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"g1", "g1", "g2"}).Draw(rt, "queue gate")
}

// queue draws what edges and operators do to the line, most of the time with an order that waits,
// and as the edge that may.
func (d *driver) queue(rt *rapid.T) model.Operation {
	what := rapid.SampledFrom([]string{"turn", "turn", "turn", "send", "send", "send", "again", "again", "yield", "leave", "rejoin", "line", "place", "orphans"}).Draw(rt, "in the queue")
	edge := queueEdge(rt)
	switch what {
	case "turn":
		return model.Turn{
			Edge: edge, Lease: rapid.SampledFrom([]int64{3000, 3000, 50}).Draw(rt, "lease"), AtOnce: int64(rapid.IntRange(0, 4).Draw(rt, "at_once")),
			Most: rapid.SampledFrom([]int64{200, 200, 1, 2}).Draw(rt, "most"), Gates: rapid.SampledFrom([]string{"g1 g2", "g1", "g2", "g3"}).Draw(rt, "gates"),
		}
	case "orphans":
		return model.Orphans{Age: rapid.SampledFrom([]int64{0, 0, 1, 6000}).Draw(rt, "age")}
	case "line":
		does := rapid.SampledFrom([]string{"show", "show", "pause", "resume", "resume", "resume", "drain"}).Draw(rt, "does")
		return model.Look{Does: does, Most: int64(rapid.IntRange(1, 3).Draw(rt, "most")), Cause: cause(rt)}
	}
	id, try := d.known(rt), int64(1)
	if lost := d.withoutOrder(); len(lost) > 0 && rapid.IntRange(0, 2).Draw(rt, "without an order") == 0 {
		id = rapid.SampledFrom(lost).Draw(rt, "lost")
	} else if in := slices.Sorted(maps.Keys(d.model.Queue.Orders)); len(in) > 0 && rapid.IntRange(0, 9).Draw(rt, "another") < 9 {
		id = rapid.SampledFrom(in).Draw(rt, "order")
		if o := d.model.Queue.Orders[id]; o.Taker != "-" && rapid.IntRange(0, 9).Draw(rt, "not its turn") < 9 {
			edge, try = o.Taker, o.Try
		}
	}
	longest := rapid.SampledFrom([]int64{60_000, 60_000, 1000, 1}).Draw(rt, "longest wait")
	margin := rapid.SampledFrom([]int64{0, 50}).Draw(rt, "margin")
	switch what {
	case "send":
		return model.Send{
			ID: id, Edge: edge, Try: try, Told: rapid.IntRange(0, 9).Draw(rt, "told") == 9, Mode: rapid.SampledFrom([]string{"response", "backend"}).Draw(rt, "mode"),
			HoldFor: longest, Margin: margin,
		}
	case "again":
		if rapid.IntRange(0, 4).Draw(rt, "late") == 0 {
			try--
		}
		return model.Again{
			ID: id, Edge: edge, Try: max(try, 0), Gate: queueGate(rt), Packed: packed, Longest: longest, Margin: margin,
			Later: rapid.SampledFrom([]int64{0, 0, 100, 60_000}).Draw(rt, "later"), Most: int64(rapid.IntRange(0, 3).Draw(rt, "often")),
		}
	case "yield":
		o := model.Yield{ID: id, Edge: edge, Try: try}
		if rapid.Bool().Draw(rt, "has told that it sends") {
			o.Packed, o.Longest, o.Margin = packed, longest, margin
		} else {
			o.Behind, o.Open = rapid.SampledFrom([]int64{0, 1, 3, 100}).Draw(rt, "behind"), rapid.Bool().Draw(rt, "open")
		}
		return o
	case "leave":
		return model.Leave{ID: id, Cause: cause(rt)}
	case "place":
		return model.Stands{ID: id}
	}
	return model.Rejoin{ID: id, Edge: edge, Gate: queueGate(rt), Packed: packed}
}

// withoutOrder are the holds that wait, and whose orders were lost.
func (d *driver) withoutOrder() []string {
	return slices.DeleteFunc(d.among(model.Held), func(id string) bool {
		_, ok := d.model.Queue.Orders[id]
		return ok || d.model.Records[id].Mode != "queued"
	})
}

// loseOrder takes an order from the servers that keep its hold, as after a failover.
func (d *driver) loseOrder(rt *rapid.T) {
	q := &d.model.Queue
	in := slices.Sorted(maps.Keys(q.Orders))
	if len(in) == 0 {
		rt.Skip("no order waits")
	}
	id := rapid.SampledFrom(in).Draw(rt, "lost order")
	for _, s := range d.servers {
		keys, pipe := s.store.Shard().ShardKeys(d.sale), s.client.TxPipeline()
		pipe.ZRem(background, keys[shard.LineKey], id)
		pipe.HDel(background, keys[shard.OrdersKey], id, "p|"+id)
		pipe.ZRem(background, keys[shard.AtShopKey], id)
		pipe.HIncrBy(background, keys[shard.QueueKey], "bytes", -q.Orders[id].Size)
		if _, err := pipe.Exec(background); err != nil {
			rt.Fatalf("%s: %v", s.name, err)
		}
	}
	q.Lose(id)
}

// limitKinds are kinds of purchase limits, as they begin a counter's name.
var limitKinds = []limitKind{
	{"buyer:sale:units", "units", ""},
	{"buyer:sale:units:a", "units", "a"},
	{"buyer:day:orders", "orders", ""},
	{"phone:sale:orders:b%2F1", "orders", "b/1"},
	{"phone:sale:units:b%2F1", "units", "b/1"},
}

type limitKind struct{ id, count, sku string }

// cost is what lines count towards a limit; 0: it is not about them.
func (k limitKind) cost(lines []model.Line) (amount int64) {
	for _, l := range lines {
		if sku, _, _ := strings.Cut(l.Cell, "@"); k.sku == "" || k.sku == sku {
			amount += l.Units
		}
	}
	if k.count == "orders" {
		return min(amount, 1)
	}
	return amount
}

// gates are the gates that reserve, one without a name.
var gates = []string{"main", ""}

func (d *driver) settle(rt *rapid.T) model.Operation {
	switch rapid.SampledFrom([]string{"release", "confirm", "doubt", "return", "extend", "free", "lookup", "probed", "token", "sold", "swap", "confirm", "release"}).Draw(rt, "what") {
	case "release":
		return model.Release{
			ID: d.known(rt), Word: rapid.SampledFrom([]string{"shop", "unsent", "unheard", "operator", "probe", "force"}).Draw(rt, "word"), Cause: cause(rt),
			NotAfter: rapid.SampledFrom([]int64{0, d.model.Time + 500, d.model.Time - 500}).Draw(rt, "not_after"),
		}
	case "doubt":
		return model.Doubt{ID: d.known(rt), Cause: cause(rt)}
	case "return":
		return d.giveBack(rt)
	case "extend":
		return model.Extend{
			ID:      d.known(rt),
			HoldFor: rapid.SampledFrom([]int64{60_000, 1000, 100_000, 1, 0}).Draw(rt, "hold_for"),
			Longest: rapid.SampledFrom([]int64{3_600_000, 120_000, 100, 0}).Draw(rt, "longest"),
		}
	case "free":
		return model.Free{ID: d.known(rt)}
	case "lookup":
		o := d.reserve(rt).(model.Reserve)
		return model.Lookup{Guard: o.Guard, Print: o.Print, Ref: o.Ref, Shared: o.Shared, Buyer: o.Buyer, Lines: o.Lines}
	case "probed":
		return model.Probed{
			ID: d.known(rt), Cause: cause(rt),
			Verdict: rapid.SampledFrom([]string{"absent", "absent", "absent", "present", "unknown"}).Draw(rt, "verdict"),
		}
	case "token":
		return d.confirmByToken(rt)
	case "sold":
		return d.sold(rt)
	case "swap":
		return d.swap(rt)
	}
	return model.Confirm{ID: d.known(rt), Word: rapid.SampledFrom(confirmWords).Draw(rt, "word"), Cause: cause(rt)}
}

// swap draws another cart, most of the time of an order that is held with outcome backend.
func (d *driver) swap(rt *rapid.T) model.Operation {
	o := model.Swap{Old: d.known(rt), New: d.reserve(rt).(model.Reserve)}
	o.New.Waits = nil
	var held []string
	for _, id := range d.among(model.Held) {
		if r := d.model.Records[id]; r.Mode == "backend" && r.Ref != "" {
			held = append(held, id)
		}
	}
	if len(held) == 0 || rapid.IntRange(0, 9).Draw(rt, "another") == 9 {
		return o
	}
	o.Old = rapid.SampledFrom(held).Draw(rt, "swapped")
	r := d.model.Records[o.Old]
	o.New.Ref, o.New.Buyer, o.New.Shared = r.Ref, r.Buyer, false
	if o.New.Guard != "" {
		o.New.Guard = "d|" + o.New.ID
	}
	if rapid.IntRange(0, 3).Draw(rt, "the same lines") == 0 {
		o.New.Lines = r.Lines
	}
	d.swapForOffer(rt, &o)
	return o
}

// sold draws what the shop says of an order: its lines, fewer, more or others.
func (d *driver) sold(rt *rapid.T) model.Operation {
	o := model.Sold{ID: d.known(rt), Word: "answer", Cause: cause(rt)}
	o.More = reservation.MoreOf(o.ID)
	if r := d.model.Records[o.ID]; r != nil {
		seen := map[string]bool{}
		for _, l := range r.Lines {
			if n := rapid.SampledFrom([]int64{l.Units, l.Units, l.Units - 1, l.Units + 1, 0}).Draw(rt, "units"); n > 0 && !seen[l.Cell] {
				o.Lines = append(o.Lines, model.Line{Cell: l.Cell, Units: n})
				seen[l.Cell] = true
			}
		}
		if c := cell(rt); !seen[c] && rapid.IntRange(0, 4).Draw(rt, "another") == 0 {
			o.Lines = append(o.Lines, model.Line{Cell: c, Units: 1})
			o.Charges = []model.Charge{{Field: "buyer:sale:units|-|more", Amount: 1}}
		}
	}
	return o
}

// giveBack draws a return, most of the time of something that was confirmed.
func (d *driver) giveBack(rt *rapid.T) model.Operation {
	o := model.Return{
		ID: d.known(rt), Return: rapid.SampledFrom([]string{"x1", "x2", "x3"}).Draw(rt, "return"),
		Restock: rapid.Bool().Draw(rt, "restock"), Cause: cause(rt),
	}
	if sold := d.among(model.Confirmed); len(sold) > 0 && rapid.IntRange(0, 9).Draw(rt, "unsold") < 9 {
		o.ID = rapid.SampledFrom(sold).Draw(rt, "sold")
		for _, l := range d.model.Records[o.ID].Lines {
			if rapid.IntRange(0, 2).Draw(rt, "line") > 0 {
				o.Lines = append(o.Lines, model.Line{Cell: l.Cell, Units: rapid.SampledFrom([]int64{1, 1, l.Units, l.Units + 1}).Draw(rt, "back")})
			}
		}
	}
	if rapid.IntRange(0, 9).Draw(rt, "foreign") == 9 {
		o.Lines = append(o.Lines, model.Line{Cell: cell(rt), Units: 1})
	}
	return o
}

func (d *driver) probe(rt *rapid.T) model.Operation {
	return model.Probe{
		Gate: rapid.SampledFrom(gates).Draw(rt, "gate"), Most: rapid.SampledFrom([]int64{10, 1, 2}).Draw(rt, "most"),
		Offset: rapid.SampledFrom([]int64{0, 0, 1, 2}).Draw(rt, "offset"), Wait: rapid.SampledFrom([]int64{100, 60_000}).Draw(rt, "wait"),
		Tries: rapid.SampledFrom([]int64{2, 1, 5}).Draw(rt, "tries"), LongestWait: rapid.SampledFrom([]int64{300, 3_600_000}).Draw(rt, "longest"),
	}
}

func (d *driver) manage(rt *rapid.T) model.Operation {
	m := d.model
	what := rapid.IntRange(0, 5).Draw(rt, "what")
	if d.noFiles && (what == 3 || what == 4) {
		what = 0
	}
	switch what {
	case 5:
		return model.SetStatus{Status: rapid.SampledFrom([]string{"open", "open", "open", "open", "open", "open", "paused", "paused", "closed", "draft"}).Draw(rt, "status"), Cause: cause(rt)}
	case 3, 4:
		o := model.Apply{Version: m.Version, Doc: cause(rt), Starts: noon - 5_000_000, Ends: noon + 50_000_000, Cause: cause(rt)}
		if rapid.IntRange(0, 9).Draw(rt, "stale") == 9 {
			o.Version++
		}
		for _, name := range rapid.Permutation([]string{"a", "b/1@n", "c"}).Draw(rt, "cells")[:rapid.IntRange(0, 3).Draw(rt, "n")] {
			delta := model.Delta{Cell: name, Units: int64(rapid.IntRange(-3, 5).Draw(rt, "delta"))}
			if rapid.IntRange(0, 4).Draw(rt, "removed") == 4 {
				c, _ := m.Cell(name)
				delta.Units, delta.Removed = -rapid.SampledFrom([]int64{c.Stock, c.Available}).Draw(rt, "all"), true
			}
			if rapid.IntRange(0, 19).Draw(rt, "huge") == 19 {
				delta.Units = model.MaxUnits
			}
			o.Deltas = append(o.Deltas, delta)
		}
		return o
	default:
		return model.Adjust{
			ID: rapid.SampledFrom([]string{"j1", "j2", "j3"}).Draw(rt, "adjustment"), Cell: cell(rt), Cause: cause(rt),
			Delta: rapid.SampledFrom([]int64{-3, -1, 0, 1, 4, model.MaxUnits}).Draw(rt, "delta"),
		}
	}
}
