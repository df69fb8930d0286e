package e2e_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// site is what a test wants of a Caddyfile; what it leaves empty has a default.
type site struct {
	redis   string // arguments and block of `redis`; default: embedded
	app     string // more of the global stockgate block
	global  string // more global options
	outer   string // directives of the site that stand outside the gate
	matcher string // of the gate; default: path /api/order
	name    string // of the gate; default: none
	gate    string // more of the gate's block
	source  string // the gate's buyer and lines; default: header and JSON
	shop    string // host:port that the default backend proxies to
	backend string // what is behind the gate; default: reverse_proxy to shop
	noGuard bool   // leave stockgate_guard out
	tls     bool   // serve HTTPS
	sale    string // the only one that the gate sells; default: that which lists the item
	others  string // other sites
}

const sources = `
		buyer  {header.X-User-Id}
		region {json.region}
		line   {json.sku} {json.quantity}`

func fill(p *string, value string) {
	if *p == "" {
		*p = value
	}
}

func (s site) caddyfile(e *edge) string {
	fill(&s.redis, "embedded {\n timeout 20s\n}")
	return fmt.Sprintf(`{
	admin unix/%s
	storage file_system %s
	persist_config off
	auto_https disable_redirects
	skip_install_trust
	log {
		level DEBUG
	}
	%s
	stockgate {
		redis %s
		%s
	}
}
%s%s
`, e.admin, e.storage, s.global, s.redis, s.app, s.block(e), s.others)
}

// block is the site in the Caddyfile. At /e2e/heard it says what the edge would refuse from memory.
func (s site) block(e *edge) string {
	fill(&s.matcher, "path /api/order")
	fill(&s.source, sources)
	fill(&s.backend, "reverse_proxy "+s.shop+" {\n transport http {\n  dial_timeout 1m\n }\n}")
	if !strings.Contains(s.gate, "hold_for") { // an order that the machine keeps waiting is not in doubt
		s.gate = "hold_for 10m\n" + s.gate
	}
	if s.sale != "" {
		s.gate = "sale " + s.sale + "\n" + s.gate
	}
	guard := "stockgate_guard"
	if s.noGuard {
		guard = ""
	}
	address, tls := "http://"+e.addr, ""
	if s.tls {
		address, tls = "https://"+e.addr, "tls "+strings.Join(e.certificate(), " ")
	}
	return fmt.Sprintf(`%s {
	bind 127.0.0.1
	%s
	@order %s
	%s
	%s
	handle /e2e/heard {
		stockgate_check {
			sale {query.sale}
			region {query.region}
			line {query.sku}
		}
		respond heard
	}
	stockgate_status
	stockgate @order %s {
		%s
		%s
	}
	%s
}
`, address, tls, s.matcher, guard, s.outer, s.name, s.source, s.gate, s.backend)
}

// redisAt is the redis option for a server, with time enough for a slow machine.
func redisAt(addr string) string { return addr + " {\n timeout 20s\n}" }

// redisIn is redisAt with another timeout.
func redisIn(addr, timeout string) string { return addr + " {\n timeout " + timeout + "\n}" }

// listFile writes a named list and returns the option that opens it.
func listFile(t *testing.T, name, entries string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("list %s file %s\n", name, path)
}

// certificate writes one for 127.0.0.1 and its key into files. Caddy's own CA would make
// one too, but its events race with the start of Caddy's TLS app.
func (e *edge) certificate() []string {
	e.t.Helper()
	own := httptest.NewTLSServer(nil)
	defer own.Close()
	pair := own.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		e.t.Fatal(err)
	}
	var files []string
	for _, block := range []pem.Block{{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, {Type: "PRIVATE KEY", Bytes: key}} {
		file := filepath.Join(e.dir, strings.ToLower(block.Type[len(block.Type)-3:])+".pem")
		if err := os.WriteFile(file, pem.EncodeToMemory(&block), 0o600); err != nil {
			e.t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}
