package auditor

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Stay is an entry of a waiting list, from the movement by which its person entered to the one that has ended it.
type Stay struct {
	Number   int64
	Buyer    string            // keyed hash
	Others   map[string]string // keyed hashes of other identities, by their kinds
	Cell     string
	Quantity int64
	Entered  int64 // number of the movement, as in the next two; 0: there is none
	Offered  int64
	Units    int64 // that were offered
	Ended    int64
	Why      string
	untils   []until
}

// until is when an offer ends, from a movement on. In a pause it is ages ahead.
type until struct{ seq, exp int64 }

func (s *Stay) String() string {
	return fmt.Sprintf("entry %d of %s for %d of %s: entered by movement %d, offered %d by %d, ended by %d: %s", s.Number, s.Buyer, s.Quantity, s.Cell, s.Entered, s.Units, s.Offered, s.Ended, s.Why)
}

// waitsAt and offeredAt tell where the entry stood after a movement.
func (s *Stay) waitsAt(seq int64) bool {
	return s.Entered <= seq && (s.Offered == 0 || s.Offered > seq) && !s.endedAt(seq)
}

func (s *Stay) offeredAt(seq int64) bool {
	return s.Offered > 0 && s.Offered <= seq && !s.endedAt(seq)
}

func (s *Stay) endedAt(seq int64) bool { return s.Ended > 0 && s.Ended <= seq }

func (s *Stay) listedAt(seq int64) bool { return s.Entered <= seq && !s.endedAt(seq) }

// untilAt is the end of an offer as it was after a movement.
func (s *Stay) untilAt(seq int64) (exp int64) {
	for _, u := range s.untils {
		if u.seq <= seq {
			exp = u.exp
		}
	}
	return exp
}

// People are those who waited in a sale, as the movements tell it.
type People struct {
	Stays []*Stay // in the order in which they entered

	list     Waitlist
	end      int64              // number of the last movement
	live     map[int64]*Stay    // by number
	known    map[string]*Stay   // by hash
	byBuyer  map[string][]*Stay // all stays
	replayed *Replayed
	waiting  map[string]int64
	last     Movement
	status   string
	stopped  bool // an operator lets no offers be made
	found    []Violation
	buyers   map[string]string // keyed hashes, by names
	phones   map[string]string

	// after each movement, by its number: what is free of each cell, what of it is not sold, how many wait for it, how many are
	// on the list
	freeAt, leftAt, waitingAt map[string][]int64
	liveAt                    []int64
	statusAt                  []string
	pausedAt                  []bool           // no offers are made
	idle                      map[string]int64 // since when a unit of a cell is free and awaited
	longest                   time.Duration
}

var offerID = regexp.MustCompile(`^w(\d+)\.\d+$`)

// ReplayPeople follows the people of a sale through its movements, the first of which has the number 1.
func ReplayPeople(list Waitlist, movements []Movement) *People {
	empty, _ := Replay(list.Sale, nil)
	p := &People{list: list, live: map[int64]*Stay{}, known: map[string]*Stay{}, byBuyer: map[string][]*Stay{}, replayed: empty, waiting: map[string]int64{},
		freeAt: map[string][]int64{}, leftAt: map[string][]int64{}, waitingAt: map[string][]int64{}, liveAt: []int64{0}, statusAt: []string{""}, pausedAt: []bool{false}, idle: map[string]int64{}}
	for _, m := range movements {
		p.end = m.Seq
		p.step(m)
		p.replayed.move(m)
		p.last = m
		p.note(m)
	}
	p.judgeTurns()
	return p
}

func (p *People) wrong(promise, format string, args ...any) {
	p.found = append(p.found, broken(promise, format, args...).with(p.last))
}

// step does to the list what a movement says.
func (p *People) step(m Movement) {
	switch m.Kind {
	case "open", "paused", "closed":
		p.status = m.Kind
	case "offers_paused", "offers_resumed":
		p.stopped = m.Kind == "offers_paused"
	case "entered":
		p.enters(m)
	case "left":
		number, _ := strconv.ParseInt(m.ID, 10, 64)
		if s := p.live[number]; s == nil || s.Offered > 0 {
			p.wrong(OneEntry, "sale %s: movement %d takes entry %s off the list, which does not wait", p.list.Sale, m.Seq, m.ID)
		} else {
			p.ends(s, m)
		}
	default:
		if match := offerID.FindStringSubmatch(m.ID); match != nil {
			number, _ := strconv.ParseInt(match[1], 10, 64)
			p.offers(m, number)
		} else if m.Kind == "held" && m.Was == "" && !p.list.ToldAgain {
			p.judgeOvertaking(m)
		}
	}
}

func (p *People) enters(m Movement) {
	number, err := strconv.ParseInt(m.ID, 10, 64)
	if err != nil || len(m.Lines) != 1 {
		p.wrong(OneEntry, "sale %s: a person entered without a number or an item: %v", p.list.Sale, m)
		return
	}
	s := &Stay{Number: number, Buyer: m.Buyer, Others: map[string]string{}, Cell: m.Lines[0].Cell, Quantity: m.Lines[0].Qty, Entered: m.Seq}
	for _, word := range strings.Fields(m.Cause) {
		kind, hash, _ := strings.Cut(word, "=")
		s.Others[kind] = hash
	}
	for hash := range s.hashes {
		if other := p.known[hash]; other != nil {
			p.wrong(OneEntry, "sale %s: movement %d makes an entry of a person who has one: %v", p.list.Sale, m.Seq, other)
		}
		p.known[hash] = s
	}
	if p.live[number] != nil {
		p.wrong(OneEntry, "sale %s: two entries have the number %d", p.list.Sale, number)
	}
	p.live[number], p.Stays = s, append(p.Stays, s)
	p.byBuyer[s.Buyer] = append(p.byBuyer[s.Buyer], s)
	p.waiting[s.Cell]++
}

func (s *Stay) hashes(yield func(string) bool) {
	if !yield(s.Buyer) {
		return
	}
	for _, hash := range s.Others {
		if !yield(hash) {
			return
		}
	}
}

func (p *People) ends(s *Stay, m Movement) {
	s.Ended, s.Why = m.Seq, m.Cause
	delete(p.live, s.Number)
	for hash := range s.hashes {
		if p.known[hash] == s {
			delete(p.known, hash)
		}
	}
	if s.Offered == 0 {
		p.waiting[s.Cell]--
	}
}

// offers follows the hold that is the offer to an entry.
func (p *People) offers(m Movement, number int64) {
	s := p.live[number]
	exp, _ := strconv.ParseInt(recordField(m.Record, 3), 10, 64)
	switch {
	case m.Kind == "held" && (s == nil || s.Offered > 0):
		p.wrong(InTurn, "sale %s: movement %d offers units to entry %d, which does not wait", p.list.Sale, m.Seq, number)
	case m.Kind == "held" && (len(m.Lines) != 1 || m.Lines[0].Cell != s.Cell || m.Lines[0].Qty > s.Quantity || recordField(m.Record, 6) != "offer"):
		p.wrong(InTurn, "sale %s: movement %d offers what the person does not wait for: %v", p.list.Sale, m.Seq, s)
	case m.Kind == "held":
		s.Offered, s.Units = m.Seq, m.Lines[0].Qty
		s.untils = append(s.untils, until{m.Seq, exp})
		p.waiting[s.Cell]--
	case s == nil || s.Offered == 0:
		p.wrong(InTurn, "sale %s: movement %d is of an offer that is over, or was not made", p.list.Sale, m.Seq)
	case m.Kind == "extended":
		s.untils = append(s.untils, until{m.Seq, exp})
	case m.Kind == "released":
		p.ends(s, m)
	default:
		p.wrong(InTurn, "sale %s: movement %d sells an offer as if it were an order", p.list.Sale, m.Seq)
	}
}

// judgeOvertaking looks at an order: people who wait for its units are not overtaken, unless it accepts an offer by the
// movement before.
func (p *People) judgeOvertaking(m Movement) {
	accepts := map[string]int64{}
	if p.last.Kind == "released" && p.last.Cause == "accepted" && offerID.MatchString(p.last.ID) {
		for _, l := range p.last.Lines {
			accepts[l.Cell] += l.Qty
		}
	}
	for _, l := range m.Lines {
		if p.waiting[l.Cell] > 0 && l.Qty > accepts[l.Cell] {
			p.found = append(p.found, broken(InTurn, "sale %s: movement %d holds %d units of cell %s, for which %d people wait", p.list.Sale, m.Seq, l.Qty, l.Cell, p.waiting[l.Cell]).with(p.last, m))
		}
	}
}

// note keeps what there is after a movement.
func (p *People) note(m Movement) {
	for int64(len(p.liveAt)) <= m.Seq {
		p.liveAt, p.statusAt = append(p.liveAt, int64(len(p.live))), append(p.statusAt, p.status)
		p.pausedAt = append(p.pausedAt, p.stopped || p.status == "paused")
	}
	for name, cell := range p.replayed.Cells {
		for int64(len(p.freeAt[name])) <= m.Seq {
			p.freeAt[name], p.waitingAt[name] = append(p.freeAt[name], cell.Available), append(p.waitingAt[name], p.waiting[name])
			p.leftAt[name] = append(p.leftAt[name], cell.Stock-cell.Confirmed)
		}
		idle := cell.Available > 0 && p.waiting[name] > 0 && p.status == "open" && !p.stopped
		if since := p.idle[name]; since == 0 && idle {
			p.idle[name] = m.Time
		} else if since > 0 {
			p.longest = max(p.longest, time.Duration(m.Time-since)*time.Millisecond)
			if !idle {
				delete(p.idle, name)
			}
		}
	}
}

// LongestIdle is the longest time for which a unit was free while a person waited for it, as far as movements tell.
func (p *People) LongestIdle() time.Duration { return p.longest }

// Idle are the cells of which units are free and awaited in the end.
func (p *People) Idle() []string { return slices.Sorted(maps.Keys(p.idle)) }

// leftByRule reports whether an entry could not get an offer because its person may not buy.
func (s *Stay) leftByRule() bool {
	return s.Offered == 0 && s.Ended > 0 && s.Why != "left" && s.Why != "closed"
}

// judgeTurns: who came first is offered units first.
func (p *People) judgeTurns() {
	if p.list.ToldAgain {
		return
	}
	cells := map[string][]*Stay{}
	for _, s := range p.Stays {
		cells[s.Cell] = append(cells[s.Cell], s)
	}
	for _, stays := range cells {
		slices.SortFunc(stays, func(a, b *Stay) int { return int(a.Number - b.Number) })
		for i, s := range stays {
			if s.Offered == 0 {
				continue
			}
			for _, first := range stays[:i] {
				if first.waitsAt(s.Offered) && !first.leftByRule() {
					p.found = append(p.found, broken(InTurn, "sale %s: units were offered to one who came later", p.list.Sale).with(s, first))
					break
				}
			}
		}
	}
}
