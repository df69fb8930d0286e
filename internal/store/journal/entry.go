package journal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// entry is one entry of a journal's stream: the movements of one call of a script, all made at
// the same time. Its id is the number of the last of them.
type entry struct {
	Last      int64
	time      string // ms
	Movements []Moved
}

// Moved is one movement as the scripts write it.
type Moved struct {
	Seq                                        int64
	kind, id, was, lines, buyer, cause, record string
}

// journalFormat is the version of the entries.
const journalFormat = "1"

// EntryOf reads an entry as lua/flush.lua writes it.
func EntryOf(m shard.Entry) (entry, error) {
	field := func(name string) string {
		v, _ := m.Values[name].(string)
		return v
	}
	if v := field("v"); v != journalFormat {
		return entry{}, fmt.Errorf("its format %q is not known: a newer stockgate has written it, update this one", v)
	}
	number, ok := strings.CutSuffix(m.ID, "-0")
	last, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil {
		return entry{}, errors.New("its id is not a number and -0: something else has written it")
	}
	text := field("movements")
	e := entry{last, field("time"), make([]Moved, 1+strings.Count(text, "\n"))}
	for i := range e.Movements {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		m := &e.Movements[i]
		if !m.read(line) {
			return entry{}, errors.New("its movements cannot be read: something else has written it")
		}
		m.Seq = last - int64(len(e.Movements)-1-i)
	}
	return e, nil
}

// Texts are an entry's time and movements as the scripts write them.
func Texts(m shard.Entry) (at, movements string) {
	at, _ = m.Values["time"].(string)
	movements, _ = m.Values["movements"].(string)
	return at, movements
}

// read parses a movement. Its last field, the record, has tabs of its own.
func (m *Moved) read(line string) (ok bool) {
	for _, field := range [...]*string{&m.kind, &m.id, &m.was, &m.lines, &m.buyer, &m.cause} {
		if *field, line, ok = strings.Cut(line, "\t"); !ok {
			return false
		}
	}
	m.record = line
	return true
}

// First is the number of the entry's first movement.
func (e *entry) First() int64 { return e.Last - int64(len(e.Movements)) + 1 }

// Print distinguishes an entry from one with the same id in another epoch.
func (e *entry) Print() string {
	m := e.Movements[len(e.Movements)-1]
	return strings.Join([]string{e.time, m.kind, m.id, m.lines}, "\t")
}

// at is when the entry was made.
func (e *entry) at() (time.Time, error) {
	ms, err := strconv.ParseInt(e.time, 10, 64)
	if err != nil {
		return time.Time{}, errors.New("its time cannot be read")
	}
	return record.TimeOf(ms), nil
}

// tell calls yield for the movements of the entry.
func (e *entry) tell(yield func(Movement)) error {
	at, err := e.at()
	if err != nil {
		return err
	}
	for _, m := range e.Movements {
		out := Movement{Seq: m.Seq, Kind: m.kind, Time: at, ID: m.id, Was: record.State(m.was), Buyer: m.buyer, Cause: m.cause}
		if out.Lines, err = record.ParseUnits(m.lines); err != nil {
			return err
		}
		if m.record != "" {
			if out.Record, err = record.Parse(m.record); err != nil {
				return err
			}
		}
		yield(out)
	}
	return nil
}
