package auditor

import (
	"fmt"
	"slices"
	"strings"
)

// judgeWaitlists: units go to people in their order, each person has one entry, Redis has the list of which the
// movements tell, and each answer was true at a moment at which it can have been given.
func judgeWaitlists(h *History, _ map[string]*Replayed) (found []Violation) {
	for _, list := range h.Waitlists {
		i := slices.IndexFunc(h.Shards, func(s *Shard) bool { return s.Sale == list.Sale })
		if i < 0 {
			continue
		}
		p := ReplayPeople(list, h.Shards[i].Movements)
		found = append(found, limited(p.found)...)
		found = append(found, limited(p.judgeKept(h.Shards[i]))...)
		found = append(found, limited(p.judgeAccepted(h))...)
		if list.ToldAgain {
			found = append(found, limited(p.judgeTold(h))...)
		} else {
			found = append(found, limited(p.judgeWaits(h))...)
			found = append(found, limited(p.judgeNotYourTurn(h))...)
			found = append(found, limited(p.judgeOffersKept(h))...)
		}
	}
	return found
}

// judgeKept compares the list that Redis keeps with the list of which the movements tell.
func (p *People) judgeKept(s *Shard) (found []Violation) {
	want, have, counts := map[string]bool{}, map[string]bool{}, map[string][2]int{}
	for _, e := range p.live {
		state, n := "w", counts[e.Cell]
		if e.Offered > 0 {
			state = "o"
			n[1]++
		} else {
			n[0]++
		}
		counts[e.Cell] = n
		units := e.Quantity
		if e.Offered > 0 {
			units = e.Units
		}
		want[fmt.Sprintf("%d %s %s %d %s", e.Number, state, e.Cell, units, e.Buyer)] = true
	}
	for field, text := range s.Waitlist {
		if strings.HasPrefix(field, "e|") {
			for line := range strings.Lines(text) {
				if f := strings.Fields(line); len(f) >= 6 {
					have[strings.Join([]string{f[0], f[1], f[2], f[3], f[5]}, " ")] = true
				}
			}
		}
		if cell, ok := strings.CutPrefix(field, "c|"); ok && text != fmt.Sprintf("%d %d", counts[cell][0], counts[cell][1]) {
			found = append(found, broken(Balance, "sale %s counts %q people for cell %s (waiting, offered); its movements say %v", s.Sale, text, cell, counts[cell]))
		}
	}
	for e := range want {
		if !have[e] {
			found = append(found, broken(Balance, "the waiting list of sale %s lacks the entry %q, of which its movements tell", s.Sale, e))
		}
	}
	for e := range have {
		if !want[e] {
			found = append(found, broken(Balance, "the waiting list of sale %s has the entry %q, of which its movements do not tell", s.Sale, e))
		}
	}
	return found
}

// judgeAccepted: units of an offer are ordered by its person only.
func (p *People) judgeAccepted(h *History) (found []Violation) {
	accepted := map[string]*Stay{} // by the order's reservation
	own, _ := p.hashes(h)
	i := slices.IndexFunc(h.Shards, func(s *Shard) bool { return s.Sale == p.list.Sale })
	movements := h.Shards[i].Movements
	for i, m := range movements[:max(len(movements)-1, 0)] {
		if m.Cause != "accepted" || !offerID.MatchString(m.ID) {
			continue
		}
		for _, s := range p.Stays {
			if s.Ended == m.Seq {
				accepted[movements[i+1].ID] = s
			}
		}
	}
	for _, o := range h.Orders {
		s := accepted[o.JTI]
		if s != nil && o.Sale == p.list.Sale && own[o.Buyer] != s.Buyer && !p.shares(own[o.Buyer], s) {
			found = append(found, broken(InTurn, "a buyer ordered units that were offered to another one").with(o, s))
		}
	}
	return found
}

// shares reports whether a person has an identity in common with another one's entry.
func (p *People) shares(buyer string, s *Stay) bool {
	for _, own := range p.byBuyer[buyer] {
		for kind, hash := range own.Others {
			if s.Others[kind] == hash {
				return true
			}
		}
	}
	return false
}

// buyerOf is the keyed hash of the person of whom a request is.
func (p *People) buyerOf(w *Wait) string {
	if len(p.Stays) == 0 {
		return ""
	}
	return buyerIn(w.Path, len(p.Stays[0].Buyer))
}

// judgeNotYourTurn: a buyer hears that it is not the buyer's turn only while people wait.
func (p *People) judgeNotYourTurn(h *History) (found []Violation) {
	for _, a := range h.Attempts {
		if a.Heard == 0 || a.Reason != "not_your_turn" || !p.sells(a.Lines) {
			continue
		}
		from, to := h.span(p.list.Sale, a.Sent, a.Heard, stale, p.end)
		if !p.awaited(a.Lines, from, to) {
			found = append(found, broken(WaitlistSay, "a buyer heard not_your_turn, and no person waited between movements %d and %d", from, to).with(a))
		}
	}
	return found
}

// awaited reports whether people waited for one of some lines at a time between two movements.
func (p *People) awaited(lines []Line, from, to int64) bool {
	for seq := from; seq <= to; seq++ {
		if slices.ContainsFunc(lines, func(l Line) bool { return at(p.waitingAt[l.Cell()], seq) > 0 }) {
			return true
		}
	}
	return false
}

// sells reports whether lines are of this sale.
func (p *People) sells(lines []Line) bool {
	return slices.ContainsFunc(lines, func(l Line) bool { return p.replayed.Cells[l.Cell()] != nil })
}

// judgeOffersKept: a person for whom units are held is not refused them.
func (p *People) judgeOffersKept(h *History) (found []Violation) {
	own, _ := p.hashes(h)
	for _, a := range h.Attempts {
		switch a.Reason {
		case "not_your_turn", "all_held", "sold_out":
		default:
			continue
		}
		stays := p.byBuyer[own[a.Buyer]]
		if a.Heard == 0 || len(a.Lines) != 1 || len(stays) == 0 {
			continue
		}
		from, to := h.span(p.list.Sale, a.Sent, a.Heard, 0, p.end)
		for _, s := range stays {
			if s.Cell == a.Lines[0].Cell() && s.Units >= a.Lines[0].Qty && s.offeredAt(from) && s.offeredAt(to) {
				found = append(found, broken(InTurn, "a buyer heard %s while units were held for the buyer", a.Reason).with(a, s))
			}
		}
	}
	return found
}

// judgeTold: of each entry, offer and end that a person was told a movement tells.
func (p *People) judgeTold(h *History) (found []Violation) {
	posts := map[string]map[int64]*Wait{}
	for _, w := range h.Waits {
		switch {
		case w.Sale != p.list.Sale || w.Heard == 0:
		case w.Method == "POST" && w.Status == 201 && p.enteredBy(w, 0, p.end, posts) == nil:
			found = append(found, broken(WaitlistSay, "%s was told an entry at %s, of which no movement tells", w.Buyer, w.Edge))
		case w.Method == "GET" && w.Status == 200 && !p.tells(w):
			v := broken(WaitlistSay, "%s heard at %s %+v, of which no movement tells", w.Buyer, w.Edge, w.WaitAnswer)
			for _, s := range p.byBuyer[p.buyerOf(w)] {
				v = v.with(s)
			}
			found = append(found, v)
		}
	}
	return found
}

// tells reports whether movements tell of the offer or the end that a person was told, whenever that was.
func (p *People) tells(w *Wait) bool {
	stays := p.byBuyer[p.buyerOf(w)]
	switch {
	case w.State == "offered":
		return slices.ContainsFunc(stays, func(s *Stay) bool {
			return s.Units == w.Quantity && (w.Until.IsZero() || slices.ContainsFunc(s.untils, func(u until) bool { return u.exp/1000 == w.Until.Unix() }))
		})
	case w.State == "ended" && w.Why != "" && w.Why != "closed":
		return slices.ContainsFunc(stays, func(s *Stay) bool { return s.Why == w.Why })
	}
	return true
}

// hashes are the keyed hashes of buyers, as their places tell them, and of their phones.
func (p *People) hashes(h *History) (buyers, phones map[string]string) {
	buyers, phones = map[string]string{}, map[string]string{}
	for _, w := range h.Waits {
		if w.Method != "POST" || w.Status != 200 && w.Status != 201 || w.Sale != p.list.Sale {
			continue
		}
		buyers[w.Buyer] = p.buyerOf(w)
		for _, s := range p.byBuyer[buyers[w.Buyer]] {
			if s.Others["phone"] != "" {
				phones[w.Phone] = s.Others["phone"]
			}
		}
	}
	return buyers, phones
}

// joins reports whether a buyer and a phone belonged to two entries after a movement.
func (p *People) joins(buyer, phone string, seq int64) bool {
	var first *Stay
	for _, s := range p.Stays {
		if !s.listedAt(seq) || s.Buyer != buyer && s.Others["phone"] != phone {
			continue
		}
		if first != nil {
			return true
		}
		first = s
	}
	return false
}
