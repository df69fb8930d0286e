// Package sitetest runs a Caddy with Stockgate for tests, sends it requests, and runs the
// commands against it. The test's imports decide which modules it has. There is one Caddy
// in a process, so its tests cannot be parallel.
package sitetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// Patience bounds waits for events that should come soon: generous, because the machine
// may be busy.
const Patience = 2 * time.Minute

// Site is a running Caddy with a stockgate app. Its admin endpoint and its server
// listen on sockets, so that tests do not interfere.
type Site struct {
	T       *testing.T
	Dir     string         // of its files
	Gate    map[string]any // before /order; nil: none
	Shop    string         // what /order leads to
	Gates   []any          // before the shop of static answers, which answers 418
	Redis   string         // its address, where the site is of a Caddyfile
	Options string         // of the app in a Caddyfile
	Loads   int            // every configuration has sockets of its own: the servers of the last one may still accept
}

// Open starts a Caddy with that stockgate app; nil: without one.
func Open(t *testing.T, app map[string]any) *Site {
	t.Helper()
	dir, err := os.MkdirTemp("", "site") // t.TempDir is too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &Site{T: t, Dir: dir}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	s.Load(app)
	return s
}

// Load gives the Caddy a configuration.
func (s *Site) Load(app map[string]any) {
	s.T.Helper()
	if err := s.TryLoad(app); err != nil {
		s.T.Fatal(err)
	}
}

// TryLoad is Load that may fail.
func (s *Site) TryLoad(app map[string]any) error {
	s.T.Helper()
	s.Loads++
	return caddy.Load(s.Config(app), true)
}

// Config is the site's configuration with that stockgate app.
func (s *Site) Config(app map[string]any) []byte {
	s.T.Helper()
	status := []any{}
	apps := map[string]any{}
	if app != nil {
		status = append(status, map[string]any{"handler": "stockgate_status"})
		apps["stockgate"] = app
	}
	status = append(status, s.Gates...)
	order := []any{}
	if s.Gate != nil && app != nil {
		order = append(order, s.Gate, map[string]any{"handler": "reverse_proxy", "upstreams": []any{map[string]any{"dial": s.Shop}}})
	}
	apps["http"] = map[string]any{
		"servers": map[string]any{"site": map[string]any{
			"listen":               []string{"unix/" + s.Socket("http")},
			"automatic_https":      map[string]any{"disable": true},
			"trusted_proxies_unix": true,
			"routes": []any{
				map[string]any{"match": []any{map[string]any{"path": []string{"/metrics"}}}, "handle": []any{map[string]any{"handler": "metrics"}}},
				map[string]any{"handle": status},
				map[string]any{"match": []any{map[string]any{"path": []string{"/order"}}}, "handle": order},
				map[string]any{"handle": []any{map[string]any{"handler": "static_response", "status_code": 418}}},
			},
		}},
	}
	config, err := json.Marshal(map[string]any{
		"admin":   map[string]any{"listen": s.AdminAddress(), "config": map[string]any{"persist": false}},
		"logging": map[string]any{"logs": map[string]any{"default": map[string]any{"level": "INFO", "writer": map[string]any{"output": "file", "filename": s.Path("log")}}}},
		"storage": map[string]any{"module": "file_system", "root": s.Path("storage")},
		"apps":    apps,
	})
	if err != nil {
		s.T.Fatal(err)
	}
	return config
}

// Path is where a file of the site is.
func (s *Site) Path(name string) string { return filepath.Join(s.Dir, name) }

// Socket is where a server of the last configuration listens: http or admin.
func (s *Site) Socket(server string) string { return s.Path(fmt.Sprint(server, s.Loads)) }

// AdminAddress is the admin endpoint, as Caddy writes it.
func (s *Site) AdminAddress() string { return "unix/" + s.Socket("admin") }
