package record

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Record is a reservation's record as lua/shard.lua stores it, without any translation. The
// journal carries it where a reservation begins, and a reservation is recreated from it.
type Record struct {
	State    State     `json:"state"`
	Deadline time.Time `json:"deadline,omitzero"`
	Exp      time.Time `json:"token_expires,omitzero"`
	Created  time.Time `json:"created,omitzero"`
	// Changed is when it entered its state.
	Changed time.Time `json:"changed,omitzero"`
	Mode    Mode      `json:"mode,omitempty"`
	// Buyer is a keyed hash.
	Buyer string      `json:"buyer,omitempty"`
	Lines []CellUnits `json:"lines,omitempty"`
	// Charges is what it counts against purchase limits: "limit-field amount …".
	Charges string `json:"charges,omitempty"`
	Cause   string `json:"cause,omitempty"`
	// Version is that of the sale.
	Version int64 `json:"version,omitempty"`
	// Guard is the binding of its idempotency key ("k|…") or of its buyer and lines ("d|…").
	// Print is the hash of the request that came with the key. KeyTTL is how long the key stays
	// bound at least.
	Guard  string        `json:"guard,omitempty"`
	Print  string        `json:"print,omitempty"`
	KeyTTL time.Duration `json:"key_ttl_ns,omitempty"`
	Ref    string        `json:"ref,omitempty"`
	Gate   string        `json:"gate,omitempty"`
	// Returned is the sum of what was returned.
	Returned []CellUnits `json:"returned,omitempty"`
	Probes   string      `json:"-"`
	// Unpaid names the counters of unpaid holds that count it while it is not paid: "field …".
	Unpaid string `json:"unpaid,omitempty"`
}

// CellUnits is a number of units of one stock cell: sku or sku@region.
type CellUnits struct {
	Cell  string `json:"cell"`
	Units int64  `json:"units"`
}

// Field is the position of a field in a record's text, see [Record]. lua/changes.lua counts from 1.
type Field int

// The fields, in their order. Fields is their number.
const (
	FieldState Field = iota
	FieldDeadline
	FieldExp
	FieldCreated
	FieldChanged
	FieldMode
	FieldBuyer
	FieldLines
	FieldCharges
	FieldCause
	FieldVersion
	FieldGuard
	FieldPrint
	FieldKeyTTL
	FieldRef
	FieldGate
	FieldReturned
	FieldProbes
	FieldUnpaid
	Fields
)

var errRecord = errors.New("its record cannot be read: a newer stockgate may have written it, update this one")

// Parse reads a record. Fields that an older edge has not written are empty.
func Parse(text string) (*Record, error) {
	f := strings.Split(text, "\t")
	if len(f) <= int(FieldGuard) { // the first records ended with the version; a tab follows each field
		return nil, errRecord
	}
	f = f[:len(f)-1]
	for len(f) < int(Fields) {
		f = append(f, "")
	}
	var failed error
	number := func(i Field) int64 {
		if f[i] == "" {
			return 0
		}
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			failed = errRecord
		}
		return n
	}
	at := func(i Field) time.Time { return TimeOf(number(i)) }
	lines := func(i Field) []CellUnits {
		l, err := ParseUnits(f[i])
		if err != nil {
			failed = errRecord
		}
		return l
	}
	r := &Record{
		State: State(f[FieldState]), Deadline: at(FieldDeadline), Exp: at(FieldExp), Created: at(FieldCreated), Changed: at(FieldChanged),
		Mode: Mode(f[FieldMode]), Buyer: f[FieldBuyer], Lines: lines(FieldLines), Charges: f[FieldCharges], Cause: f[FieldCause],
		Version: number(FieldVersion), Guard: f[FieldGuard], Print: f[FieldPrint], KeyTTL: time.Duration(number(FieldKeyTTL)) * time.Millisecond,
		Ref: f[FieldRef], Gate: f[FieldGate], Returned: lines(FieldReturned), Probes: f[FieldProbes], Unpaid: f[FieldUnpaid],
	}
	return r, failed
}

// Text writes a record in the form that Parse reads.
func (r *Record) Text() string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	at := func(t time.Time) string { return number(MsOf(t)) }
	f := [...]string{
		FieldState: string(r.State), FieldDeadline: at(r.Deadline), FieldExp: at(r.Exp), FieldCreated: at(r.Created), FieldChanged: at(r.Changed),
		FieldMode: string(r.Mode), FieldBuyer: r.Buyer, FieldLines: UnitsText(r.Lines), FieldCharges: r.Charges, FieldCause: r.Cause,
		FieldVersion: number(r.Version), FieldGuard: r.Guard, FieldPrint: r.Print, FieldKeyTTL: number(r.KeyTTL.Milliseconds()),
		FieldRef: r.Ref, FieldGate: r.Gate, FieldReturned: UnitsText(r.Returned), FieldProbes: r.Probes, FieldUnpaid: r.Unpaid,
		Fields: "", // a tab follows the last field
	}
	return strings.Join(f[:], "\t")
}

// ParseUnits reads "cell quantity …".
func ParseUnits(text string) ([]CellUnits, error) {
	words := strings.Fields(text)
	if len(words)%2 != 0 {
		return nil, errors.New("its lines cannot be read")
	}
	var out []CellUnits
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i+1], 10, 64)
		if err != nil {
			return nil, errors.New("its lines cannot be read")
		}
		out = append(out, CellUnits{words[i], n})
	}
	return out, nil
}

// UnitsText writes lines in the form that ParseUnits reads.
func UnitsText(lines []CellUnits) string {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(l.Cell)
		b.WriteByte(' ')
		b.WriteString(strconv.FormatInt(l.Units, 10))
	}
	return b.String()
}

// Plain returns a text as a record has it: its control characters, one of which separates
// fields, are spaces. The scripts do the same.
func Plain(text string) string {
	control := func(c byte) bool { return c < ' ' || c == 0x7f }
	for i := range len(text) {
		if !control(text[i]) {
			continue
		}
		b := []byte(text)
		for j := i; j < len(b); j++ {
			if control(b[j]) {
				b[j] = ' '
			}
		}
		return string(b)
	}
	return text
}

// TimeOf converts ms since 1970 to a time; 0: none.
func TimeOf(ms int64) (t time.Time) {
	if ms != 0 {
		t = time.UnixMilli(ms).UTC()
	}
	return t
}

// MsOf is the inverse of TimeOf.
func MsOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Over says that nothing refers to a reservation any more: it has ended without an order, long
// enough before now by Redis's clock. Redis may have forgotten it then.
func (r *Record) Over(now time.Time) bool {
	if r.State != Released && r.State != Expired {
		return false
	}
	last, age := r.Changed, OverdueFor
	if r.Changed.Before(r.Deadline) {
		age = EndedFor
	}
	for _, at := range []time.Time{r.Deadline, r.Exp} {
		if at.After(last) {
			last = at
		}
	}
	return !now.Before(last.Add(age))
}

// StaysFound reports whether a reservation that has ended is still found by its ref, as in
// lua/bindings.lua.
func (r *Record) StaysFound() bool {
	return r.State == Expired || r.State == Released && (strings.HasPrefix(r.Cause, "webhook") || strings.HasPrefix(r.Cause, "api"))
}

// Fields are the binding fields that a reservation names.
func (r *Record) Fields() []string {
	var out []string
	if r.Guard != "" {
		out = append(out, r.Guard)
	}
	if r.Ref != "" {
		out = append(out, RefField(r.Buyer, r.Ref))
	}
	return out
}

// Listed returns the sorted set of a shard that lists a reservation, named like the state, and
// its score; empty: no set lists it.
func (r *Record) Listed() (State, time.Time) {
	switch r.State {
	case Held:
		return r.State, r.Deadline
	case InDoubt, Unbacked:
		return r.State, r.Changed
	}
	return "", time.Time{}
}

const (
	// EndedFor is how long Redis keeps the record of a reservation that was released before its
	// deadline: by the shop, because it was never sent, or by force. It begins when the
	// reservation has ended and its token has expired. Like the time of tombstones, it covers
	// requests that are still under way.
	EndedFor = time.Hour
	// OverdueFor is how long Redis keeps a reservation that has expired, or that was released
	// after its deadline: the shop may have sold it, and may yet report that.
	OverdueFor = 7 * 24 * time.Hour
)
