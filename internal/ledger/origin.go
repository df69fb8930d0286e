package ledger

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/stockgate/stockgate/internal/store/journal"
)

// Origin says what a life of a sale was rebuilt from: what a ledger had, and what Redis had of an
// earlier life.
type Origin struct {
	From   Position
	Merged int64 // the epoch of the life that was merged; 0: none
}

// String is the end of the cause of the movement `rebuilt`.
func (o Origin) String() string {
	text := fmt.Sprintf(" from the ledger, entry %d of %d", o.From.Seq, o.From.Epoch)
	if o.Merged != 0 {
		text += fmt.Sprintf(", with what redis had of %d", o.Merged)
	}
	return text
}

var originText = regexp.MustCompile(` from the ledger, entry (\d+) of (\d+)(?:, with what redis had of (\d+))?$`)

// originOf reads the cause of a movement; false: the movement begins no life.
func originOf(m *journal.Movement) (o Origin, ok bool) {
	parts := originText.FindStringSubmatch(m.Cause)
	if m.Kind != "rebuilt" || parts == nil {
		return o, false
	}
	for i, into := range []*int64{&o.From.Seq, &o.From.Epoch, &o.Merged} {
		*into, _ = strconv.ParseInt(parts[1+i], 10, 64)
	}
	return o, true
}

// lacks reports whether a ledger has something that was not restored.
func (o Origin) lacks(at Position) bool {
	return at.Epoch > o.From.Epoch && at.Epoch != o.Merged || at.Epoch == o.From.Epoch && at.Seq > o.From.Seq
}

// Beginnings reads the first movements of journals: a journal.Journal.
type Beginnings interface {
	Movements(ctx context.Context, sale string, after int64, most int) ([]journal.Movement, error)
}

// OtherLife is the error of a ledger that has an earlier life of a sale than Redis. A ledger that
// acknowledges this life is another one. Where the journal still has its beginning, the error says
// whether this ledger has something that the other one had not when the sale was rebuilt.
func OtherLife(ctx context.Context, in Beginnings, sale string, at Position, h journal.Head) *PositionError {
	e := &PositionError{Sale: sale, Have: at, Want: Position{Epoch: h.Epoch}, Continues: h.Continues, Elsewhere: at.Epoch < h.Epoch && h.Acked > 0}
	if at.Epoch >= h.Epoch {
		return e
	}
	if first, err := in.Movements(ctx, sale, 0, 1); err == nil && len(first) > 0 { // trimmed, or Redis does not answer
		if o, ok := originOf(&first[0]); ok && o.lacks(at) {
			e.Missed = o.From
		}
	}
	return e
}
