package auditor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

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
		if ok && w.State == "waiting" && w.Method == "GET" {
			ok = p.tellsLeft(w, from, to) && p.tellsPause(h, w)
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

// tellsLeft reports whether what an answer says of units that may come back was so at some time. Orders here may be for one unit.
func (p *People) tellsLeft(w *Wait, from, to int64) bool {
	left := p.leftAt[(Line{SKU: w.SKU, Region: w.Region}).Cell()]
	for seq := from; seq <= to; seq++ {
		if w.SoldOut == (at(left, seq) < 1) {
			return true
		}
	}
	return false
}

// tellsPause reports whether what an answer says of a pause was so at some time. An edge looks for the status of a sale.
func (p *People) tellsPause(h *History, w *Wait) bool {
	from, to := h.span(w.Sale, w.Sent, w.Heard, staleStatus, p.end)
	return slices.Contains(p.pausedAt[from:to+1], w.Paused)
}

// isAnswer reports whether a request of this sale was answered, and by more than that it is to be asked again.
func (p *People) isAnswer(w *Wait) bool {
	return w.Sale == p.list.Sale && w.Heard > 0 && w.Status < 500
}

// Span returns between which movements an answer was given. An edge knows places and the status of a sale from memory.
func (p *People) Span(h *History, w *Wait) (from, to int64) {
	var old time.Duration
	switch {
	case w.Method == "GET":
		old = stale
	case w.Reason == "paused", w.Reason == "closed":
		old = staleStatus
	}
	return h.span(w.Sale, w.Sent, w.Heard, old, p.end)
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
