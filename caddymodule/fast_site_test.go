package caddymodule_test

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/internal/test/sitetest"
)

// fastSite is a Caddy with two servers that have the same sites: one with the wrapper,
// whose gates have fast_refusals, and one without.
type fastSite struct {
	*site
	fast, plain string // their addresses
	option      string // of the gates of the first; default: fast_refusals
	// secure: both speak TLS. protocols is what clients offer; none: HTTP/1.1.
	secure    *tls.Config
	protocols []string
}

// moreSales are in other states than SaleFile.
var moreSales = map[string]string{
	"later":  "id: later\nstarts_at: 2089-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: soon, stock: 5}\n",
	"over":   "id: over\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2021-01-01T00:00:00Z\nitems:\n  - {sku: gone, stock: 5}\n",
	"paused": "id: paused\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: wait, stock: 5, min: 2, max: 3}\n",
	"none":   "id: none\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: out, stock: 1}\n  - {sku: bulk, stock: 9, min: 2, max: 3}\n",
}

// openFast starts a fastSite. Where `FAST` stands in the sites it says fast_refusals, or nothing;
// SITE is the beginning of a site's address.
func openFast(t *testing.T, servers, sites string) *fastSite {
	t.Helper()
	return openFastWith(t, false, servers, sites)
}

func openFastWith(t *testing.T, secure bool, servers, sites string) *fastSite {
	t.Helper()
	noJitter(t)
	_, app := sitetest.Redis(t)
	s := &fastSite{site: openSite(t, app)}
	if secure {
		s.certify()
	}
	s.OpenSale()
	s.Redis = app["redis"].(map[string]any)["addresses"].([]string)[0]
	for id, file := range moreSales {
		do[any](s.site, "PUT", "/stockgate/sales/"+id, file)
		do[any](s.site, "POST", "/stockgate/sales/"+id+"/open", "")
	}
	do[any](s.site, "POST", "/stockgate/sales/paused/pause", "")
	if err := s.loadFast(servers, sites); err != nil {
		t.Fatal(err)
	}
	s.refresh()
	return s
}

// loadFast loads a configuration, perhaps in the place of another one.
func (s *fastSite) loadFast(servers, sites string) error {
	s.t.Helper()
	s.Loads++
	return s.loadFastAt(servers, sites, freePort(s.t), freePort(s.t))
}

// move gives the next configuration another address. The previous server may accept
// connections at the old one until it has stopped, and Caddy does not say when.
func (s *fastSite) move() { s.fast = "127.0.0.1:" + freePort(s.t) }

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

func (s *fastSite) loadFastAt(servers, sites, fast, plain string) error {
	s.t.Helper()
	on := func(port, option string) string {
		scheme, begin := "http://", " {"
		if s.secure != nil {
			scheme, begin = "https://", " {\n"+s.tlsOption()
		}
		return strings.NewReplacer("SITE", scheme, "PORT {", ":"+port+begin, "FAST", option).Replace(sites)
	}
	text := fmt.Sprintf(`{
	admin %s
	persist_config off
	auto_https off
	storage file_system %s
	log {
		output file %s
	}
	stockgate {
		redis %s {
			timeout 20s
		}
	}
	servers :%s {
		listener_wrappers {
			stockgate
		}
		%s
	}
	servers :%s {
		%s
	}
}
`, s.AdminAddress(), s.Path("storage"), s.Path("log"), s.Redis, fast, servers, plain, servers) + on(fast, cmp.Or(s.option, "fast_refusals")) + on(plain, "")
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
	if err := caddy.Load(config, true); err != nil {
		s.Loads-- // the one before goes on
		return err
	}
	s.fast, s.plain = "127.0.0.1:"+fast, "127.0.0.1:"+plain
	return nil
}

// raw sends bytes to a server and returns its answers, up to a number of them or until it
// closes the connection.
func (s *fastSite) raw(addr, request string, answers int) string {
	s.t.Helper()
	c := s.open(addr)
	defer c.Close()
	c.head = strings.HasPrefix(request, "HEAD ")
	if _, err := io.WriteString(c, request); err != nil {
		s.t.Fatalf("fast %t: %q: %v", addr == s.fast, request, err)
	}
	return c.answers(answers)
}

// rawConn is a connection on which answers are read as bytes.
type rawConn struct {
	t *testing.T
	net.Conn
	r    *bufio.Reader
	head bool // answers have no bodies
}

func (s *fastSite) open(addr string) *rawConn {
	s.t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.secure != nil {
		config := s.secure.Clone()
		config.NextProtos = s.protocols
		c = tls.Client(c, config)
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute)) // a test that hangs says where
	return &rawConn{t: s.t, Conn: c, r: bufio.NewReader(c)}
}

// answers reads a number of answers, or up to the end of the connection.
func (c *rawConn) answers(n int) string {
	c.t.Helper()
	var all strings.Builder
	for range n {
		length := 0
		for {
			line, err := c.r.ReadString('\n')
			all.WriteString(line)
			if err != nil {
				return all.String()
			}
			if value, ok := strings.CutPrefix(line, "Content-Length: "); ok && !c.head {
				length, _ = strconv.Atoi(strings.TrimSpace(value))
			}
			if line == "\r\n" {
				break
			}
		}
		if _, err := io.CopyN(&all, c.r, int64(length)); err != nil {
			return all.String()
		}
	}
	return all.String()
}

// changing is what two answers to the same request may differ in: their time, and the
// number that every reservation has.
var changing = regexp.MustCompile(`(Date: |Stockgate-Reservation: |"server_time":)(?:..., )?[^\r,]*`)

func withoutDate(answer string) string { return changing.ReplaceAllString(answer, "$1…") }

// fastAnswers returns how many requests the wrapper has answered.
func (s *fastSite) fastAnswers() int {
	s.t.Helper()
	counter := prom.NewRegistry()
	counter.MustRegister(meter.All().Fast)
	found, err := counter.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	return int(found[0].GetMetric()[0].GetCounter().GetValue())
}

// same sends a request to both servers and compares the answers. It returns the answer
// and whether the wrapper has given it.
func (s *fastSite) same(request string) (answer string, fast bool) {
	s.t.Helper()
	before := s.fastAnswers()
	got, want := s.both(request)
	if got != want {
		s.t.Errorf("%q:\n%s\nwant\n%s", request, got, want)
	}
	return got, s.fastAnswers() > before
}

// both are the answers of both servers.
func (s *fastSite) both(request string) (fast, plain string) {
	s.t.Helper()
	fast, plain, _ = agree(3, func() (string, string) {
		return withoutDate(s.raw(s.fast, request, 1)), withoutDate(s.raw(s.plain, request, 1))
	})
	return fast, plain
}

var waitTime = regexp.MustCompile(`(?i)(retry-after: |"retry_after":)[0-9]+`)

// agree asks both servers, at most tries times where they differ. A second may pass between the two:
// where only what they say of the time to wait differs, they are asked up to 20 times.
func agree(tries int, ask func() (string, string)) (fast, plain string, asked int) {
	for asked < 20 && tries > 0 {
		asked++
		fast, plain = ask()
		if fast == plain {
			break
		}
		if waitTime.ReplaceAllString(fast, "$1") != waitTime.ReplaceAllString(plain, "$1") {
			tries--
		}
	}
	return fast, plain, asked
}

func newReader(c net.Conn) *bufio.Reader { return bufio.NewReader(c) }

// loadText loads one server only, with these global options.
func (s *fastSite) loadText(options, sites string) error {
	s.t.Helper()
	s.Loads++
	text := fmt.Sprintf(`{
	admin %s
	persist_config off
	auto_https disable_redirects
	storage file_system %s
	log {
		output file %s
	}
	stockgate {
		redis %s {
			timeout 20s
		}
	}
	%s
}
%s`, s.AdminAddress(), s.Path("storage"), s.Path("log"), s.Redis, options, sites)
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
	if err = caddy.Load(config, true); err != nil {
		s.Loads-- // the one before goes on
	}
	return err
}
