// Package reservation keeps the stock and the reservations of sales in Redis: it
// reserves, confirms, releases, expires and adjusts, each in one atomic script. A Store is
// one Redis and its scripts; package edge is what a selling process runs on top of it.
package reservation

import (
	"sync/atomic"

	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Store keeps the stock and the reservations of sales in one Redis. It dials when it is
// first used, and is safe for concurrent use.
type Store struct {
	shard   *shard.Client
	journal *journal.Journal
	// Calls combines what attempts and their outcomes ask of a sale.
	Calls *combine.Combiner[request, result]
	// dryRuns combines dry runs: they never wait in the queues of what is reserved.
	dryRuns *combine.Combiner[*encodedRequest, result]
	// promises is told of what Redis has promised; nil: nothing is.
	promises atomic.Pointer[Promises]
	// Risk counts what this store sells; nil: nothing does. Set it before the first use.
	Risk Risk
}

// Open makes a store. It does not dial.
func Open(o shard.Options) (*Store, error) {
	shard, err := shard.Open(o)
	if err != nil {
		return nil, err
	}
	s := &Store{shard: shard, journal: journal.New(shard)}
	s.Calls = combine.NewCombiner(s.sendOperations)
	s.dryRuns = combine.NewCombiner(s.sendDryRuns)
	return s, nil
}

// Shard returns the client of the store's Redis.
func (s *Store) Shard() *shard.Client { return s.shard }

// Journal returns the journals of the store's sales.
func (s *Store) Journal() *journal.Journal { return s.journal }

// Close closes all connections. Callers whose call was not sent, and later ones, get
// shard.ErrNotSent.
func (s *Store) Close() error {
	s.Calls.Close()
	s.dryRuns.Close()
	err := s.shard.Close()
	s.Calls.Wait()
	s.dryRuns.Wait()
	return err
}
