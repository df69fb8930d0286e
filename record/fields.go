package record

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// RecordFields is a reservation's record as lua/shard.lua keeps it, nothing
// translated: what the journal carries where a reservation begins, and what makes it
// again.
type Record struct {
	State    State     `json:"state"`
	Deadline time.Time `json:"deadline,omitzero"`
	Exp      time.Time `json:"token_expires,omitzero"`
	Created  time.Time `json:"created,omitzero"`
	// Changed is since when it is in its state.
	Changed time.Time `json:"changed,omitzero"`
	Mode    Mode      `json:"mode,omitempty"`
	// Buyer is a keyed hash.
	Buyer string      `json:"buyer,omitempty"`
	Lines []CellUnits `json:"lines,omitempty"`
	// Charges are what it costs of purchase limits: "limit-field amount …".
	Charges string `json:"charges,omitempty"`
	Cause   string `json:"cause,omitempty"`
	// Version of the sale.
	Version int64 `json:"version,omitempty"`
	// Guard is the binding of its idempotency key ("k|…") or of its buyer and lines
	// ("d|…"), Print the hash of what was asked under the key, KeyTTL how long the key
	// stays bound at least.
	Guard  string        `json:"guard,omitempty"`
	Print  string        `json:"print,omitempty"`
	KeyTTL time.Duration `json:"key_ttl_ns,omitempty"`
	Ref    string        `json:"ref,omitempty"`
	Gate   string        `json:"gate,omitempty"`
	// Returned is what came back, in sum.
	Returned []CellUnits `json:"returned,omitempty"`
	Probes   string      `json:"-"`
	// Unpaid are the counters of unpaid holds that count it while it is not paid: "field …".
	Unpaid string `json:"unpaid,omitempty"`
}

// CellUnits is a number of units of one stock cell: sku or sku@region.
type CellUnits struct {
	Cell  string `json:"cell"`
	Units int64  `json:"units"`
}

// recordFields is how many fields a record has.
const recordFields = 19

var errRecord = errors.New("its record cannot be read: a newer stockgate may have written it, update this one")

// ParseRecord reads a record. Fields that an older edge has not written are empty.
func Parse(text string) (*Record, error) {
	f := strings.Split(text, "\t")
	if len(f) < 12 { // eleven fields, each with a tab after it
		return nil, errRecord
	}
	f = f[:len(f)-1]
	for len(f) < recordFields {
		f = append(f, "")
	}
	var failed error
	number := func(i int) int64 {
		if f[i] == "" {
			return 0
		}
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			failed = errRecord
		}
		return n
	}
	at := func(i int) time.Time { return TimeOf(number(i)) }
	lines := func(i int) []CellUnits {
		l, err := ParseUnits(f[i])
		if err != nil {
			failed = errRecord
		}
		return l
	}
	r := &Record{
		State: State(f[0]), Deadline: at(1), Exp: at(2), Created: at(3), Changed: at(4), Mode: Mode(f[5]), Buyer: f[6], Lines: lines(7),
		Charges: f[8], Cause: f[9], Version: number(10), Guard: f[11], Print: f[12], KeyTTL: time.Duration(number(13)) * time.Millisecond,
		Ref: f[14], Gate: f[15], Returned: lines(16), Probes: f[17], Unpaid: f[18],
	}
	return r, failed
}

// Text writes a record as ParseRecord reads it.
func (r *Record) Text() string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	at := func(t time.Time) string { return number(MsOf(t)) }
	return strings.Join([]string{
		string(r.State), at(r.Deadline), at(r.Exp), at(r.Created), at(r.Changed), string(r.Mode), r.Buyer, UnitsText(r.Lines), r.Charges, r.Cause,
		number(r.Version), r.Guard, r.Print, number(r.KeyTTL.Milliseconds()), r.Ref, r.Gate, UnitsText(r.Returned), r.Probes, r.Unpaid, "",
	}, "\t")
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

// UnitsText writes lines as ParseUnits reads them.
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

// timeOf is ms since 1970 as a time; 0: none.
func TimeOf(ms int64) (t time.Time) {
	if ms != 0 {
		t = time.UnixMilli(ms).UTC()
	}
	return t
}

// msOf is timeOf undone.
func MsOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Over says that nothing refers to a reservation any more: that it has ended without an order,
// and long enough ago at a time by Redis's clock. Redis may have forgotten it then.
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

// fields are the binding fields that a reservation names.
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

// Listed says in which sorted set of a shard a reservation is, named like the state that
// is listed there, and its score; empty: in none.
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
	// deadline: by the shop's own word, because it was never sent, or by force. It begins when the
	// reservation has ended and its token has expired too, so it is for what is still
	// under way, like that of tombstones.
	EndedFor = time.Hour
	// OverdueFor is how long it keeps one that has expired, or was released after its deadline:
	// the shop may have sold it, and may yet say so.
	OverdueFor = 7 * 24 * time.Hour
)
