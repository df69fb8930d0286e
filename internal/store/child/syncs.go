package child

import (
	"context"
	"os"
	"slices"
	"time"
)

// Syncs is how long a disk takes to sync a record.
type Syncs struct {
	Median, Late time.Duration // half take at most that, 99 of 100 at most that; 0: none was measured
	Count        uint64        // of all that were measured
	Sum          time.Duration // of all that were measured
}

// syncsOf sums times up.
func syncsOf(times []time.Duration) (s Syncs) {
	if len(times) == 0 {
		return s
	}
	times = slices.Sorted(slices.Values(times))
	for _, t := range times {
		s.Sum += t
	}
	s.Median, s.Late, s.Count = times[len(times)/2], times[len(times)*99/100], uint64(len(times))
	return s
}

// SyncTimes measures how long the disk of the directory takes to write and sync a small record, as the server
// does for each order.
func (s *Server) SyncTimes(ctx context.Context, n int) (Syncs, error) {
	f, err := os.CreateTemp(s.dir, "sync-*")
	if err != nil {
		return Syncs{}, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	times := make([]time.Duration, 0, n)
	for record := make([]byte, 512); len(times) < n && ctx.Err() == nil; {
		began := time.Now()
		if _, err := f.Write(record); err != nil {
			return Syncs{}, err
		}
		if err := f.Sync(); err != nil {
			return Syncs{}, err
		}
		times = append(times, time.Since(began))
	}
	return syncsOf(times), nil
}
