package sale

import (
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"
)

// Bounds and defaults of a waiting list.
const (
	LeastOffer, MostOffer, DefaultOffer = 30 * time.Second, 24 * time.Hour, 5 * time.Minute
	MostWaiting, DefaultWaiting         = 1_000_000, 200_000
)

// Waitlist lets people wait for units that others hold: what comes back is offered to them, in the order in which
// they came.
type Waitlist struct {
	// Offer is how long units are held for the person whose turn it is: 30s to 24h. Default: 5m.
	Offer Span `json:"offer"`
	// Max is how many people may be on the list: 1 to 1,000,000. Default: 200,000.
	Max int64 `json:"max"`
}

// KnownBy are the kinds of identities, beside the buyer, by which the sale knows a person on its waiting list: those that
// limits name. Who shares one of them is one person.
func (s *Sale) KnownBy() []string {
	var kinds []string
	for i := range s.Limits {
		for kind := range s.Limits[i].Per.All {
			if kind != "buyer" && !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}

// filled returns a copy with defaults in place of zeros.
func (w Waitlist) filled() Waitlist {
	if w.Offer == 0 {
		w.Offer = Span(DefaultOffer)
	}
	if w.Max == 0 {
		w.Max = DefaultWaiting
	}
	return w
}

// same reports whether two settings are equal.
func (w *Waitlist) same(other *Waitlist) bool {
	if w == nil || other == nil {
		return w == other
	}
	return w.filled() == other.filled()
}

// String is the setting in the form of the sale file.
func (w *Waitlist) String() string {
	if w == nil {
		return "none"
	}
	f := w.filled()
	return fmt.Sprintf("offer %s, max %d", f.Offer, f.Max)
}

// waitlistEntry is waitlist as it is written.
type waitlistEntry struct {
	offer field[Span]
	max   field[int64]
}

var waitlistFields = []string{"offer", "max"}

func (r *reader) waitlist(n *yaml.Node, path string) field[waitlistEntry] {
	var e waitlistEntry
	ok := r.mapping(n, path, waitlistFields, func(name string, v *yaml.Node) {
		switch path := path + "." + name; name {
		case "offer":
			e.offer = r.span(v, path)
		case "max":
			e.max = r.number(v, path)
		}
	})
	return field[waitlistEntry]{val: e, line: n.Line, set: true, bad: !ok}
}

// describeWaitlist gives a Go value the form of a file.
func describeWaitlist(w *Waitlist) field[waitlistEntry] {
	if w == nil {
		return field[waitlistEntry]{}
	}
	return given(waitlistEntry{offer: ifSet(w.Offer, w.Offer != 0), max: ifSet(w.Max, w.Max != 0)})
}

func (d *document) checkWaitlist(found *findings) {
	e := &d.waitlist.val
	if !d.waitlist.set || d.waitlist.bad {
		return
	}
	o := e.offer
	if o.set && !o.bad && (time.Duration(o.val) < LeastOffer || time.Duration(o.val) > MostOffer || time.Duration(o.val)%time.Second != 0) {
		found.add(o.line, "waitlist.offer", "must be %s to %s in whole seconds", Span(LeastOffer), Span(MostOffer))
	}
	if e.max.set {
		checkRange(found, e.max, "waitlist.max", 1, MostWaiting)
	}
}

// buildWaitlist makes the setting from a valid entry.
func buildWaitlist(f field[waitlistEntry]) *Waitlist {
	if !f.set {
		return nil
	}
	w := Waitlist{Offer: f.val.offer.val, Max: f.val.max.val}.filled()
	return &w
}
