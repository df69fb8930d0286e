package journal

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Mark is the newest movement of a sale that some ledger has.
type Mark struct {
	Epoch, Seq int64
	// Edge names an edge whose ledger that is.
	Edge string
}

// After reports whether a mark is newer than a position.
func (m Mark) After(epoch, seq int64) bool {
	return m.Epoch > epoch || m.Epoch == epoch && m.Seq > seq
}

// MarkLedger notes, for edges with other ledgers, what the ledger of an edge has of a sale that Redis
// has lost: its meta, which says it otherwise, is gone. A newer mark stays.
func (j *Journal) MarkLedger(ctx context.Context, sale string, m Mark) error {
	have, err := j.LedgerMark(ctx, sale)
	if err != nil || !m.After(have.Epoch, have.Seq) {
		return err
	}
	return j.shard.SetLedgerMark(ctx, sale, fmt.Sprint(m.Epoch, " ", m.Seq, " ", m.Edge))
}

// LedgerMark returns the newest mark of a sale; zero: there is none.
func (j *Journal) LedgerMark(ctx context.Context, sale string) (m Mark, err error) {
	text, err := j.shard.LedgerMark(ctx, sale)
	if text == "" || err != nil {
		return m, err
	}
	if _, err := fmt.Sscan(text, &m.Epoch, &m.Seq, &m.Edge); err != nil {
		return Mark{}, fmt.Errorf("the mark of the ledgers of sale %s cannot be read: %w; delete the field %[1]s of the hash %s", sale, err, j.shard.LedgersKey())
	}
	return m, nil
}

// forgetDrainers is when a drainer that was not heard of is forgotten.
const forgetDrainers = time.Hour

// NoteDrainer notes that a drainer has had a sale's lease in its ledger since a moment of this
// process's clock, or has it again.
func (j *Journal) NoteDrainer(ctx context.Context, sale, owner string, asked time.Time) error {
	now := j.JournalNow(sale, 0, 0).Add(-time.Since(asked))
	return j.shard.NoteDrainer(ctx, sale+" "+owner, now, now.Add(-forgetDrainers))
}

// ForgetDrainer notes that a drainer gives up a sale's lease. It must be called before that.
func (j *Journal) ForgetDrainer(ctx context.Context, sale, owner string) error {
	return j.shard.DropDrainers(ctx, sale+" "+owner)
}

// ForgetDrainers notes that a rebuild has ended all leases of a sale in its ledger: the drainer that has
// the next one has the same ledger.
func (j *Journal) ForgetDrainers(ctx context.Context, sale string) error {
	owners, err := j.drainersSince(ctx, sale, time.Time{})
	if err != nil || len(owners) == 0 {
		return err
	}
	members := make([]string, len(owners))
	for i, owner := range owners {
		members[i] = sale + " " + owner
	}
	return j.shard.DropDrainers(ctx, members...)
}

// Drainers are the drainers of a sale that have had its lease within a time. A ledger gives a lease to
// one at a time: two within the length of a lease have two ledgers.
func (j *Journal) Drainers(ctx context.Context, sale string, within time.Duration) (owners []string, err error) {
	return j.drainersSince(ctx, sale, j.JournalNow(sale, 0, 0).Add(-within))
}

// drainersSince is Drainers since a moment of Redis's clock.
func (j *Journal) drainersSince(ctx context.Context, sale string, since time.Time) (owners []string, err error) {
	all, err := j.shard.DrainersSince(ctx, since)
	if err != nil {
		return nil, err
	}
	for _, member := range all {
		if owner, ok := strings.CutPrefix(member, sale+" "); ok {
			owners = append(owners, owner)
		}
	}
	return owners, nil
}
