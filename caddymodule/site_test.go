package caddymodule_test

import (
	"testing"
	"time"

	_ "github.com/stockgate/stockgate/caddymodule/command"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/internal/test/sitetest"
)

func init() {
	sitetest.BeCaddy()
	// nothing that a test checks depends on these, but how long it waits
	timing.BetweenTries.Set(10 * time.Millisecond)
	timing.CheckRedis.Set(100 * time.Millisecond)
	timing.Overview.Set(100 * time.Millisecond)
	timing.ListFile.Set(20 * time.Millisecond)
	// and these do not end while a test runs, unless it sets them
	timing.Turn.Set(10 * time.Minute)
	timing.SessionWait.Set(10 * time.Minute)
}

// set gives a time another value until the test ends.
func set(t *testing.T, of *timing.Time, d time.Duration) {
	t.Helper()
	before := of.Set(d)
	t.Cleanup(func() { of.Set(before) })
}

// site is a running Caddy with a stockgate app, and what only these tests do with it.
type site struct {
	*sitetest.Site
	t         *testing.T
	closeShop func() // of useGate
	options   string // of the app in a Caddyfile
}

// openSite starts a Caddy with that stockgate app; nil: without one.
func openSite(t *testing.T, app map[string]any) *site {
	t.Helper()
	return &site{Site: sitetest.Open(t, app), t: t}
}

// do asks the admin endpoint for what must succeed, and reads the answer into T.
func do[T any](s *site, method, path, body string) T {
	s.t.Helper()
	return sitetest.Do[T](s.Site, method, path, body)
}
