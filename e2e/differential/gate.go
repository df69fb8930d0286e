package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stockgate/stockgate/internal/test/ports"
	"github.com/stockgate/stockgate/token"
)

// skus are the items of the sale. All of them may be bought; a listed number is what no
// cast of another SKU may give.
var skus = []string{
	"20002001", "7", "1234567890123", "9007199254740993", "tea", "TEA-2", "cafe_01", "a+b", "a%2Bb", "a=b", "a&b", "a;b", "a,b", "a'b", `a"b`, `a\b`,
	"[a]", "{a}", "a/b", "a.b", "a#b", "__proto__", "constructor", "null", "true", "NaN", "1e3", "0x10", "$sku", "<b>",
}

// numbers are those of skus that are plain numbers.
var numbers = []string{"20002001", "7", "1234567890123", "9007199254740993"}

// route is one gate: what its values are read from.
type route struct {
	name string
	path string
	gate string // in the Caddyfile
	// order says in which of a shop's readings the lines stand, user where the buyer does.
	order, user []string
	lines       bool // the lines are an array
	single      bool // every order is of one unit
	other       bool // items that no sale lists pass
}

var (
	inBody  = []string{"body", "form", "merged"}
	inQuery = []string{"query", "merged"}
)

var routes = []route{
	{name: "json", path: "/json", order: inBody, user: inBody, gate: "buyer {json.user}\nline {json.sku} {json.quantity}"},
	{name: "lines", path: "/lines", order: inBody, user: inBody, lines: true, gate: "buyer {json.user}\nlines {json.order.items} sku count"},
	{name: "form", path: "/form", order: inBody, user: inBody, gate: "buyer {form.user}\nline {form.sku} {form.quantity}"},
	{name: "items", path: "/items", order: inBody, user: inBody, lines: true, gate: "buyer {form.user}\nlines {form.items} sku count"},
	{name: "keys", path: "/keys", order: inBody, user: inBody, lines: true, gate: "buyer {form.user}\nlines {form.qty} @key @value"},
	{name: "lists", path: "/lists", order: inBody, user: inBody, lines: true, gate: "buyer {form.user}\nlines {form.skus[]} {form.counts[]}"},
	{name: "query", path: "/query", order: inQuery, user: inQuery, gate: "buyer {query.user}\nline {query.sku} {query.quantity}"},
	{name: "ignored", path: "/ignored", order: []string{"query"}, user: []string{"query"}, gate: "buyer {query.user}\nline {query.sku} {query.quantity}\nbody ignored"},
	{name: "param", path: "/param", order: []string{"merged"}, user: []string{"merged"}, gate: "buyer {param.user}\nline {param.sku} {param.quantity}"},
	{name: "cookie", path: "/cookie", order: []string{"cookie"}, user: []string{"cookie"}, single: true, gate: "buyer {cookie.user}\nline {cookie.sku}"},
	{name: "header", path: "/header", order: []string{"header"}, user: []string{"header"}, gate: "buyer {header.X-User-Id}\nline {header.X-Sku} {header.X-Quantity}"},
	{name: "path", path: "/path", order: []string{"path"}, user: []string{"header"}, gate: "buyer {header.X-User-Id}\nline {path.1} {path.2}"},
	{name: "other", path: "/other", order: inBody, other: true, gate: "buyer {header.X-User-Id}\nline {json.sku} {json.quantity}\nother_items pass"},
	{name: "otherform", path: "/otherform", order: inBody, other: true, gate: "buyer {header.X-User-Id}\nline {form.sku} {form.quantity}\nother_items pass"},
}

// reached is the header by which an answer of a shop is told from one of the gate.
const reached = "X-Reached"

const secret = "a secret of thirty-two bytes and more"

// gate is Caddy with one site for each shop.
type gate struct{ verifier *token.Verifier }

// gate starts Redis and Caddy, and opens the sale.
func (l *launcher) gate(ctx context.Context, caddy string, shops []*shop) (*gate, error) {
	if caddy == "" {
		caddy = l.path("caddy")
		// without the profile, which takes minutes and changes no reading
		build := exec.CommandContext(ctx, "go", "build", "-pgo=off", "-o", caddy, "github.com/stockgate/stockgate/cmd/caddy")
		build.Dir = l.source
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build caddy: %w: %s", err, out)
		}
	} else if abs, err := filepath.Abs(caddy); err == nil {
		caddy = abs
	}
	redis, err := ports.Free()
	if err != nil {
		return nil, err
	}
	p, err := l.start("redis-server", nil, "redis-server", "--port", fmt.Sprint(redis), "--bind", "127.0.0.1", "--save", "", "--dir", l.dir)
	if err == nil {
		err = p.listens(ctx, redis)
	}
	if err != nil {
		return nil, err
	}
	all := append(shops, liar)
	for _, s := range all {
		if s.site, err = ports.Free(); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(l.path("Caddyfile"), []byte(caddyfile(l, redis, all)), 0o600); err != nil {
		return nil, err
	}
	env := []string{"HOME=" + l.dir, "XDG_DATA_HOME=" + l.dir, "XDG_CONFIG_HOME=" + l.dir}
	if p, err = l.start("caddy", env, caddy, "run", "--config", l.path("Caddyfile"), "--adapter", "caddyfile"); err != nil {
		return nil, err
	}
	for _, s := range all {
		if err := p.listens(ctx, s.site); err != nil {
			return nil, err
		}
	}
	if err := l.openSale(caddy); err != nil {
		return nil, err
	}
	verifier, err := token.NewVerifier(token.Options{Secret: secret, Audience: "order-backend"})
	return &gate{verifier}, err
}

func (l *launcher) openSale(caddy string) error {
	var sale strings.Builder
	sale.WriteString("id: differential\nstarts_at: 2001-01-01T00:00:00Z\nends_at: 2099-01-01T00:00:00Z\nitems:\n")
	for _, sku := range skus {
		fmt.Fprintf(&sale, "  - {sku: %q, stock: 1000000000000}\n", sku)
	}
	if err := os.WriteFile(l.path("sale.yaml"), []byte(sale.String()), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{{"apply", l.path("sale.yaml")}, {"open", "differential"}} {
		cmd := exec.Command(caddy, append([]string{"stockgate", "sale", "--address", "unix/" + l.path("admin")}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("sale %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

func caddyfile(l *launcher, redis int, shops []*shop) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{
	admin unix/%s
	storage file_system %s
	persist_config off
	auto_https off
	log {
		level ERROR
	}
	stockgate {
		redis %s {
			timeout 20s
		}
		journal {
			most 100000
		}
		token {
			key hmac %q
		}
	}
}
`, l.path("admin"), l.path("storage"), loopback(redis), secret)
	b.WriteString("(gates) {\n\tbind 127.0.0.1\n\tstockgate_guard\n")
	for _, r := range routes {
		fmt.Fprintf(&b, "\t@%[1]s path %[2]s %[2]s/*\n\tstockgate @%[1]s {\n\t\t%[3]s\n\t\tmax_in_flight 10000\n\t\trelease 4xx 5xx\n\t}\n",
			r.name, r.path, strings.ReplaceAll(r.gate, "\n", "\n\t\t"))
	}
	b.WriteString("}\n")
	for _, s := range shops {
		proxy := "reverse_proxy " + loopback(s.port)
		if s.fastcgi != "" {
			proxy = "root * " + s.fastcgi + "\n\tphp_fastcgi " + loopback(s.port)
		}
		fmt.Fprintf(&b, "http://:%d {\n\timport gates\n\t%s {\n\t\theader_down %s %s\n\t}\n}\n", s.site, proxy, reached, s.name)
	}
	return b.String()
}
