package model

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Waiter is a person on the waiting list, who waits for units of a cell, or has an offer of them.
type Waiter struct {
	Number, Since, Units int64
	Cell, Buyer          string
	// Identities are the other hashes by which the person is known: " kind=hash …".
	Identities string
	Offered    bool
}

// Waitlist is who waits for units.
type Waitlist struct {
	// Kept says that people have waited.
	Kept     bool
	Last     int64
	NoOffers int64 // since when an operator lets no offer be made; 0: offers are made
	// Counts are how many offers were made, and how many entries have ended, by why.
	Counts map[string]int64
	People []Waiter
}

// hashes are those by which a person is known.
func hashes(buyer, identities string) []string {
	all := []string{buyer}
	for word := range strings.FieldsSeq(identities) {
		_, hash, _ := strings.Cut(word, "=")
		all = append(all, hash)
	}
	return all
}

// of returns the numbers of the entries that have some of these hashes.
func (l *Waitlist) of(buyer, identities string) (numbers []int64) {
	for _, hash := range hashes(buyer, identities) {
		for i := range l.People {
			p := &l.People[i]
			if slices.Contains(hashes(p.Buyer, p.Identities), hash) && !slices.Contains(numbers, p.Number) {
				numbers = append(numbers, p.Number)
			}
		}
	}
	return numbers
}

// find returns a person by the number; nil: there is none.
func (l *Waitlist) find(number int64) *Waiter {
	for i := range l.People {
		if l.People[i].Number == number {
			return &l.People[i]
		}
	}
	return nil
}

func (l *Waitlist) take(number int64, why string) {
	l.People = slices.DeleteFunc(l.People, func(p Waiter) bool { return p.Number == number })
	if !slices.Contains([]string{"accepted", "lapsed", "left", "closed"}, why) {
		why = "other"
	}
	l.count(why)
}

func (l *Waitlist) count(what string) {
	l.Counts = maps.Clone(l.Counts)
	if l.Counts == nil {
		l.Counts = map[string]int64{}
	}
	l.Counts[what]++
}

// Enter puts a person on the list of a cell, which may have Most people.
type Enter struct {
	Cell              string
	Units, Most       int64
	Told              bool
	Buyer, Identities string
}

// buckets is how many fields the index has.
const buckets = 2048

// Run is one entry for each person.
func (o Enter) Run(s *Shard) Reply {
	if !s.Exists {
		return Reply{"no_sale"}
	}
	l := &s.Waitlist
	numbers := l.of(o.Buyer, o.Identities)
	switch {
	case len(numbers) > 1:
		return Reply{"two"}
	case len(numbers) == 1:
		return l.find(numbers[0]).told(s, 0)
	}
	c, ok := s.Cell(o.Cell)
	if !o.Told {
		if closed := (Reserve{}).window(s); closed != nil {
			return closed
		}
	}
	switch {
	case !ok:
		return Reply{"unknown"}
	case o.Told:
	case c.Available > 0 && !l.awaits(o.Cell):
		return Reply{"available", c.Available}
	case int64(len(l.People)) >= o.Most:
		return Reply{"full"}
	}
	l.Kept, l.Last = true, l.Last+1
	l.People = append(l.People, Waiter{Number: l.Last, Since: s.Now(), Units: o.Units, Cell: o.Cell, Buyer: o.Buyer, Identities: o.Identities})
	s.write("entered", strconv.FormatInt(l.Last, 10), []Line{{o.Cell, o.Units}}, o.Buyer, o.Identities)
	return l.find(l.Last).told(s, 1)
}

func (w *Waiter) told(s *Shard, isNew int64) Reply {
	state := "waits"
	if w.Offered {
		state = "offered"
	}
	return Reply{"ok", w.Number, state, w.Cell, w.Units, w.Since - s.Lead, isNew}
}

// awaits reports whether people wait for a cell who have no offer.
func (l *Waitlist) awaits(cell string) bool {
	return slices.ContainsFunc(l.People, func(p Waiter) bool { return p.Cell == cell && !p.Offered })
}

// turn refuses units for which people wait, beyond those that the hold gives back in whose place it is.
func (o Reserve) turn(s *Shard) Reply {
	if o.Told {
		return nil
	}
	for i, line := range o.Lines {
		if s.Waitlist.awaits(line.Cell) && line.Units > units(o.back, line.Cell) {
			return Reply{"not_your_turn", int64(i + 1)}
		}
	}
	return nil
}

// Withdraw takes a person off the list, by the number or, if that is 0, by the buyer.
type Withdraw struct {
	Number       int64
	Buyer, Cause string
}

// Run ends an offer too.
func (o Withdraw) Run(s *Shard) Reply {
	l := &s.Waitlist
	number := o.Number
	if known := l.of(o.Buyer, ""); number == 0 && len(known) > 0 {
		number = known[0]
	}
	p := l.find(number)
	if p == nil || o.Buyer != "" && o.Buyer != p.Buyer {
		return Reply{"not_found"}
	}
	if r := s.Records[p.offerID()]; p.Offered && r != nil && r.State == Held {
		s.become(p.offerID(), Released, o.Cause)
		return Reply{"ok"}
	}
	left := *p
	l.take(number, o.Cause)
	s.write("left", strconv.FormatInt(left.Number, 10), []Line{{left.Cell, left.Units}}, left.Buyer, o.Cause)
	return Reply{"ok"}
}

// Fields are what is kept of the list, as a hash has it.
func (l *Waitlist) Fields() map[string]string {
	f := map[string]string{}
	if !l.Kept {
		return f
	}
	number := func(name string, n int64) { f[name] = strconv.FormatInt(n, 10) }
	if l.Last > 0 {
		number("last", l.Last)
		number("live", int64(len(l.People)))
	}
	if l.NoOffers > 0 {
		number("paused", l.NoOffers)
	}
	for what, n := range l.Counts {
		number("n|"+what, n)
	}
	counts, offers := map[string][2]int64{}, map[int64]int{}
	for i := range l.People {
		p := &l.People[i]
		state, n := "w", counts[p.Cell]
		if p.Offered {
			state = "o"
			n[1]++
			offers[(p.Number-1)/32]++
		} else {
			n[0]++
		}
		counts[p.Cell] = n
		f[fmt.Sprintf("e|%d", (p.Number-1)/32)] += fmt.Sprintf("\n%d %s %s %d %d %s%s", p.Number, state, p.Cell, p.Units, p.Since, p.Buyer, p.Identities)
		for _, hash := range hashes(p.Buyer, p.Identities) {
			f[bucketOf(hash)] += fmt.Sprintf("\n%s %d", hash, p.Number)
		}
	}
	for _, block := range slices.Sorted(maps.Keys(offers)) {
		f["offers"] += fmt.Sprintf(" %d:%d", block, offers[block])
	}
	for cell, n := range counts {
		f["c|"+cell] = fmt.Sprintf("%d %d", n[0], n[1])
	}
	return f
}

// bucketOf is the field of the index that has a hash.
func bucketOf(hash string) string {
	sum := sha1.Sum([]byte(hash))
	n, err := strconv.ParseInt(hex.EncodeToString(sum[:3]), 16, 64)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("i|%d", n%buckets)
}

// checkPeople says what is wrong with the waiting list: a person who is on it twice, or an offer that is not held.
func (s *Shard) checkPeople() error {
	known := map[string]int64{}
	for i := range s.Waitlist.People {
		p := &s.Waitlist.People[i]
		for _, hash := range hashes(p.Buyer, p.Identities) {
			if other, twice := known[hash]; twice && other != p.Number {
				return fmt.Errorf("%s is of the entries %d and %d", hash, other, p.Number)
			}
			known[hash] = p.Number
		}
		r := s.Records[p.offerID()]
		held := r != nil && r.State == Held
		if held != p.Offered || held && (len(r.Lines) != 1 || r.Lines[0] != (Line{p.Cell, p.Units})) {
			return fmt.Errorf("the entry is %+v, and its offer %+v", *p, r)
		}
	}
	return nil
}
