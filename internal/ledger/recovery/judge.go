package recovery

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// finding is what is wrong with a value, and what it must be.
type finding struct {
	reservation.Repair
	Difference
}

// batch are values that were examined at one moment; the history ends there too.
type batch struct {
	*run
	seen   *reservation.Examined
	values map[reservation.Named]reservation.KeyValue
	// stocks is the stock after each adjustment; computed on first use
	stocks map[string]adjusted
}

// judge returns what is wrong with a value; nil: nothing.
func (b *batch) judge(n reservation.Named) *finding {
	has := b.values[n]
	switch n.Part {
	case reservation.PartRecord:
		return b.judgeRecord(n, has)
	case reservation.PartCell:
		return b.judgeCell(n, has)
	case reservation.PartLimit:
		return b.judgeLimit(n, has)
	case reservation.PartUnpaid:
		return b.judgeUnpaid(n, has)
	case reservation.PartBinding:
		return b.judgeBinding(n, has)
	case reservation.PartAdjustment:
		return b.judgeAdjustment(n, has)
	case reservation.PartReturn:
		return b.judgeReturn(n, has)
	default:
		return b.judgeListed(n, has)
	}
}

// foreign is the likely cause where only Stockgate should have written.
const foreign = "something other than stockgate has changed or deleted it in redis"

// differs makes a repairable finding.
func (b *batch) differs(n reservation.Named, has, wanted reservation.KeyValue, text, repair, why string) *finding {
	return &finding{
		reservation.Repair{Named: n, Found: has, Wanted: wanted, Why: why},
		Difference{Kind: string(n.Part), Name: n.Name, Text: text, Cause: foreign, Repair: repair, Repairable: true},
	}
}

func value(text string) reservation.KeyValue { return reservation.KeyValue{Text: text, Found: true} }

var nothing reservation.KeyValue

func (b *batch) judgeRecord(n reservation.Named, has reservation.KeyValue) *finding {
	t := b.history.reservations[n.Name]
	p, readable := parse(has.Text)
	if t == nil {
		return b.judgeUnexpected(n, has, p, readable)
	}
	if has.Found && t.sameRecord(has.Text) || b.forgotten(t, has, p, readable) {
		return nil
	}
	text := fmt.Sprintf("reservation %s is missing from redis; it is %s", n.Name, t.State)
	switch {
	case has.Found && !readable:
		text = fmt.Sprintf("the record of reservation %s in redis cannot be read; it is %s", n.Name, t.State)
	case has.Found && p.fields.State != t.State:
		text = fmt.Sprintf("reservation %s is %s in redis; %s says that it is %s", n.Name, p.fields.State, b.report.source(), t.State)
	case has.Found:
		text = fmt.Sprintf("the record of reservation %s (%s) in redis is not what %s says", n.Name, t.State, b.report.source())
	}
	v := b.differs(n, has, value(t.record(p.probes)), text, "set the record to what "+b.report.source()+" says", "was "+stateWord(has, p, readable))
	v.Record = v.Wanted.Text
	if t.part {
		v.Repairable = false
		v.Difference.Repair = "none: the journal does not go back to where it was reserved. Compare it with the shop's order " + short(n.Name)
	}
	return v
}

// judgeUnexpected judges a record that no movement mentions.
func (b *batch) judgeUnexpected(n reservation.Named, has reservation.KeyValue, p parsed, readable bool) *finding {
	mark := b.values[reservation.Named{Part: reservation.PartTombstones, Name: n.Name}]
	at, marked := scoreOf(mark)
	switch {
	case readable && p.fields.State == record.Tombstone, !has.Found && !marked:
		return nil
	case marked:
		record := record.Record{State: record.Tombstone, Deadline: at, Cause: "repaired"}
		return b.differs(n, has, value(record.Text()), fmt.Sprintf("reservation %s was given up before it was made, and redis has forgotten that", n.Name),
			"see again that it is not reserved until its time is over", "was "+stateWord(has, p, readable))
	case b.report.Against == AgainstItself && !readable:
		v := b.differs(n, has, nothing, fmt.Sprintf("the record of reservation %s in redis cannot be read", n.Name),
			"none: nothing else tells what it was. Compare it with the shop's order", "")
		v.Repairable = false
		return v
	}
	return b.differs(n, has, nothing, fmt.Sprintf("redis has a reservation %s (%s) of which %s knows nothing", short(n.Name), stateWord(has, p, readable), b.report.source()),
		"delete its record", "was "+stateWord(has, p, readable))
}

// stateWord describes a record's state in one word.
func stateWord(has reservation.KeyValue, p parsed, readable bool) string {
	switch {
	case !has.Found:
		return "missing"
	case !readable:
		return "unreadable"
	}
	return string(p.fields.State)
}

// listNames describe the sorted sets.
var listNames = map[reservation.ShardPart]string{
	reservation.PartDeadlines: "the holds that have a deadline", reservation.PartInDoubt: "the holds in doubt",
	reservation.PartUnbacked: "the unbacked orders", reservation.PartTombstones: "the reservations that were given up before they were made",
}

func (b *batch) judgeListed(n reservation.Named, has reservation.KeyValue) *finding {
	part, at := b.listedAs(n.Name)
	list := "is not among " + listNames[n.Part]
	switch {
	case part != n.Part && !has.Found, part == n.Part && has.Found && sameScore(has.Text, at):
		return nil
	case part != n.Part && n.Part == reservation.PartTombstones && b.history.reservations[n.Name] == nil:
		return nil // its record is written again
	case part != n.Part:
		return b.differs(n, has, nothing, fmt.Sprintf("reservation %s is listed among %s and does not belong there", short(n.Name), listNames[n.Part]),
			"take it from that list", "was listed")
	case has.Found:
		list = "is listed with the wrong time among " + listNames[n.Part]
	}
	return b.differs(n, has, value(fmt.Sprint(at)), fmt.Sprintf("reservation %s %s: nothing would end it in time", short(n.Name), list),
		"list it where it belongs", "was "+map[bool]string{true: "at " + has.Text, false: "missing"}[has.Found])
}

// listedAs returns the sorted set in which a reservation must be, and its score.
func (b *batch) listedAs(id string) (reservation.ShardPart, int64) {
	has := b.values[reservation.Named{Part: reservation.PartRecord, Name: id}]
	p, ok := parse(has.Text)
	if t := b.history.reservations[id]; t != nil && !b.forgotten(t, has, p, ok) {
		return listed(&t.Record)
	}
	if ok && p.fields.State == record.Tombstone {
		return listed(p.fields)
	}
	return "", 0
}

func (b *batch) judgeCell(n reservation.Named, has reservation.KeyValue) *finding {
	is, readable := parseCell(n.Name, has.Text)
	want, known := b.history.total(n.Name)
	switch {
	case !b.history.stockKnown:
		if !readable {
			v := b.differs(n, has, nothing, fmt.Sprintf("cell %s in redis is missing or cannot be read", n.Name),
				"none: nothing else tells its stock. Apply the sale's file under another id, or restore redis", "")
			v.Repairable = false
			return v
		}
		want = b.cautious(want, is)
	case !known && !b.run.listed[n.Name] && (!has.Found || readable && is == want):
		return nil // an item that is no longer in the file
	case want == ledger.Cell{Name: n.Name} && !has.Found && !b.run.listed[n.Name]:
		return nil
	}
	if readable && is == want {
		return nil
	}
	text := fmt.Sprintf("cell %s is missing from redis: it cannot be bought; %s says %s", n.Name, b.report.source(), cellText(want))
	if readable {
		text = fmt.Sprintf("cell %s has %s in redis; %s says %s", n.Name, cellText(is), b.report.source(), cellText(want))
	} else if has.Found {
		text = fmt.Sprintf("cell %s in redis cannot be read; %s says %s", n.Name, b.report.source(), cellText(want))
	}
	return b.differs(n, has, value(packCell(want)), text, "set its counters to "+cellText(want)+", and what is sold meanwhile", "was "+valueWord(has))
}

// cautious returns what a cell must be whose stock no movement gives. The units of
// reservations are certain; of the rest, never more is put on sale than Redis has available.
func (b *batch) cautious(want, is ledger.Cell) ledger.Cell {
	out := want.Held + want.InDoubt + want.Confirmed
	want.Stock, want.Available = is.Stock, is.Stock-out
	if is.Stock != is.Available+is.Held+is.InDoubt+is.Confirmed && is.Available < want.Available {
		want.Available = max(is.Available, 0)
		want.Stock = want.Available + out
	}
	return want
}

func (b *batch) judgeLimit(n reservation.Named, has reservation.KeyValue) *finding {
	c := b.history.totals.Limits[n.Name]
	want := nothing
	if c.Charged > 0 {
		want = value(limitText(c))
	}
	if has == want || record.WindowOver(n.Name, b.seen.Now) {
		return nil
	}
	is := "nothing"
	if has.Found {
		is = counterWord(has.Text)
	}
	return b.differs(n, has, want, fmt.Sprintf("purchase limit %s has counted %s in redis; the reservations make it %s", n.Name, is, counterWord(limitText(c))),
		"count what the reservations say", "was "+valueWord(has))
}

// judgeUnpaid judges how many unpaid holds a counter has. When its other holds ended is
// not recorded in movements, and stays.
func (b *batch) judgeUnpaid(n reservation.Named, has reservation.KeyValue) *finding {
	held := b.history.totals.Unpaid[n.Name]
	is, times, ok := unpaidHolds(has.Text)
	if has.Found == (held > 0 || times != "") && ok && is == held {
		return nil
	}
	want := nothing
	if held > 0 || times != "" {
		want = value(strconv.FormatInt(held, 10) + times)
	}
	found := strconv.FormatInt(is, 10)
	if !ok {
		found = fmt.Sprintf("%.40q", has.Text)
	}
	return b.differs(n, has, want, fmt.Sprintf("the counter of unpaid holds %s has %s in redis; the reservations make it %d", n.Name, found, held),
		"count what the reservations say", "was "+valueWord(has))
}

// unpaidHolds reads a counter of unpaid holds, "held t1 t2 …"; an empty one has none.
// Times are returned as stored, with the leading space.
func unpaidHolds(text string) (held int64, times string, ok bool) {
	if text == "" {
		return 0, "", true
	}
	i := strings.IndexByte(text+" ", ' ')
	held, err := strconv.ParseInt(text[:i], 10, 64)
	return held, text[i:], err == nil
}

func counterWord(text string) string {
	charged, pending, ok := strings.Cut(text, " ")
	if !ok {
		return fmt.Sprintf("%.40q", text)
	}
	return charged + ", " + pending + " of them pending"
}

func (b *batch) judgeBinding(n reservation.Named, has reservation.KeyValue) *finding {
	if ref, ok := record.NamedField(n.Name); ok {
		return b.judgeByRef(n, has, ref)
	}
	owner := b.owner(n.Name, has.Text, b.seen)
	if has.Found == (owner != "") && has.Text == owner {
		return nil
	}
	what := "the key " + n.Name
	if t := b.history.reservations[cmp.Or(owner, has.Text)]; t != nil && record.RefField(t.Buyer, t.Ref) == n.Name {
		what = "the ref " + t.Ref + " of buyer " + t.Buyer
	}
	is := "belongs to no reservation in redis"
	if has.Found {
		is = "belongs to " + short(has.Text) + " in redis"
	}
	if owner == "" {
		return b.differs(n, has, nothing, fmt.Sprintf("%s %s, which does not name it", what, is), "free it", "was "+valueWord(has))
	}
	v := b.differs(n, has, value(owner), fmt.Sprintf("%s %s; it is that of reservation %s, which could be made a second time", what, is, owner),
		"bind it to "+owner, "was "+valueWord(has))
	v.Record = b.history.reservations[owner].record("")
	return v
}

// short cuts a name so that it fits into a sentence.
func short(name string) string {
	const most = 80
	if len(name) > most {
		return fmt.Sprintf("%q…", name[:most])
	}
	if strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// valueWord describes a value for the journal.
func valueWord(v reservation.KeyValue) string {
	if !v.Found {
		return "missing"
	}
	return short(v.Text)
}
