package edge

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/store/waitlist"
)

// bounded returns a context with the timeout of a call that does not block.
func (r *journalReader) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(4*r.edge.shard.Timeout(), time.Second))
}

// begin finds where to follow from: where the reader was, if that entry still says the
// same, else the end of the journal.
func (r *journalReader) begin(ctx context.Context, j *journalOf) error {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	at, asked := r.edge.viewNow(), r.edge.risk.Now()
	var now shard.Position
	var last []shard.Entry
	var err error
	if j.known {
		now, last, err = r.journals.At(ctx, j.id, j.at)
	} else {
		now, last, err = r.journals.End(ctx, j.id)
	}
	if err != nil {
		return err
	}
	epoch, seq := now.Epoch, now.Seq
	if epoch == "" {
		j.reset() // the catalogue will notice
		return nil
	}
	if j.known {
		same := epoch == j.epoch && seq >= j.at && (j.at == 0 || j.print != "" && len(last) == 1 && entryPrint(last[0]) == j.print)
		if !same {
			j.reset()
			return r.begin(ctx, j)
		}
	} else {
		print := ""
		if len(last) == 1 {
			if e, err := journal.EntryOf(last[0]); err == nil && e.Last >= seq {
				seq, print = e.Last, e.Print()
			}
		}
		if err := r.readEarlier(ctx, j.id, numberOf(epoch), seq); err != nil {
			return err
		}
		j.known, j.epoch, j.at, j.print = true, epoch, seq, print
		r.edge.risk.Began(j.id, j.epoch, j.at, asked)
	}
	if j.waits == nil { // what the journal tells from here on may be in it already
		if j.waits, err = waitlist.Load(ctx, r.journals.Data(j.id), waitlist.ByArrival); err != nil {
			return err
		}
	}
	j.publish(r, at)
	return nil
}

// readEarlier reads the entries up to a number that the edge may have to give to a server which
// lacks them: all since it began to sell, and in any case some.
func (r *journalReader) readEarlier(ctx context.Context, sale string, epoch, last int64) error {
	var earlier []shard.Entry // the newest first
	before := r.edge.leases.ReadBefore(sale, epoch, last)
	for first := last + 1; ; {
		some, err := r.journals.Back(ctx, sale, first-1, maxReadJournals)
		if err != nil {
			return err
		}
		earlier = append(earlier, some...)
		if len(some) < maxReadJournals || len(earlier) >= maxReadEarlier {
			break
		}
		e, err := journal.EntryOf(some[len(some)-1])
		if err != nil || e.First() <= before+1 {
			break
		}
		first = e.First()
	}
	for _, m := range slices.Backward(earlier) {
		if e, err := journal.EntryOf(m); err == nil {
			at, movements := journal.Texts(m)
			r.edge.leases.ReadEarlier(sale, epoch, e.First(), e.Last, at, movements)
		}
	}
	return nil
}

// entryPrint returns an entry's print; empty: the message is not an entry.
func entryPrint(m shard.Entry) string {
	e, err := journal.EntryOf(m)
	if err != nil {
		return ""
	}
	return e.Print()
}

// numberOf is an epoch as a number; 0: it is none.
func numberOf(epoch string) int64 {
	n, _ := strconv.ParseInt(epoch, 10, 64)
	return n
}

// read reads new entries of the journals once, and then checks that they are still the same
// journals. It waits for entries unless bindings are being loaded.
func (r *journalReader) read(ctx context.Context) (bool, error) {
	var journals []*journalOf
	var sales []string
	var after []int64
	block := readFor
	for _, j := range r.sales {
		if j.f == nil {
			continue
		}
		journals = append(journals, j)
		sales, after = append(sales, j.id), append(after, j.at)
		if j.bound == nil || j.loading != nil {
			block = -1
		}
	}
	if len(journals) == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readFor+max(4*r.edge.shard.Timeout(), time.Second))
	defer cancel()
	sent := r.edge.viewNow()
	news, err := r.journals.Read(ctx, sales, after, maxReadJournals, block)
	if err != nil {
		return false, err
	}
	came := false
	for i, j := range journals {
		n := &news[i]
		came = came || len(n.Entries) > 0
		if n.Epoch != j.epoch || n.Seq < j.at {
			j.reset()
			continue
		}
		r.apply(j, n.Entries, n.Seq, sent)
	}
	return came || block < 0, nil
}

// apply advances one journal's view. seq is the shard's, read after the entries.
func (r *journalReader) apply(j *journalOf, came []shard.Entry, seq int64, sent time.Duration) {
	for i, m := range came {
		e, err := journal.EntryOf(m)
		if err != nil || e.First() != j.at+1 {
			j.reset() // entries are missing: they were trimmed, or others were there before
			return
		}
		if i == len(came)-1 {
			j.print = e.Print()
		}
		at, movements := journal.Texts(m)
		r.edge.leases.Read(j.id, numberOf(j.epoch), e.First(), e.Last, at, movements)
		for k := range e.Movements {
			r.applyMovement(j, &e.Movements[k])
		}
		j.at = e.Last
		j.f.seq.Store(e.Last)
		r.edge.risk.Read(j.id, e.Sold(), e.Last)
	}
	switch {
	case len(came) == maxReadJournals:
		return // there may be more
	case len(came) == 0 && seq > j.at && j.lost:
		j.reset() // the shard has entries that the journal does not give
		return
	}
	// an entry may have come between the read and the look at seq: the next read has it
	if j.lost = len(came) == 0 && seq > j.at; !j.lost {
		wasFresh := j.f.fresh(sent)
		j.f.at.Store(int64(sent))
		if !wasFresh { // what came while places were not told is news
			r.edge.watches.WakeCell(j.id, "")
		}
	}
}

func (r *journalReader) applyMovement(j *journalOf, m *journal.Moved) {
	known := m.Moves(func(name string, units int64) {
		switch c := j.f.named(name); {
		case c == nil:
		case units < 0:
			c.gone(m.Seq, -units)
		default:
			c.credited(m.Seq)
			r.edge.wakeOfferer()
		}
	})
	r.applyToList(j, m)
	if !known {
		for i := range j.f.cells {
			j.f.cells[i].credited(m.Seq)
		}
	}
	m.Binds(func(field string) {
		j.bound.add(field)
		j.loading.add(field)
	})
	if m.ChangesSale() {
		select {
		case r.edge.poke <- struct{}{}: // the notice may have been lost
		default:
		}
	}
}
