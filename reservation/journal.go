package reservation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Movement is one entry of a sale's journal: what happened, in the order in which it
// happened.
type Movement struct {
	// Seq counts 1, 2, 3, … without a gap.
	Seq int64 `json:"seq"`
	// Kind is a state that a reservation has come to, or recreated, extended, returned,
	// adjusted, loaded, applied, open, paused, closed, rebuilt, repaired.
	Kind string `json:"kind"`
	// Time is by the shard's clock, in ms. It never goes back.
	Time time.Time `json:"time"`
	// ID is the reservation, the adjustment, the sale's version, or what was repaired.
	ID string `json:"id"`
	// Was is the state that the reservation has left; empty: it did not exist, or the
	// entry is not about one.
	Was State `json:"was,omitempty"`
	// Lines are the units that moved; negative: out of stock.
	Lines []CellUnits `json:"lines,omitempty"`
	// Buyer is a keyed hash.
	Buyer string `json:"buyer,omitempty"`
	Cause string `json:"cause,omitempty"`
	// Record is the reservation as it was after the entry, where it begins (held,
	// recreated), where more than its state has changed, and nil elsewhere.
	Record *RecordFields `json:"record,omitempty"`
}

// GapError: a journal lacks entries. They were trimmed, or Redis has lost them.
type GapError struct {
	Sale       string
	Want, Have int64 // Have 0: nothing more is there
}

func (e *GapError) Error() string {
	if e.Have == 0 {
		return fmt.Sprintf("the journal of sale %s ends before entry %d: redis has lost entries", e.Sale, e.Want)
	}
	return fmt.Sprintf("the journal of sale %s has a gap: entry %d is wanted and %d comes next; they were trimmed before a reader had them, or redis has lost them",
		e.Sale, e.Want, e.Have)
}

// Journal reads up to most movements that follow the one with the number after. It
// returns a GapError when the next one is not the next number.
func (s *Store) Journal(ctx context.Context, sale string, after int64, most int) ([]Movement, error) {
	entries, err := s.redis.XRangeN(ctx, s.shardKeys(sale)[journalKey], entryID(after+1), "+", int64(most)).Result()
	if err != nil {
		return nil, explain(err)
	}
	out := make([]Movement, len(entries))
	for i, e := range entries {
		if out[i], err = movementOf(e); err != nil {
			return nil, fmt.Errorf("entry %s of the journal of sale %s: %w", e.ID, sale, err)
		}
		if want := after + 1 + int64(i); out[i].Seq != want {
			return nil, &GapError{sale, want, out[i].Seq}
		}
	}
	return out, nil
}

// entryID is a number as the id of an entry.
func entryID(seq int64) string { return strconv.FormatInt(seq, 10) + "-0" }

// journalFormat is the version of the entries.
const journalFormat = "1"

// movementOf reads an entry as the scripts write it.
func movementOf(e redis.XMessage) (Movement, error) {
	text, ok := strings.CutSuffix(e.ID, "-0")
	seq, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return Movement{}, errors.New("its id is not a number and -0: something else has written it")
	}
	field := func(name string) string {
		v, _ := e.Values[name].(string)
		return v
	}
	if v := field("v"); v != journalFormat {
		return Movement{}, fmt.Errorf("its format %q is not known: a newer stockgate has written it, update this one", v)
	}
	at, err := strconv.ParseInt(field("time"), 10, 64)
	if err != nil {
		return Movement{}, errors.New("its time cannot be read")
	}
	m := Movement{
		Seq: seq, Kind: field("kind"), Time: timeOf(at), ID: field("id"), Was: State(field("was")), Buyer: field("buyer"), Cause: field("cause"),
	}
	if m.Lines, err = ParseUnits(field("lines")); err != nil {
		return m, err
	}
	if record := field("record"); record != "" {
		m.Record, err = ParseRecord(record)
	}
	return m, err
}
