package sale

import (
	"encoding/json"
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"
)

// Bounds of a sale's settings for unpaid holds.
const (
	MostUnpaid        = 100
	LeastUnpaidWithin = time.Second
	MostUnpaidWithin  = 7 * 24 * time.Hour
)

// Unpaid bounds the unpaid holds of one identity, so that a client cannot keep taking
// stock without buying it. A hold that is confirmed later no longer counts. The field
// names are those of the sale file; "off" stands for Off.
type Unpaid struct {
	// Off: nothing is counted, and the other fields are ignored.
	Off bool
	// Per are the identities that are counted, each by itself; any of them refuses.
	// Default: buyer.
	Per Identities
	// AtOnce is how many unpaid holds an identity may have at a time: 1 to 100. Default: 1.
	AtOnce int64
	// Ended is how many of its holds may have ended unpaid or in doubt during the last
	// Within before the attempt; at this number the next attempt is refused. 1 to 100.
	// Default: 2.
	Ended int64
	// Within is 1s to 168h. Default: 1h.
	Within Span
}

// defaultUnpaid is the default for holds that the shop confirms later.
var defaultUnpaid = &Unpaid{Per: "buyer", AtOnce: 1, Ended: 2, Within: Span(time.Hour)}

// UnpaidOf returns the bounds on an attempt's unpaid holds; nil: there are none. The
// sale's setting applies to every attempt. Without one the default applies, but only to
// holds that the shop confirms later (outcome backend).
func (s *Sale) UnpaidOf(confirmedLater bool) *Unpaid {
	switch u := s.Unpaid; {
	case u == nil && confirmedLater:
		return defaultUnpaid
	case u == nil || u.Off:
		return nil
	default:
		return u.filled()
	}
}

// filled returns a copy with defaults in place of zeros.
func (u *Unpaid) filled() *Unpaid {
	if u.Off || u.Per != "" && u.AtOnce != 0 && u.Ended != 0 && u.Within != 0 {
		return u
	}
	out := *u
	if out.Per == "" {
		out.Per = defaultUnpaid.Per
	}
	if out.AtOnce == 0 {
		out.AtOnce = defaultUnpaid.AtOnce
	}
	if out.Ended == 0 {
		out.Ended = defaultUnpaid.Ended
	}
	if out.Within == 0 {
		out.Within = defaultUnpaid.Within
	}
	return &out
}

// same reports whether two settings are equal.
func (u *Unpaid) same(other *Unpaid) bool {
	if u == nil || other == nil || u.Off || other.Off {
		return u == other || u != nil && other != nil && u.Off == other.Off
	}
	return *u.filled() == *other.filled()
}

// String is the setting in the form of the sale file.
func (u *Unpaid) String() string {
	switch {
	case u == nil:
		return "default"
	case u.Off:
		return "off"
	}
	u = u.filled()
	return fmt.Sprintf("per %s, at_once %d, ended %d within %s", u.Per, u.AtOnce, u.Ended, u.Within)
}

// unpaidJSON is the JSON form.
type unpaidJSON struct {
	Per    Identities `json:"per"`
	AtOnce int64      `json:"at_once"`
	Ended  int64      `json:"ended"`
	Within Span       `json:"within"`
}

// MarshalJSON writes "off" or a mapping with all fields.
func (u Unpaid) MarshalJSON() ([]byte, error) {
	if u.Off {
		return []byte(`"off"`), nil
	}
	u = *u.filled()
	return json.Marshal(unpaidJSON{u.Per, u.AtOnce, u.Ended, u.Within})
}

// UnmarshalJSON reads what MarshalJSON wrote. Whether its values are allowed is for Decode
// and New to say.
func (u *Unpaid) UnmarshalJSON(data []byte) error {
	if string(data) == `"off"` {
		*u = Unpaid{Off: true}
		return nil
	}
	var in unpaidJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("unpaid: must be off or a mapping: %w", err)
	}
	*u = Unpaid{Per: in.Per, AtOnce: in.AtOnce, Ended: in.Ended, Within: in.Within}
	return nil
}

// unpaidEntry is unpaid as it is written.
type unpaidEntry struct {
	line          int
	off, bad      bool
	per           field[[]field[string]]
	union         bool // per is written as a list
	atOnce, ended field[int64]
	within        field[Span]
}

var unpaidFields = []string{"per", "at_once", "ended", "within"}

func (r *reader) unpaid(n *yaml.Node, path string) field[unpaidEntry] {
	e := unpaidEntry{line: n.Line}
	switch {
	case n.Kind == yaml.ScalarNode && n.Value == "off":
		e.off = true
	case n.Kind == yaml.ScalarNode:
		r.add(n.Line, path, "must be off or a mapping such as {per: buyer, at_once: 1, ended: 2, within: 1h}, not %s", form(n))
		e.bad = true
	default:
		e.bad = !r.mapping(n, path, unpaidFields, func(name string, v *yaml.Node) {
			switch path := path + "." + name; name {
			case "per":
				e.per, e.union = r.identities(v, path)
			case "at_once":
				e.atOnce = r.number(v, path)
			case "ended":
				e.ended = r.number(v, path)
			case "within":
				e.within = r.span(v, path)
			}
		})
	}
	return field[unpaidEntry]{val: e, line: n.Line, set: true, bad: e.bad}
}

// describeUnpaid gives a Go value the form of a file.
func describeUnpaid(u *Unpaid) field[unpaidEntry] {
	switch {
	case u == nil:
		return field[unpaidEntry]{}
	case u.Off:
		return given(unpaidEntry{off: true})
	}
	e := unpaidEntry{
		union: u.Per.IsUnion(), atOnce: ifSet(u.AtOnce, u.AtOnce != 0), ended: ifSet(u.Ended, u.Ended != 0), within: ifSet(u.Within, u.Within != 0),
	}
	for kind := range u.Per.All {
		e.per.set = true
		e.per.val = append(e.per.val, given(kind))
	}
	return given(e)
}

func (d *document) checkUnpaid(found *findings) {
	e := &d.unpaid.val
	if !d.unpaid.set || d.unpaid.bad || e.off {
		return
	}
	if e.per.set {
		checkPer(found, e.per, e.union, e.line, "unpaid.per")
	}
	if e.atOnce.set {
		checkRange(found, e.atOnce, "unpaid.at_once", 1, MostUnpaid)
	}
	if e.ended.set {
		checkRange(found, e.ended, "unpaid.ended", 1, MostUnpaid)
	}
	w := e.within
	if w.set && !w.bad && (time.Duration(w.val) < LeastUnpaidWithin || time.Duration(w.val) > MostUnpaidWithin || time.Duration(w.val)%time.Second != 0) {
		found.add(w.line, "unpaid.within", "must be %s to %s in whole seconds", Span(LeastUnpaidWithin), Span(MostUnpaidWithin))
	}
}

// buildUnpaid makes the setting from a valid entry.
func buildUnpaid(f field[unpaidEntry]) *Unpaid {
	e := &f.val
	switch {
	case !f.set:
		return nil
	case e.off:
		return &Unpaid{Off: true}
	}
	kinds := make([]string, len(e.per.val))
	for i, kind := range e.per.val {
		kinds[i] = kind.val
	}
	u := Unpaid{Per: Union(kinds...), AtOnce: e.atOnce.val, Ended: e.ended.val, Within: e.within.val}
	return u.filled()
}
