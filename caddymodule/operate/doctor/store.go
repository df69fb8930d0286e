package doctor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

const (
	// syncs is how many records are synced to measure the disk of a store.
	syncs = 50
	// syncSlow is a time of a sync at which one order alone takes a tenth of the usual timeout.
	syncSlow = 50 * time.Millisecond
)

// store examines the server of `store`; false: there is none.
func (d *examination) store() bool {
	s := d.runtime.OwnServer()
	if s == nil {
		return false
	}
	judgeStore(&d.Diagnosis, s)
	judgeDisk(&d.Diagnosis, s)
	ctx, cancel := d.call()
	defer cancel()
	d.judgeSyncs(d.runtime.SyncTimes(ctx, syncs))
	return true
}

// judgeStore adds which server runs, and what has become of earlier ones.
func judgeStore(d *adminapi.Diagnosis, s *edgeruntime.StoreStatus) {
	switch {
	case s.PID == 0:
		d.Add(adminapi.LevelError, "store", "the redis-server of %s does not run, and Caddy tries again: %s", s.Dir, cmp.Or(s.Why, "Caddy's log says why it ended"))
	case s.Restarts > 0:
		d.Add(adminapi.LevelWarning, "store", "%s runs as process %d in %s, and has ended %d times since Caddy started, the last time with: %s", s.Version, s.PID, s.Dir, s.Restarts, s.Why)
	default:
		d.Add(adminapi.LevelOK, "store", "%s runs as process %d in %s", s.Version, s.PID, s.Dir)
	}
	if s.Cut > 0 {
		d.Add(adminapi.LevelWarning, "store", "%s bytes at the end of the append-only file were no whole record, and were cut off when the server read it: after a crash that is a write to which no answer was given; "+
			"if nothing has crashed, the disk has lost bytes: compare the sales with the shop", humanize.Comma(s.Cut))
	}
	rewriting := ""
	if s.Rewriting {
		rewriting = "; the append-only file is being rewritten, which makes it smaller and slows the disk down"
	}
	d.Add(adminapi.LevelOK, "files", "the files of the store have %s%s", humanize.IBytes(uint64(s.Files)), rewriting)
}

// judgeDisk adds what is left on the disk, and for how long.
func judgeDisk(d *adminapi.Diagnosis, s *edgeruntime.StoreStatus) {
	level, advice := adminapi.LevelOK, ""
	if s.IsShort() {
		level, advice = adminapi.LevelWarning, ": when it is full nothing is sold; make room"
	}
	d.Add(level, "disk", "%s left on the disk of %s, %s%s", humanize.IBytes(uint64(s.Free)), s.Dir, forHowLong(s), advice)
}

// forHowLong says how long the disk lasts.
func forHowLong(s *edgeruntime.StoreStatus) string {
	lasts, growing := s.Lasts()
	switch {
	case growing && lasts < 10*time.Hour:
		return fmt.Sprintf("for %.1f hours at the present pace", lasts.Hours())
	case growing && lasts < 10*365*24*time.Hour:
		return fmt.Sprintf("for %s hours at the present pace", humanize.Comma(int64(lasts.Hours())))
	case growing:
		return "for more than 10 years at the present pace"
	case s.Pace < 0:
		return "for how long is not known yet: that takes a minute"
	}
	return "and the files do not grow at present"
}

// judgeRestored adds that what was sold after a backup, or what the disk has lost, looks available.
func judgeRestored(d *adminapi.Diagnosis, b *reservation.SaleStock) {
	const steps = "Where a ledger has more, run 'caddy stockgate rebuild %[1]s --from ledger'; " +
		"compare it with the shop by 'caddy stockgate reconcile %[1]s --shop FILE'; then 'caddy stockgate sale open %[1]s' sells again"
	switch {
	case !b.RestoredFrom.IsZero():
		d.Add(adminapi.LevelWarning, "restored", "%s was restored from a backup of %s, and is %s: what was sold since looks available. "+steps, b.ID, adminapi.SaleTime(b.RestoredFrom, b.Timezone), b.Status)
	case !b.LossAccepted.IsZero():
		d.Add(adminapi.LevelWarning, "restored", "%s goes on since %s without what the disk of the store has lost, and is %s: that looks available. "+steps, b.ID, adminapi.SaleTime(b.LossAccepted, b.Timezone), b.Status)
	case !b.Bypassed.IsZero():
		d.Add(adminapi.LevelWarning, "bypass", "until %s the shop sold without reservations, and %s is %s: what it sold looks available. Compare it with the shop by 'caddy stockgate reconcile %[2]s --shop FILE', "+
			"take what was sold out of the stock by 'caddy stockgate stock add'; then 'caddy stockgate sale open %[2]s' sells again", adminapi.SaleTime(b.Bypassed, b.Timezone), b.ID, b.Status)
	}
}

// judgeSyncs adds how fast the disk is: each order waits for two syncs, which orders at the same time share.
func (d *examination) judgeSyncs(s edgeruntime.StoreSyncs, err error) {
	if err != nil || s.Count == 0 {
		d.Add(adminapi.LevelError, "sync", "the disk of the store cannot be written: %v", cmp.Or(err, context.DeadlineExceeded))
		return
	}
	level, advice := adminapi.LevelOK, ""
	if s.Late > syncSlow {
		level, advice = adminapi.LevelWarning, ": attempts may time out in a rush; use a disk that syncs faster"
	}
	d.Add(level, "sync", "the disk of the store syncs a record in %v, 99 of 100 within %v%s", s.Median.Round(10*time.Microsecond), s.Late.Round(10*time.Microsecond), advice)
}
