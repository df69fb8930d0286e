package model

import "fmt"

// Record is one reservation, or a tombstone.
type Record struct {
	State                           State
	Deadline, Exp, Created, Changed int64
	Mode, Buyer, Cause              string
	Version                         int64
	Lines                           []Line
	Charges                         []Charge
	// Guard is the binding of a key or of a purchase without one, Print what was asked
	// under the key, KeyTTL how long at least it stays bound once confirmed.
	Guard, Print string
	KeyTTL       int64
	Ref, Gate    string
	Returned     []Line // in sum, in the order of Lines
	Probes       Probes
	// Unpaid are the counters that it is in while it is not paid.
	Unpaid []string
}

// left is what a confirmed reservation has not returned of a cell.
func (r *Record) left(cell string) int64 { return units(r.Lines, cell) - units(r.Returned, cell) }

// Text is a record as it is kept: its fields, each followed by a tab.
func (r *Record) Text() string {
	var charges []Line
	for _, c := range r.Charges {
		charges = append(charges, Line{c.Field, c.Amount})
	}
	probes := ""
	if p := r.Probes; p.Tries > 0 {
		probes = fmt.Sprintf("%d %d %d %d", p.Tries, p.Next, p.Absent, p.Counted)
	}
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t",
		r.State, r.Deadline, r.Exp, r.Created, r.Changed, r.Mode, r.Buyer, Words(r.Lines), Words(charges), r.Cause, r.Version,
		r.Guard, r.Print, r.KeyTTL, r.Ref, r.Gate, Words(r.Returned), probes, fields(r.Unpaid))
}

// Charge is what a reservation costs of a purchase limit.
type Charge struct {
	Field  string
	Amount int64
}

// plain is text without the characters that separate the fields of a record.
func plain(text string) string {
	b := []byte(text)
	for i, c := range b {
		if c < ' ' || c == 0x7f {
			b[i] = ' '
		}
	}
	return string(b)
}
