package recovery

import (
	"strings"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// asked are all binding fields that a reservation may appear in.
func (t *expected) asked() []string {
	fields := t.Fields()
	if t.Ref != "" {
		first, others := (&record.ByName{Ref: t.Ref}).Fields()
		fields = append(fields, first, others)
	}
	return fields
}

// record returns a reservation's record as it must be stored, with the count of probes,
// which no movement has.
func (t *expected) record(probes string) string {
	r := t.Record
	r.Probes = probes
	return r.Text()
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
		return p.fields.State == t.State && p.fields.Changed.Equal(t.Changed)
	}
	want := t.record("")
	return p.text == want || ledger.Text(p.text) == ledger.Text(want)
}

// listed returns the sorted set in which a reservation must be, and its score; empty: none.
func listed(r *record.Record) (reservation.ShardPart, int64) {
	switch r.State {
	case record.Held:
		return reservation.PartDeadlines, record.MsOf(r.Deadline)
	case record.InDoubt:
		return reservation.PartInDoubt, record.MsOf(r.Changed)
	case record.Unbacked:
		return reservation.PartUnbacked, record.MsOf(r.Changed)
	case record.Tombstone:
		return reservation.PartTombstones, record.MsOf(r.Deadline)
	}
	return "", 0
}
