package auditor

import (
	"fmt"
	"slices"
	"sort"
)

// Judge names every promise that the history breaks.
func Judge(h *History) []Violation {
	replayed, found := JudgeShards(h)
	return append(found, JudgePromises(h, replayed)...)
}

// JudgePromises compares what buyers heard and the shop took with what the movements say.
func JudgePromises(h *History, replayed map[string]*Replayed) (found []Violation) {
	for _, judge := range []func(*History, map[string]*Replayed) []Violation{
		judgeTokens, judgeStock, judgeOrders, judgeKeys, judgeAnswers, judgeLimits, judgeHoarding, judgeQueues, judgeWaitlists,
	} {
		found = append(found, judge(h, replayed)...)
	}
	return found
}

// JudgeShards looks at what Redis keeps, and at nothing else: it must agree with itself, also
// after a loss. It returns what the movements of each sale say.
func JudgeShards(h *History) (replayed map[string]*Replayed, found []Violation) {
	replayed = map[string]*Replayed{}
	for _, s := range h.Shards {
		b, more := Replay(s.Sale, s.Movements)
		replayed[s.Sale] = b
		found = append(found, more...)
		found = append(found, judgeShard(h, s, b)...)
	}
	return replayed, found
}

// judgeShard compares what Redis keeps with what the movements say.
func judgeShard(h *History, s *Shard, b *Replayed) (found []Violation) {
	for _, name := range keysOf(b.Cells, s.Cells) {
		want, have := "0 0 0 0 0", "0 0 0 0 0"
		if c := b.Cells[name]; c != nil {
			want = c.String()
		}
		if text, ok := s.Cells[name]; ok {
			have = text
		}
		if want != have {
			found = append(found, broken(Balance, "cell %s of sale %s is %q (stock, available, held, in doubt, confirmed); its movements say %q", name, s.Sale, have, want))
		}
	}
	byState := map[string][]string{}
	for id, state := range b.States {
		byState[state] = append(byState[state], id)
		if kept := recordField(s.Records[id], 1); kept != state {
			found = append(found, broken(OneState, "reservation %s of sale %s is %q in its record; its movements say %q", id, s.Sale, kept, state))
		}
	}
	if h.Tampered {
		return found
	}
	for _, list := range []struct {
		name, state string
		ids         []string
	}{{"deadlines", "held", s.Deadlines}, {"in_doubt", "in_doubt", s.InDoubt}, {"unbacked", "unbacked", s.Unbacked}} {
		want := byState[list.state]
		sort.Strings(want)
		sort.Strings(list.ids)
		if !slices.Equal(want, list.ids) {
			found = append(found, broken(OneState, "sale %s lists %d reservations as %s; its movements say %d", s.Sale, len(list.ids), list.state, len(want)))
		}
	}
	return append(found, judgeCharges(s, b)...)
}

// judgeTokens: no order reaches the shop without a token that is good for it, and none reaches it
// in part, unless the edge that sent it was killed.
func judgeTokens(h *History, _ map[string]*Replayed) (found []Violation) {
	if len(h.Cut) > 0 && !h.EdgesDie {
		found = append(found, broken(ValidToken, "an order reached the shop in part, and no edge died").with(h.Cut[0]))
	}
	for _, o := range h.Orders {
		if o.Problem != "" {
			found = append(found, broken(ValidToken, "%s", o.Problem).with(o))
		}
	}
	return limited(found)
}

// judgeStock: the shop sells no more of a cell than operators put on sale, and the movements
// know no other stock than theirs.
func judgeStock(h *History, replayed map[string]*Replayed) (found []Violation) {
	sold := map[string]map[string]int64{}
	for _, o := range h.Orders {
		if !o.Taken || o.Again || o.Sale == "" {
			continue
		}
		if sold[o.Sale] == nil {
			sold[o.Sale] = map[string]int64{}
		}
		for _, l := range o.Lines {
			sold[o.Sale][l.Cell()] += l.Qty
		}
	}
	for sale, cells := range sold {
		for cell, units := range cells {
			if most := h.Stock[sale][cell]; units > most && !returned(replayed[sale]) {
				found = append(found, broken(NoOversell, "the shop took orders of %d units of cell %s in sale %s, which has %d", units, cell, sale, most))
			}
		}
	}
	for sale, b := range replayed {
		for cell, t := range b.Cells {
			if most := h.Stock[sale][cell]; t.Stock > most {
				found = append(found, broken(NoOversell, "the movements of sale %s load %d units of cell %s; operators loaded %d", sale, t.Stock, cell, most))
			}
		}
	}
	return found
}

func returned(b *Replayed) bool { return b != nil && len(b.Back) > 0 }

// judgeOrders: each order that the shop took is backed by units, and nothing is sold in the
// movements that the shop does not have.
func judgeOrders(h *History, replayed map[string]*Replayed) (found []Violation) {
	taken, seen := map[string]*Order{}, map[string]bool{}
	for _, o := range h.Orders {
		seen[o.JTI] = true
		if !o.Taken || o.Again || o.JTI == "" {
			continue
		}
		if first := taken[o.JTI]; first != nil {
			found = append(found, broken(AtMostOnce, "the shop took two orders of reservation %s", o.JTI).with(first, o))
		}
		taken[o.JTI] = o
		b := replayed[o.Sale]
		if b == nil {
			continue
		}
		switch state := b.States[o.JTI]; state {
		case "confirmed", "in_doubt", "held":
		default:
			found = append(found, broken(NoOversell, "the shop took an order whose reservation is %q (%s): its units are on sale again", state, b.Ended[o.JTI]).with(o))
		}
	}
	if h.ByOperators {
		return limited(found)
	}
	for sale, b := range replayed {
		for id, state := range b.States {
			switch {
			case state == "confirmed" && taken[id] == nil:
				found = append(found, broken(Balance, "reservation %s of sale %s is sold (%s), and the shop has no such order", id, sale, b.Ended[id]))
			case state == "in_doubt" && !seen[id] && !h.EdgesDie && !h.ShopFails && !h.endsUnsent(sale, b.Ended[id]):
				found = append(found, broken(OneState, "reservation %s of sale %s is in doubt (%s), and the shop never saw it", id, sale, b.Ended[id]))
			}
		}
	}
	return limited(found)
}

// endsUnsent reports whether a cause is one by which an order that waited may be in doubt although it
// was not sent. Its edge says that it sends before it does; when Redis stays away after that until the
// deadline, or a fence waits for the edge in vain, only the edge knows that it did not.
func (h *History) endsUnsent(sale, cause string) bool {
	return (cause == "deadline" || cause == "its edge was lost") && slices.ContainsFunc(h.Queues, func(q Queue) bool { return q.Sale == sale })
}

func keysOf(a map[string]*Tally, b map[string]string) []string {
	all := map[string]bool{}
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	var keys []string
	for k := range all {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// limited keeps the first of many, and says how many there are.
func limited(found []Violation) []Violation {
	const most = 5
	if len(found) <= most {
		return found
	}
	rest := len(found) - most
	found = found[:most]
	found[most-1].What += fmt.Sprintf(" (and %d more of this kind)", rest)
	return found
}
