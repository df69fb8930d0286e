package suite

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/stockgate/stockgate/bench/measure"
)

// syncsEach is how many records are synced before and after the runs.
const syncsEach = 200

// durable is interleaved for peers that sync each answer, with how long the disk takes for that.
func durable(ctx context.Context, b *bench, s scenario, out *measure.Case) error {
	before, err := b.syncs()
	if err != nil {
		return err
	}
	if err := interleaved(ctx, b, s, out); err != nil {
		return err
	}
	after, err := b.syncs()
	out.Sync = measure.Over(append(before, after...))
	return err
}

// syncs returns how many ms the disk takes to sync a short record, each time.
func (b *bench) syncs() (ms []float64, err error) {
	f, err := os.Create(filepath.Join(b.Dir, "synced"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	record := make([]byte, 512)
	for range syncsEach {
		began := time.Now()
		if _, err := f.Write(record); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		ms = append(ms, time.Since(began).Seconds()*1e3)
	}
	return ms, nil
}
