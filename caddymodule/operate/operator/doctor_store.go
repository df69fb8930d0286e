package operator

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

const (
	// syncs is how many records are synced to measure the disk of a store.
	syncs = 50
	// syncSlow is a time of a sync at which one order alone takes a tenth of the usual timeout.
	syncSlow = 50 * time.Millisecond
	// diskLow is so little that a store may stop within a sale.
	diskLow = 1 << 30
)

// store examines the server of `store`.
func (d *doctor) store() {
	s, ok := d.runtime.OwnServer()
	if !ok {
		return
	}
	judgeStore(&d.Diagnosis, s)
	ctx, cancel := d.call()
	defer cancel()
	d.judgeSyncs(d.runtime.SyncTimes(ctx, syncs))
}

func judgeStore(d *adminapi.Diagnosis, s edgeruntime.StoreStatus) {
	switch {
	case s.PID == 0:
		d.Add(adminapi.LevelError, "store", "the redis-server of %s does not run, and is started again: see what Caddy's log says of its end", s.Dir)
	case s.Restarts > 0:
		d.Add(adminapi.LevelWarning, "store", "%s runs as process %d in %s, and has ended %d times since Caddy started: see Caddy's log", s.Version, s.PID, s.Dir, s.Restarts)
	default:
		d.Add(adminapi.LevelOK, "store", "%s runs as process %d in %s", s.Version, s.PID, s.Dir)
	}
	left := humanize.IBytes(uint64(s.Free)) + " left on the disk of " + s.Dir
	if s.Free < diskLow {
		d.Add(adminapi.LevelWarning, "disk", "%s: when it is full nothing is sold; make room", left)
	} else {
		d.Add(adminapi.LevelOK, "disk", "%s", left)
	}
}

// judgeSyncs adds how fast the disk is: each order waits for two syncs, which orders at the same time share.
func (d *doctor) judgeSyncs(times []time.Duration, err error) {
	if err != nil || len(times) == 0 {
		d.Add(adminapi.LevelError, "sync", "the disk of the store cannot be written: %v", cmp.Or(err, context.DeadlineExceeded))
		return
	}
	slices.Sort(times)
	median, late := times[len(times)/2], times[len(times)*99/100]
	level, advice := adminapi.LevelOK, ""
	if late > syncSlow {
		level, advice = adminapi.LevelWarning, ": attempts may time out in a rush; use a disk that syncs faster"
	}
	d.Add(level, "sync", "the disk of the store syncs a record in %v, 99 of 100 within %v%s", median.Round(10*time.Microsecond), late.Round(10*time.Microsecond), advice)
}
