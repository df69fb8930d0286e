package auditor

import (
	"fmt"
	"slices"
	"strings"
	"time"
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

// judgeKept compares the list that Redis keeps with that of the movements.
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

// judgeWaits: each answer was true at a moment at which it can have been given.
func (p *People) judgeWaits(h *History) (found []Violation) {
	p.buyers, p.phones = p.hashes(h)
	told := map[string][]*Wait{} // by path, who was told that it is on the list, in the order in which they heard
	posts := map[string]map[int64]*Wait{}
	waits := slices.Clone(h.Waits)
	slices.SortFunc(waits, func(a, b *Wait) int { return int(a.Heard - b.Heard) })
	for _, w := range waits {
		if !p.isAnswer(w) {
			continue
		}
		from, to := p.Span(h, w)
		ok := true
		switch {
		case w.Status == 404:
			ok = !slices.ContainsFunc(waits, func(post *Wait) bool { return post.Method == "POST" && post.Path == w.Path })
		case w.Reason == "" && w.Method == "POST":
			told[w.Path] = append(told[w.Path], w)
			ok = strings.HasPrefix(w.Path, "/waitlist/")
			if w.Status == 201 {
				ok = ok && p.enteredBy(w, from, to, posts) != nil
				break
			}
			_, fits := p.Fits(w, from, to)
			ok = ok && fits
		case w.State == "ended":
			_, ok = p.Fits(w, p.since(told[w.Path], w, from), to)
		default:
			_, ok = p.Fits(w, from, to)
		}
		if ok && w.State == "offered" && w.Method == "GET" && w.Until.IsZero() { // an edge learns of a pause and of offers by two ways
			ok = slices.Contains(p.statusAt[from:to+1], "paused")
		}
		if !ok {
			v := broken(WaitlistSay, "%s heard %d %s %s %+v, which was not so at any time between movements %d and %d", w.Buyer, w.Status, w.Reason, w.Method, w.WaitAnswer, from, to)
			v.Evidence = append(v.Evidence, fmt.Sprintf("%s %s at %s, sent at %d, heard at %d", w.Method, w.Path, w.Edge, w.Sent, w.Heard))
			for _, s := range p.byBuyer[p.buyerOf(w)] {
				v = v.with(s)
			}
			found = append(found, v)
		}
	}
	return found
}

// isAnswer reports whether a request of this sale was answered, and by more than that it is to be asked again.
func (p *People) isAnswer(w *Wait) bool {
	return w.Sale == p.list.Sale && w.Heard > 0 && w.Status < 500
}

// Span returns between which movements an answer was given.
func (p *People) Span(h *History, w *Wait) (from, to int64) {
	return h.span(w.Sale, w.Sent, w.Heard, w.Method == "GET", p.end)
}

// Fits returns the first movement, of some, after which an answer was true.
func (p *People) Fits(w *Wait, from, to int64) (seq int64, ok bool) {
	for seq := from; seq <= to; seq++ {
		if p.fits(w, seq) {
			return seq, true
		}
	}
	return 0, false
}

// fits reports whether an answer was true after a movement.
func (p *People) fits(w *Wait, seq int64) bool {
	switch {
	case w.Reason == "two_entries":
		return p.joins(p.buyers[w.Buyer], p.phones[w.Phone], seq)
	case w.Reason != "":
		return p.refusalHolds(w, seq)
	case w.Status == 201:
		return slices.ContainsFunc(p.byBuyer[p.buyerOf(w)], func(s *Stay) bool { return s.Entered == seq })
	case w.Status != 200:
		return false
	case w.State == "ended":
		return p.endingHolds(w, seq)
	}
	return p.stands(p.buyerOf(w), w, seq)
}

// at is what a list of numbers by movement has for one.
func at(list []int64, seq int64) int64 {
	if seq < int64(len(list)) {
		return list[seq]
	}
	return 0
}

// refusalHolds reports whether a refusal to enter was true after a movement.
func (p *People) refusalHolds(w *Wait, seq int64) bool {
	cell := w.Line.Cell()
	switch w.Reason {
	case "available":
		return at(p.freeAt[cell], seq) > 0 && at(p.waitingAt[cell], seq) == 0
	case "list_full":
		return at(p.liveAt, seq) >= p.list.Max
	case "paused", "closed":
		return p.statusAt[seq] == w.Reason
	case "not_your_turn", "sold_out", "all_held":
		return false // no person is refused to wait for these
	}
	return true
}

// enteredBy finds the movement by which a person has entered who was told so; each is told once.
func (p *People) enteredBy(w *Wait, from, to int64, posts map[string]map[int64]*Wait) *Stay {
	buyer := p.buyerOf(w)
	if posts[buyer] == nil {
		posts[buyer] = map[int64]*Wait{}
	}
	for _, s := range p.byBuyer[buyer] {
		if s.Entered > from && s.Entered <= to && posts[buyer][s.Entered] == nil && s.Cell == w.Line.Cell() && s.Quantity == w.Line.Qty {
			posts[buyer][s.Entered] = w
			return s
		}
	}
	return nil
}

// since is the earliest moment at which an answer can have been true that a person is not on the list: not before the
// entry of which the person has heard, even if the edge does not know of it yet.
func (p *People) since(told []*Wait, w *Wait, from int64) int64 {
	if w.Method == "POST" {
		return from
	}
	for _, t := range told {
		if t.Heard >= w.Sent {
			break
		}
		for _, s := range p.byBuyer[p.buyerOf(w)] {
			if s.Entered > from && t.Status == 201 && s.Cell == t.Line.Cell() && s.Quantity == t.Line.Qty {
				from = s.Entered
				break
			}
		}
	}
	return from
}

// endingHolds reports whether after a movement a person was not on the list, and the last entry had ended for the
// reason that is told.
func (p *People) endingHolds(w *Wait, seq int64) bool {
	var last *Stay
	for _, s := range p.byBuyer[p.buyerOf(w)] {
		if s.Entered <= seq {
			last = s
		}
	}
	switch {
	case last == nil:
		return w.Why == ""
	case !last.endedAt(seq):
		return w.Why == "closed" && p.statusAt[seq] == "closed"
	}
	return w.Why == "" || w.Why == last.Why
}

// stands reports whether an answer is where a person stood after a movement.
func (p *People) stands(buyer string, w *Wait, seq int64) bool {
	var s *Stay
	for _, one := range p.byBuyer[buyer] {
		if one.listedAt(seq) {
			s = one
		}
	}
	if s == nil || s.Cell != (Line{SKU: w.SKU, Region: w.Region}).Cell() {
		return false
	}
	if w.State == "waiting" {
		return s.waitsAt(seq) && w.Quantity == s.Quantity && (w.Method == "POST" || w.Place == p.placeAt(s, seq))
	}
	if w.State != "offered" || !s.offeredAt(seq) || w.Quantity != s.Units {
		return false
	}
	exp := time.UnixMilli(s.untilAt(seq))
	if w.Method == "POST" || w.Until.IsZero() {
		return true
	}
	return w.Until.Truncate(time.Second).Equal(exp.Truncate(time.Second)) && exp.Year() < farYear
}

// farYear: until then an offer is open that a pause keeps open, which is not its deadline.
const farYear = 2050

// placeAt is how many people, with one who waits, had not been offered units before that one after a movement.
func (p *People) placeAt(s *Stay, seq int64) (place int64) {
	for _, other := range p.Stays {
		if other.Cell == s.Cell && other.Number <= s.Number && other.waitsAt(seq) {
			place++
		}
	}
	return place
}

// judgeNotYourTurn: a buyer hears that it is not the buyer's turn only while people wait.
func (p *People) judgeNotYourTurn(h *History) (found []Violation) {
	for _, a := range h.Attempts {
		if a.Heard == 0 || a.Reason != "not_your_turn" || !p.sells(a.Lines) {
			continue
		}
		from, to := h.span(p.list.Sale, a.Sent, a.Heard, true, p.end)
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
		from, to := h.span(p.list.Sale, a.Sent, a.Heard, false, p.end)
		for _, s := range stays {
			if s.Cell == a.Lines[0].Cell() && s.Units >= a.Lines[0].Qty && s.offeredAt(from) && s.offeredAt(to) {
				found = append(found, broken(InTurn, "a buyer heard %s while units were held for the buyer", a.Reason).with(a, s))
			}
		}
	}
	return found
}

// judgeTold: of each entry that a person was told a movement tells.
func (p *People) judgeTold(h *History) (found []Violation) {
	posts := map[string]map[int64]*Wait{}
	for _, w := range h.Waits {
		if w.Sale == p.list.Sale && w.Heard > 0 && w.Method == "POST" && w.Status == 201 && p.enteredBy(w, 0, p.end, posts) == nil {
			found = append(found, broken(WaitlistSay, "%s was told an entry at %s, of which no movement tells", w.Buyer, w.Edge))
		}
	}
	return found
}

// hashes are the keyed hashes of buyers, as their places tell them, and of their phones.
func (p *People) hashes(h *History) (buyers, phones map[string]string) {
	buyers, phones = map[string]string{}, map[string]string{}
	for _, w := range h.Waits {
		if w.Method != "POST" || w.Status != 201 || w.Sale != p.list.Sale {
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
