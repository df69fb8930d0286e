package edge

import (
	"context"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// mostFollowed bounds the sales whose journals an edge follows; in a cluster each
	// takes a connection. Attempts on the others ask Redis.
	mostFollowed, mostFollowedInCluster = 256, 32
	// loadAtOnce is about how many bindings are read at a time, between two reads of
	// the journal.
	loadAtOnce = 1000
)

// load reads a piece of the bindings into a new filter, if there is none yet, or it is
// full of what is not bound any more; one that is full of what is bound grows. The journal
// is followed meanwhile, so a new one misses nothing.
func (r *journalReader) load(ctx context.Context, j *journalOf) error {
	if j.bound != nil && j.loading == nil && !j.bound.full() {
		return nil
	}
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	bindings := r.journals.Data(j.id)
	if j.loading == nil {
		n, err := bindings.Length(ctx, shard.BindingsKey)
		if err != nil {
			return err
		}
		if j.bound != nil && n >= j.bound.added()/2 {
			j.bound.grow()
			return nil
		}
		j.loading, j.cursor = newBoundFilter(n), 0
	}
	fields, cursor, err := bindings.Scan(ctx, shard.BindingsKey, j.cursor, "[kr]|*", loadAtOnce)
	if err != nil {
		return err
	}
	for i := 0; i < len(fields); i += 2 { // field, reservation id
		j.loading.add(fields[i])
	}
	if j.cursor = cursor; cursor == 0 {
		j.bound, j.loading = j.loading, nil
		j.f.bound.Store(j.bound)
	}
	return nil
}

// followEach follows every sale of a cluster on its own: their journals are on several
// nodes.
func (e *Edge) followEach(ctx context.Context, journals *shard.Journals) {
	running := make(map[string]func())
	defer func() {
		for _, stop := range running {
			stop()
		}
	}()
	for {
		for id, stop := range running {
			if _, ok := e.Catalogue().Sale(id); !ok {
				stop()
				delete(running, id)
			}
		}
		for l := range e.Catalogue().All {
			if id := l.Sale.ID; running[id] == nil && len(running) < mostFollowedInCluster {
				running[id] = e.followOne(ctx, journals, id)
			}
		}
		if !loop.Rest(ctx, readFor, nil) {
			return
		}
	}
}

// followOne follows one sale until stop, which waits for its end.
func (e *Edge) followOne(ctx context.Context, journals *shard.Journals, id string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.newJournalReader(journals, id).run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}
