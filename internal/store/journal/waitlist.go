package journal

import (
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
)

// WaitlistStep is what a movement does to the waiting list of its sale.
type WaitlistStep struct {
	// Number is the entry's.
	Number int64
	// Enters: a person has entered. Cell, Quantity, Buyer and Identities (" kind=hash …") are the entry's then.
	Enters            bool
	Cell              string
	Quantity          int64
	Buyer, Identities string
	// Offered: units are offered to it, Quantity of them, until Until by Redis's own time; zero: the sale is paused, and the
	// pause does not count.
	Offered bool
	Until   time.Time
	// Ends is why the entry has ended; empty: it has not.
	Ends string
	// Pauses: an operator lets no more offers be made. Resumes: they go on. Neither is of an entry.
	Pauses, Resumes bool
}

// OfOffer reports whether a movement is of an offer to a person on the waiting list: a hold of which the shop knows nothing,
// see lua/waitlist.lua.
func (m *Movement) OfOffer() bool {
	number, since, ok := strings.Cut(strings.TrimPrefix(m.ID, "w"), ".")
	return ok && m.ID[0] == 'w' && isNumber(number) && isNumber(since)
}

func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// Waits returns what a movement does to the waiting list; false: nothing.
func (m *Moved) Waits() (w WaitlistStep, ok bool) {
	switch m.kind {
	case "offers_paused":
		return WaitlistStep{Pauses: true}, true
	case "offers_resumed":
		return WaitlistStep{Resumes: true}, true
	case "entered":
		w = WaitlistStep{Enters: true, Buyer: m.buyer, Identities: m.cause}
	case "left":
		w = WaitlistStep{Ends: m.cause}
	default:
		return m.offer()
	}
	var err error
	if w.Number, err = strconv.ParseInt(m.id, 10, 64); err != nil {
		return w, false
	}
	w.Cell, w.Quantity, err = oneLine(m.lines)
	return w, err == nil
}

// offer returns what the movement of an offer does.
func (m *Moved) offer() (w WaitlistStep, ok bool) {
	id, ok := strings.CutPrefix(m.id, "w")
	number, _, whole := strings.Cut(id, ".")
	if !ok || !whole {
		return w, false
	}
	var err error
	if w.Number, err = strconv.ParseInt(number, 10, 64); err != nil {
		return w, false
	}
	if m.record == "" {
		w.Ends = m.cause
		return w, w.Ends != ""
	}
	r, err := record.Parse(m.record)
	if err != nil || r.Mode != record.ModeOffer || r.State != record.Held || len(r.Lines) != 1 {
		return w, false
	}
	w.Offered, w.Cell, w.Quantity, w.Until = true, r.Lines[0].Cell, r.Lines[0].Units, OfferUntil(r)
	return w, true
}

// leastTime is the least exp of an offer that is a time: in a pause it is what is left of the offer, see lua/open_offers.lua.
const leastTime = 1_000_000_000_000

// OfferUntil is until when an offer lasts by Redis's own time; zero: its sale is paused, and the pause does not count.
func OfferUntil(r *record.Record) time.Time {
	if record.MsOf(r.Exp) < leastTime {
		return time.Time{}
	}
	return r.Exp
}

// oneLine reads "cell quantity".
func oneLine(text string) (cell string, quantity int64, err error) {
	cell, n, _ := strings.Cut(text, " ")
	quantity, err = strconv.ParseInt(n, 10, 64)
	return cell, quantity, err
}
