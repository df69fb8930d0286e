package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
)

// scanMost is how many movements are read for one batch.
const maxScan = 1000

// Message is the body of a request.
type Message struct {
	Type string `json:"type"` // MessageType
	// Timestamp is when the last of its movements happened.
	Timestamp time.Time `json:"timestamp"`
	Data      Range     `json:"data"`
}

// MessageType is the type of all messages.
const MessageType = "stockgate.movements"

// Range is a range of one sale's journal.
type Range struct {
	Sale  string `json:"sale"`
	Epoch int64  `json:"epoch"`
	// First and Last are the numbers of the range: the next one of this epoch begins at Last + 1.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Continues is the epoch that this one goes on from: what the receiver has of that up to Last is the same
	// under the same numbers; nil: its numbers begin with 1.
	Continues *journal.Continued `json:"continues,omitempty"`
	// Lost are the numbers that were trimmed before they could be sent; nil: none.
	Lost *Numbers `json:"lost,omitempty"`
	// Movements are the movements of the range, of the configured kinds.
	Movements []ledger.Entry `json:"movements"`
}

// Numbers are a range of numbers, both ends included.
type Numbers struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// batch is a message that is ready to be sent, unchanged at every retry.
type batch struct {
	epoch, after, last int64
	continues          journal.Continued
	lost               *Numbers
	movements          int
	full               bool // there was more
	id                 string
	body               []byte
	accepted           bool // and Redis could not be told yet
}

// empty reports whether it has nothing to send.
func (b *batch) empty() bool { return b.movements == 0 && b.lost == nil }

// read makes the next batch: what fits, and not beyond the number upTo if there is one.
func (s *sending) read(ctx context.Context, head *journal.Head, upTo int64) (*batch, error) {
	b := &batch{epoch: head.Epoch, after: head.Sent, continues: head.Continues}
	movements, err := s.history.Read(ctx, s.sale, b.epoch, b.after, maxScan)
	if gap, ok := errors.AsType[*journal.GapError](err); ok && gap.Have > 0 {
		if before := gap.Want - 1 - b.after; before > 0 { // the gap is the next batch's
			movements, err = s.history.Read(ctx, s.sale, b.epoch, b.after, int(before))
		} else {
			b.lost = &Numbers{gap.Want, gap.Have - 1}
			movements, err = s.history.Read(ctx, s.sale, b.epoch, b.lost.To, maxScan)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(movements) == 0 && b.lost == nil {
		return nil, &journal.GapError{Sale: s.sale, Want: b.after + 1}
	}
	return b, s.fill(b, movements, upTo)
}

// fill selects the configured movements and encodes them.
func (s *sending) fill(b *batch, movements []journal.Movement, upTo int64) error {
	if b.lost != nil {
		if upTo > 0 {
			b.lost.To = min(b.lost.To, upTo)
		}
		b.last = b.lost.To
	}
	var wanted []journal.Movement
	var at time.Time
	for _, m := range movements {
		if upTo > 0 && m.Seq > upTo || len(wanted) == s.options.Batch {
			b.full = true
			break
		}
		b.last, at = m.Seq, m.Time
		if len(s.options.Kinds) == 0 || slices.Contains(s.options.Kinds, m.Kind) {
			wanted = append(wanted, m)
		}
	}
	if at.IsZero() && len(movements) > 0 {
		at = movements[0].Time // of the one after what was lost
	}
	b.full = b.full || len(movements) == maxScan
	b.movements = len(wanted)
	b.id = messageID(s.sale, b.epoch, b.after+1, b.last)
	var err error
	r := Range{Sale: s.sale, Epoch: b.epoch, First: b.after + 1, Last: b.last, Lost: b.lost, Movements: ledger.Entries(s.sale, b.epoch, wanted)}
	if b.continues != (journal.Continued{}) {
		r.Continues = &b.continues
	}
	b.body, err = json.Marshal(Message{MessageType, at, r})
	return err
}

// messageID names a batch: the same batch has the same id whichever edge sends it. A
// full stop, which a sale's id may have, would end the message id in the signed text.
func messageID(sale string, epoch, first, last int64) string {
	return fmt.Sprintf("mov_%d_%d_%d_%s", epoch, first, last, strings.ReplaceAll(sale, ".", "~"))
}
