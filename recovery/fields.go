package recovery

import (
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/ledger"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/reservation"
)

// fields are the fields of a record that other keys depend on.
type fields struct{ mode, buyer, lines, charges, guard, keyTTL, ref, gate, returned, unpaid string }

// fieldsOf reads the fields of a record without allocating.
func fieldsOf(text string) (f fields) {
	for place := record.FieldState; text != ""; place++ {
		field, rest, _ := strings.Cut(text, "\t")
		switch place {
		case record.FieldMode:
			f.mode = field
		case record.FieldBuyer:
			f.buyer = field
		case record.FieldLines:
			f.lines = field
		case record.FieldCharges:
			f.charges = field
		case record.FieldGuard:
			f.guard = field
		case record.FieldKeyTTL:
			f.keyTTL = field
		case record.FieldRef:
			f.ref = field
		case record.FieldGate:
			f.gate = field
		case record.FieldReturned:
			f.returned = field
		case record.FieldUnpaid:
			f.unpaid = field
		}
		text = rest
	}
	return f
}

// bindings are the binding fields that a reservation asks for exclusively; some are empty.
func (f *fields) bindings() [2]string {
	return [2]string{f.guard, record.RefField(f.buyer, f.ref)}
}

// asked are all binding fields that it may appear in.
func (f *fields) asked() [4]string {
	out := [4]string{f.guard, record.RefField(f.buyer, f.ref)}
	if f.ref != "" {
		out[2], out[3] = (&record.ByName{Ref: f.ref}).Fields()
	}
	return out
}

// eachPair calls yield for each pair of "name n name n …".
func eachPair(text string, yield func(name string, n int64)) {
	for text != "" {
		var name, number string
		name, text, _ = strings.Cut(text, " ")
		number, text, _ = strings.Cut(text, " ")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			yield(name, n)
		}
	}
}

// record returns a reservation's record as it must be stored, with the count of probes,
// which no movement has.
func (t *expected) record(probes string) string {
	f := strings.Split(t.text, "\t")
	f[record.FieldState], f[record.FieldChanged], f[record.FieldCause], f[record.FieldProbes] = string(t.state), strconv.FormatInt(t.changed, 10), t.cause, probes
	return strings.Join(f, "\t")
}

// parsed is a record in Redis, in the form that a movement has.
type parsed struct {
	text   string
	probes string
	fields *record.Record
}

func parse(text string) (p parsed, ok bool) {
	r, err := record.Parse(text)
	if err != nil || !states[r.State] || !strings.HasSuffix(text, "\t") {
		return p, false
	}
	p.probes, p.fields = r.Probes, r
	r.Probes = ""
	p.text = r.Text()
	return p, true
}

// states are those that a record may have.
var states = map[record.State]bool{
	record.Held: true, record.InDoubt: true, record.Confirmed: true, record.Released: true, record.Expired: true,
	record.Unbacked: true, record.Tombstone: true,
}

// sameRecord reports whether Redis has the expected record. Texts are compared in the form
// that databases store.
func (t *expected) sameRecord(text string) bool {
	p, ok := parse(text)
	if !ok {
		return false
	}
	if t.part {
		return p.fields.State == t.state && record.MsOf(p.fields.Changed) == t.changed
	}
	want := t.record("")
	return p.text == want || ledger.Text(p.text) == ledger.Text(want)
}

// listed returns the sorted set in which a reservation must be, and its score; empty: none.
func listed(state record.State, deadline, changed int64) (reservation.Part, int64) {
	switch state {
	case record.Held:
		return reservation.PartDeadlines, deadline
	case record.InDoubt:
		return reservation.PartInDoubt, changed
	case record.Unbacked:
		return reservation.PartUnbacked, changed
	case record.Tombstone:
		return reservation.PartTombstones, deadline
	}
	return "", 0
}

// deadline returns the deadline in the record, in ms.
func (t *expected) deadline() int64 {
	f := strings.SplitN(t.text, "\t", 3)
	if len(f) < 3 {
		return 0
	}
	n, _ := strconv.ParseInt(f[1], 10, 64)
	return n
}
