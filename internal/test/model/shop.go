package model

import (
	"slices"
	"strings"
)

// Extend makes a hold last for HoldFor from now, at most for Longest from its
// beginning. It never shortens one.
type Extend struct {
	ID               string
	HoldFor, Longest int64
}

// Run is the row "extend" of the table of outcomes.
func (o Extend) Run(s *Shard) Reply {
	r := s.find(o.ID)
	switch {
	case r == nil:
		return Reply{"not_found"}
	case r.State != Held:
		return Reply{"conflict", string(r.State)}
	}
	if r.waits() {
		return Reply{"conflict", string(Waiting)}
	}
	if r.Mode == offer {
		return Reply{"conflict", r.standsAs()}
	}
	if deadline := min(s.Now()+o.HoldFor, r.Changed+o.Longest); deadline > r.Deadline {
		s.putOff(o.ID, deadline, deadline-s.Lead-r.margin(), "")
	}
	return Reply{"ok", r.Deadline - s.Lead, r.Exp, s.Epoch, r.Created}
}

// Return takes units of a confirmed reservation back, once for each return id: on
// sale again with Restock, else out of stock. No lines: all that is left.
type Return struct {
	ID, Return string
	Restock    bool
	Cause      string
	Lines      []Line
}

// Run is the row "return".
func (o Return) Run(s *Shard) Reply {
	r := s.find(o.ID)
	switch {
	case r == nil:
		return Reply{"not_found"}
	case r.State != Confirmed:
		return Reply{"conflict", string(r.State)}
	}
	name := o.ID + "|" + o.Return
	if before, ok := s.Returns[name]; ok {
		all := len(o.Lines) == 0 && sameUnits(before.Answer, r.Lines)
		if before.Restock != o.Restock || !all && !sameUnits(before.Units, o.Lines) {
			return Reply{"key_reused"}
		}
		return Reply{"ok", Words(before.Answer)}
	}
	lines := o.Lines
	if len(lines) == 0 {
		if lines = r.remaining(); len(lines) == 0 {
			return Reply{"too_many", int64(0), int64(0)}
		}
	}
	for i, line := range lines {
		if units(lines[:i+1], line.Cell) > r.left(line.Cell) {
			return Reply{"too_many", int64(i + 1), r.left(line.Cell)}
		}
	}
	lines = r.inOrder(lines)
	r.Charges = r.chargesAfter(lines)
	r.Returned = r.inOrder(slices.Concat(r.Returned, lines))
	s.record(Entry{Kind: "returned", ID: o.ID, Was: Confirmed, Lines: lines, Buyer: r.Buyer, Cause: because(o.Return, o.Cause), Record: r.Text()})
	if !o.Restock {
		var gone []Line
		for _, line := range lines {
			s.Stock[line.Cell] -= line.Units
			gone = append(gone, Line{line.Cell, -line.Units})
		}
		s.write("adjusted", o.Return, gone, "", because(o.ID, o.Cause))
	}
	s.Returns[name] = Returned{o.Restock, lines, r.Returned}
	return Reply{"ok", Words(r.Returned)}
}

// because adds the other id of a return to its cause.
func because(id, cause string) string {
	if cause == "" {
		return id
	}
	return id + " " + cause
}

// Returned is a return: its lines and its answer.
type Returned struct {
	Restock       bool
	Units, Answer []Line
}

// remaining is all that has not been returned, each cell once.
func (r *Record) remaining() []Line {
	var lines []Line
	for _, line := range summed(r.Lines) {
		if n := r.left(line.Cell); n > 0 {
			lines = append(lines, Line{line.Cell, n})
		}
	}
	return lines
}

// inOrder adds up lines, each cell once, in the order of the reservation.
func (r *Record) inOrder(lines []Line) []Line {
	var sum []Line
	for _, line := range summed(r.Lines) {
		if n := units(lines, line.Cell); n > 0 {
			sum = append(sum, Line{line.Cell, n})
		}
	}
	return sum
}

// chargesAfter is what the reservation still costs of the limits once lines have
// come back: of units the rest, of orders nothing when nothing is left that they
// are about.
func (r *Record) chargesAfter(lines []Line) []Charge {
	var rest []Charge
	given := map[string]int64{} // to one counter the units go back once
	for _, c := range r.Charges {
		count, sku := c.about()
		var back, left int64
		for _, line := range r.remaining() {
			if concerns(sku, line.Cell) {
				left += line.Units
			}
		}
		for _, line := range lines {
			if concerns(sku, line.Cell) {
				back += line.Units
			}
		}
		switch {
		case back == 0:
		case count == "units":
			n := min(back-given[c.Field], c.Amount)
			given[c.Field] += n
			c.Amount -= n
		case count == "orders" && back == left:
			c.Amount = 0
		}
		if c.Amount > 0 {
			rest = append(rest, c)
		}
	}
	return rest
}

// about reads from a charge's field "per:every:count[:sku]|window|identity" what it
// counts, and of which SKU; empty: of all.
func (c Charge) about() (count, sku string) {
	id, _, _ := strings.Cut(c.Field, "|")
	parts := strings.Split(id, ":")
	if len(parts) < 3 {
		return "", ""
	}
	if len(parts) > 3 {
		sku = parts[3]
	}
	return parts[2], sku
}

// concerns reports whether a limit on a SKU, as it is escaped in a field, is about a
// cell. A region's cell is "sku@region".
func concerns(sku, cell string) bool {
	of, _, _ := strings.Cut(cell, "@")
	return sku == "" || sku == escaped(of)
}

// escaped writes a SKU as it stands in the name of a limit.
func escaped(sku string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
	var b strings.Builder
	for _, c := range []byte(sku) {
		if strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte("0123456789ABCDEF"[c>>4])
			b.WriteByte("0123456789ABCDEF"[c&15])
		}
	}
	return b.String()
}
