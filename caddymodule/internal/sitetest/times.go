package sitetest

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/timing"
)

// Quick is BeCaddy, in a process whose edges do not let a test wait.
func Quick() {
	BeCaddy()
	// nothing that a test checks depends on these, but how long it waits
	timing.BetweenTries.Set(10 * time.Millisecond)
	timing.CheckRedis.Set(100 * time.Millisecond)
	timing.Overview.Set(100 * time.Millisecond)
	timing.ListFile.Set(20 * time.Millisecond)
	timing.NoticeGroup.Set(100 * time.Millisecond)
	timing.NoticeCalm.Set(500 * time.Millisecond)
	// and these do not end while a test runs, unless it sets them
	timing.Turn.Set(10 * time.Minute)
	timing.SessionWait.Set(10 * time.Minute)
}

// SetTime gives a time another value until the test ends.
func SetTime(t *testing.T, of *timing.Time, d time.Duration) {
	t.Helper()
	before := of.Set(d)
	t.Cleanup(func() { of.Set(before) })
}
