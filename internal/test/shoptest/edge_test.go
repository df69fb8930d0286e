//go:build shops

package shoptest_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/ports"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// gates are edges with the recipe of a shop, on one Redis.
type gates struct {
	t      testing.TB
	redis  *redistest.Server
	urls   []string
	admins []string // addresses of the edges' admin endpoints
	edges  []*process
}

// startGates starts edges with a Caddyfile in front of a shop, and opens a sale of some units of
// one item.
func startGates(t testing.TB, edges int, caddyfile, shop, item string, units int, env ...string) *gates {
	t.Helper()
	g := &gates{t: t, redis: redistest.Start(t)}
	for i := range edges {
		dir, err := os.MkdirTemp("", "edge") // a path of a unix socket has 104 bytes at most
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		url, admin := "http://127.0.0.1:"+ports.For(t), "unix/"+filepath.Join(dir, "admin")
		p := start(t, fmt.Sprint("edge", i), append([]string{
			"HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "CADDY_ADMIN=" + admin,
			"SITE=" + url, "SHOP=" + shop, "REDIS=" + g.redis.Addr(), "REDIS_TIMEOUT=20s", "STOCKGATE_KEY=a secret of the edges of this test",
		}, env...), caddyBinary, "run", "--config", caddyfile)
		p.until(t, "the edge answers", func() bool {
			r, err := http.Get(url + "/health")
			if err != nil {
				return false
			}
			r.Body.Close()
			return r.StatusCode == http.StatusOK
		})
		g.urls, g.admins, g.edges = append(g.urls, url), append(g.admins, admin), append(g.edges, p)
	}
	file := filepath.Join(t.TempDir(), "sale.yaml")
	text := fmt.Sprintf("id: flash\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: SNK-1, ids: [%q], stock: %d}\n"+
		"limits:\n  - {per: buyer, every: sale, max: 2, count: units}\n", item, units)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g.command("sale", "apply", file)
	g.command("sale", "open", "flash")
	for i, url := range g.urls {
		g.edges[i].until(t, "the edge knows the sale", func() bool {
			r, err := http.Get(url + "/sales/flash/items/" + item)
			if err != nil {
				return false
			}
			r.Body.Close()
			return r.StatusCode == http.StatusOK
		})
	}
	return g
}

// command runs caddy stockgate, which must succeed, and returns what it prints.
func (g *gates) command(args ...string) string {
	g.t.Helper()
	out, err := exec.Command(caddyBinary, append([]string{"stockgate", "--address", g.admins[0]}, args...)...).CombinedOutput()
	if err != nil {
		g.t.Errorf("caddy stockgate %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// reconcile compares Redis with its own history and with the shop's orders and their units.
func (g *gates) reconcile(orders [][]string) {
	g.t.Helper()
	file := filepath.Join(g.t.TempDir(), "orders.csv")
	f, err := os.Create(file)
	if err != nil {
		g.t.Fatal(err)
	}
	if err := csv.NewWriter(f).WriteAll(orders); err != nil {
		g.t.Fatal(err)
	}
	f.Close()
	report := g.command("reconcile", "flash", "--shop", file)
	if g.t.Log(report); strings.Contains(report, "units of the shop's orders are not compared") {
		g.t.Error("the units are not compared")
	}
}

// stock is what Redis says of the item.
func (g *gates) stock() string { return g.command("sale", "show", "flash") }
