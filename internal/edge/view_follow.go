package edge

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/store/waitlist"
)

const (
	// readFor is how long a read of the journals waits for something to come.
	readFor = 250 * time.Millisecond
	// readPause is the minimum time between two reads that brought entries, so that one read
	// has what many buyers did meanwhile.
	readPause = 10 * time.Millisecond
	// maxReadJournals bounds the entries of one journal in one read.
	maxReadJournals = 128
	// maxReadEarlier bounds the entries that were written before the edge began to read.
	maxReadEarlier = 20_000
	// readAgain is the pause after a read that failed; it doubles up to readAgainMost.
	readAgain, readAgainMost = 20 * time.Millisecond, 500 * time.Millisecond
)

// journalReader follows the journals of some sales on one connection, in order and
// without a gap, and keeps what each listing's followed says.
type journalReader struct {
	edge     *Edge
	journals *shard.Journals
	only     string        // the one sale that it follows; empty: all
	wake     chan struct{} // ends a pause
	sales    map[string]*journalOf

	failing bool // the last read failed
}

// journalOf is where the reader stands in one journal.
type journalOf struct {
	id      string
	listing *Listing
	f       *followed // the listing's view; nil: none, the position is not certain

	known bool   // the position below is one of this journal, or was before the connection was lost
	epoch string // of the shard
	at    int64  // seq of the last entry that was read
	print string // what that entry said; empty: it was not read
	lost  bool   // entries that should be there did not come

	waits   *waitlist.List // of people, up to at; nil: not loaded
	bound   *boundFilter   // has all bindings up to at; nil: not loaded
	loading *boundFilter   // will replace it; has all that were read since loading began
	cursor  uint64         // in the bindings
}

// follow keeps the views up to date until ctx ends. Then it closes its connections, which ends
// a read that waits.
func (e *Edge) follow(ctx context.Context) {
	journals, err := e.shard.OpenJournals()
	if err != nil {
		e.log.Error("the journal is not followed: every attempt asks redis", zap.Error(err))
		return
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-ctx.Done()
		journals.Close()
	}()
	e.checks.open(ctx, journals)
	defer func() {
		<-closed
		e.checks.close()
	}()
	if e.shard.Options.Cluster {
		e.followEach(ctx, journals)
		return
	}
	e.newJournalReader(journals, "").run(ctx)
}

func (e *Edge) newJournalReader(journals *shard.Journals, only string) *journalReader {
	return &journalReader{edge: e, journals: journals, only: only, wake: make(chan struct{}, 1), sales: make(map[string]*journalOf)}
}

// run reads until ctx ends.
func (r *journalReader) run(ctx context.Context) {
	defer r.unsure() // without a reader no listing may keep its view
	again := readAgain
	for ctx.Err() == nil {
		r.choose()
		brought, err := r.step(ctx)
		r.tell(ctx, err)
		pause := time.Duration(0)
		switch {
		case err != nil:
			r.unsure()
			pause, again = again, min(2*again, readAgainMost)
		case brought:
			pause, again = readPause, readAgain
		default:
			again = readAgain
			if !r.waits() {
				pause = readFor
			}
		}
		r.edge.checks.stepped()
		if !loop.Rest(ctx, pause, r.wake) {
			return
		}
	}
}

// tell logs and counts the result of a read.
func (r *journalReader) tell(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		(*r.edge.metrics.Load()).RedisFailed("watch")
	}
	switch failed := err != nil; {
	case failed && !r.failing:
		r.edge.log.Warn("the journal is not followed: every attempt asks redis", zap.Error(err))
	case !failed && r.failing:
		r.edge.log.Info("the journal is followed")
	}
	r.failing = err != nil
}

// waits reports whether there is a journal to read, so that the read itself waits.
func (r *journalReader) waits() bool {
	for _, j := range r.sales {
		if j.f != nil {
			return true
		}
	}
	return false
}

// choose follows the sales that the catalogue has now.
func (r *journalReader) choose() {
	catalogue := r.edge.Catalogue()
	for id, j := range r.sales {
		if l, ok := catalogue.Sale(id); !ok || l.Lost() {
			j.unsure()
			delete(r.sales, id)
			r.edge.watches.WakeCell(id, "")
		}
	}
	for l := range catalogue.All {
		if l.Status == statusUnreadable || l.Lost() || r.only != "" && r.only != l.Sale.ID {
			continue
		}
		j := r.sales[l.Sale.ID]
		if j == nil {
			if len(r.sales) >= mostFollowed {
				continue // it is asked in Redis
			}
			j = &journalOf{id: l.Sale.ID, listing: l}
			r.sales[j.id] = j
		}
		j.list(l, r)
	}
}

// list goes on with another version of the sale, which may have other cells. Until now
// the view of the previous version's cells served it.
func (j *journalOf) list(l *Listing, r *journalReader) {
	if j.listing == l {
		return
	}
	if j.listing.followed != l.followed { // another life of the sale
		j.reset()
	}
	j.listing = l
	if j.f != nil {
		j.publish(r, time.Duration(j.f.at.Load()))
	}
}

// publish gives the listing a new view, from the reader's position on.
func (j *journalOf) publish(r *journalReader, at time.Duration) {
	j.f = newFollowed(j.listing, r.edge.viewNow, j.epoch, j.at, at)
	j.f.wake = r.wake
	j.f.bound.Store(j.bound)
	j.f.waits = j.waits
	j.listing.followed.Store(j.f)
	r.edge.watches.WakeCell(j.id, "")
}

// unsure withdraws the listing's view. Loading starts over, because it may continue at
// another server.
func (j *journalOf) unsure() {
	j.listing.followed.Store(nil)
	j.f, j.loading, j.cursor, j.lost = nil, nil, 0, false
}

// reset also forgets the position: this journal does not continue from there.
func (j *journalOf) reset() {
	j.unsure()
	j.known, j.bound, j.print, j.waits = false, nil, "", nil
}

func (r *journalReader) unsure() {
	for _, j := range r.sales {
		j.unsure()
	}
}

// step finds the positions that are missing, reads once, and loads a piece of the
// bindings where they are not loaded. It reports whether there may be more to read at
// once.
func (r *journalReader) step(ctx context.Context) (brought bool, err error) {
	for _, j := range r.sales {
		if j.f == nil {
			if err := r.begin(ctx, j); err != nil {
				return false, err
			}
		}
	}
	brought, err = r.read(ctx)
	if err != nil {
		return false, err
	}
	for _, j := range r.sales {
		if j.f == nil {
			continue
		}
		if err := r.load(ctx, j); err != nil {
			return false, err
		}
		if err := r.loadLeft(ctx, j); err != nil {
			return false, err
		}
	}
	return brought, nil
}
