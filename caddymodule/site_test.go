package caddymodule_test

import (
	"testing"

	_ "github.com/stockgate/stockgate/caddymodule/command"
	"github.com/stockgate/stockgate/internal/sitetest"
)

func init() { sitetest.BeCaddy() }

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
