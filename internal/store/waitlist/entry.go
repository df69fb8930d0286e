// Package waitlist lets people wait for units that others hold: when some come back, they are held for the person
// whose turn it is. The scripts enter, offer, accept and withdraw of package lua keep the list; every edge
// follows it in the journal, so that places are told from memory.
package waitlist

import (
	"strconv"
	"strings"
	"time"
)

// Entry is a person on the waiting list of a sale.
type Entry struct {
	// Number is the entry's: people who come later have higher ones.
	Number int64
	// Since is when the person entered, in ms by the shard's clock; 0: this edge does not know.
	Since int64
	// Cell is what the person waits for, and Quantity how many units; of an offer, how many are offered.
	Cell     string
	Quantity int64
	// Buyer is a hash. identities has the hashes of the person's other identities: " kind=hash …".
	Buyer      string
	identities string
	// Offered: units are held for this person until Until by Redis's own time; zero: the sale is paused, and the pause does
	// not count.
	Offered bool
	Until   time.Time
}

// Identity is the hash of one of the person's identities; empty: it has none of this kind.
func (e *Entry) Identity(kind string) string {
	for word := range strings.FieldsSeq(e.identities) {
		if hash, ok := strings.CutPrefix(word, kind+"="); ok {
			return hash
		}
	}
	return ""
}

// hashes calls yield for each hash by which the person is known.
func (e *Entry) hashes(yield func(string) bool) {
	if !yield(e.Buyer) {
		return
	}
	for word := range strings.FieldsSeq(e.identities) {
		if _, hash, ok := strings.Cut(word, "="); ok && !yield(hash) {
			return
		}
	}
}

// IdentitiesText writes the hashes of identities, by their kinds, as an entry has them.
func IdentitiesText(kinds []string, hash func(kind string) string) string {
	var b strings.Builder
	for _, kind := range kinds {
		if h := hash(kind); h != "" && kind != "buyer" {
			b.WriteString(" " + kind + "=" + h)
		}
	}
	return b.String()
}

// parseBlock reads the entries of a field e|block, as lua/waitlist.lua writes it. Lines that cannot be read are left
// out: another client has damaged them.
func parseBlock(text string) []*Entry {
	var out []*Entry
	for line := range strings.SplitSeq(text, "\n") {
		f := strings.SplitN(line, " ", 7)
		if len(f) < 6 {
			continue
		}
		number, failed := strconv.ParseInt(f[0], 10, 64)
		quantity, wrong := strconv.ParseInt(f[3], 10, 64)
		since, odd := strconv.ParseInt(f[4], 10, 64)
		if failed != nil || wrong != nil || odd != nil || number < 1 || quantity < 1 {
			continue
		}
		e := &Entry{Number: number, Since: since, Offered: f[1] == "o", Cell: f[2], Quantity: quantity, Buyer: f[5]}
		if len(f) == 7 {
			e.identities = " " + f[6]
		}
		out = append(out, e)
	}
	return out
}
