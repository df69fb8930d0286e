package sitetest

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// SellOut sells the only unit of out, and asks until an edge remembers that there are no
// more.
func (s *FastSite) SellOut() {
	s.T.Helper()
	for range 10_000 {
		before := s.FastAnswers()
		s.Raw(s.Fast, "GET /buy?sku=out HTTP/1.1\r\nHost: sell.example.com\r\nX-User-Id: first\r\n\r\n", 1)
		if s.FastAnswers() > before {
			return
		}
	}
	s.T.Fatal("it is never sold out")
}

// BenchOut is a gate by which out is sold.
const BenchOut = `
SITEsell.example.comPORT {
	stockgate /buy sell {
		buyer {header.X-User-Id}
		line {query.sku}
		FAST
	}
	respond 201
}
`

// FastSite is a Caddy with two servers that have the same sites: one with the wrapper,
// whose gates have fast_refusals, and one without.
type FastSite struct {
	*Site
	Fast, Plain string // their addresses
	Option      string // of the gates of the first; default: fast_refusals
	// secure: both speak TLS. protocols is what clients offer; none: HTTP/1.1.
	Secure    *tls.Config
	Protocols []string
}

// MoreSales are in other states than SaleFile.
var MoreSales = map[string]string{
	"later":  "id: later\nstarts_at: 2089-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: soon, stock: 5}\n",
	"over":   "id: over\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2021-01-01T00:00:00Z\nitems:\n  - {sku: gone, stock: 5}\n",
	"paused": "id: paused\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: wait, stock: 5, min: 2, max: 3}\n",
	"none":   "id: none\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: out, stock: 1}\n  - {sku: bulk, stock: 9, min: 2, max: 3}\n",
}

// OpenFast starts a FastSite. Where `FAST` stands in the sites it says fast_refusals, or nothing;
// SITE is the beginning of a site's address.
func OpenFast(t *testing.T, servers, sites string) *FastSite {
	t.Helper()
	return OpenFastWith(t, false, servers, sites)
}

// OpenFastWith is OpenFast; secure: over TLS.
func OpenFastWith(t *testing.T, secure bool, servers, sites string) *FastSite {
	t.Helper()
	_, app := Redis(t)
	s := &FastSite{Site: Open(t, app)}
	if secure {
		s.certify()
	}
	s.OpenSale()
	s.Redis = app["redis"].(map[string]any)["addresses"].([]string)[0]
	for id, file := range MoreSales {
		Do[any](s.Site, "PUT", "/stockgate/sales/"+id, file)
		Do[any](s.Site, "POST", "/stockgate/sales/"+id+"/open", "")
	}
	Do[any](s.Site, "POST", "/stockgate/sales/paused/pause", "")
	if err := s.LoadFast(servers, sites); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	return s
}

// LoadFast loads a configuration, perhaps in the place of another one.
func (s *FastSite) LoadFast(servers, sites string) error {
	s.T.Helper()
	s.Loads++
	return s.LoadFastAt(servers, sites, freePort(s.T), freePort(s.T))
}

// Move gives the next configuration another address. The previous server may accept
// connections at the old one until it has stopped, and Caddy does not say when.
func (s *FastSite) Move() { s.Fast = "127.0.0.1:" + freePort(s.T) }

var takenPorts sync.Map

// freePort returns a port on which no process listens. It is below those that kernels give to
// outgoing connections and to listeners on port 0, so no other process is given it before the
// configuration is loaded.
func freePort(t *testing.T) string {
	t.Helper()
	for range 200 {
		port := strconv.Itoa(10_000 + rand.IntN(2000))
		if _, taken := takenPorts.LoadOrStore(port, true); taken {
			continue
		}
		if ln, err := net.Listen("tcp", ":"+port); err == nil {
			ln.Close()
			return port
		}
	}
	t.Fatal("no free port found")
	return ""
}

// LoadFastAt is LoadFast at these ports.
func (s *FastSite) LoadFastAt(servers, sites, fast, plain string) error {
	s.T.Helper()
	on := func(port, option string) string {
		scheme, begin := "http://", " {"
		if s.Secure != nil {
			scheme, begin = "https://", " {\n"+s.TLSOption()
		}
		return strings.NewReplacer("SITE", scheme, "PORT {", ":"+port+begin, "FAST", option).Replace(sites)
	}
	text := s.caddyfile("off", "", fmt.Sprintf(`servers :%s {
		listener_wrappers {
			stockgate
		}
		%s
	}
	servers :%s {
		%s
	}`, fast, servers, plain, servers), on(fast, cmp.Or(s.Option, "fast_refusals"))+on(plain, ""))
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		s.T.Fatalf("%v in %s", err, text)
	}
	if err := caddy.Load(config, true); err != nil {
		s.Loads-- // the one before goes on
		return err
	}
	s.Fast, s.Plain = "127.0.0.1:"+fast, "127.0.0.1:"+plain
	return nil
}

// LoadText loads one server only, with these global options.
func (s *FastSite) LoadText(options, sites string) error {
	s.T.Helper()
	s.Loads++
	text := s.caddyfile("disable_redirects", "", options, sites)
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		s.T.Fatalf("%v in %s", err, text)
	}
	if err = caddy.Load(config, true); err != nil {
		s.Loads-- // the one before goes on
	}
	return err
}
