package edge

import (
	"context"
	"errors"
	"sync"

	"github.com/stockgate/stockgate/internal/store/shard"
)

// readersOfCluster bounds how many sales of a cluster are read at the same time.
const readersOfCluster = 16

// readListings reads sales, in their order. On one server the first failure ends it: the edge
// must not sell. In a cluster each sale has a node of its own, and a node that does not answer
// stops only its sales: the edge keeps what it knows of them, and their attempts are
// unavailable because Redis does not answer them.
func (e *Edge) readListings(ctx context.Context, old *Catalogue, ids []string) ([]*Listing, error) {
	all := make([]*Listing, len(ids))
	if !e.shard.Options.Cluster {
		for i, id := range ids {
			l, err := e.readListing(ctx, id, old.sales[id])
			if all[i], err = listed(id, old.sales[id], l, err); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	failed := make([]error, len(ids))
	var reading sync.WaitGroup
	turns := make(chan struct{}, readersOfCluster)
	for i, id := range ids {
		turns <- struct{}{}
		reading.Go(func() {
			defer func() { <-turns }()
			bounded, cancel := context.WithTimeout(ctx, e.shard.Timeout())
			defer cancel()
			l, err := e.readListing(bounded, id, old.sales[id])
			all[i], failed[i] = listed(id, old.sales[id], l, err)
		})
	}
	reading.Wait()
	answered := len(ids) == 0
	for i, id := range ids {
		if failed[i] == nil {
			answered = true
			continue
		}
		if old.sales[id] == nil || !errors.Is(failed[i], shard.ErrUnavailable) {
			return nil, failed[i]
		}
		all[i] = old.sales[id]
	}
	if !answered {
		return nil, errors.Join(failed...)
	}
	return all, nil
}
