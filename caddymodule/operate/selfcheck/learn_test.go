package selfcheck_test

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/stockgate/stockgate/caddymodule/command"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

func init() { sitetest.BeCaddy() }

// stock and buyers of each crowd.
const (
	stock  = 6
	buyers = 24
)

// canaries are values of the recorded buyer that must be in nothing that is written.
var canaries = []string{"canary-pass", "canary@mail.test", "Cana Rybird", "+49 171 5550199", "Canarystreet", "canary-csrf", "4111111111111111"}

// TestLearnedShopsSellOut buys once at each shop, learns from the recording, and lets a crowd buy at the same
// shop behind what was written.
func TestLearnedShopsSellOut(t *testing.T) {
	for name, open := range shops {
		t.Run(name, func(t *testing.T) {
			shop := open(t)
			server := httptest.NewServer(shop.handler)
			defer server.Close()
			shop.url = server.URL
			dir := learned(t, shop, server.URL)
			site := gateFor(t, shop, dir)
			crowd(t, shop, site)
		})
	}
}

// learned records purchases at a shop, runs the command, and returns the directory with its files.
func learned(t *testing.T, shop *testShop, url string) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"learn", "--dir", dir}
	for i, name := range []string{"buy.har", "refused.har"} {
		shop.refuses.Store(i == 1)
		b := newBrowser(t, url, nil)
		if took := shop.buy(b, "canary"); took == (i == 1) {
			t.Fatalf("%s: the shop took it: %v", name, took)
		}
		args = append(args, b.har.save(t, dir, name))
		if shop.noRefusal {
			break
		}
	}
	shop.refuses.Store(false)
	shop.orders.Store(0)
	ran := sitetest.Here(t, "", args...)
	if ran.Status != 0 {
		failed, _ := os.ReadFile(filepath.Join(dir, "Caddyfile.failed"))
		t.Fatalf("%d\n%s%s\n%s", ran.Status, ran.Out, ran.Errors, failed)
	}
	t.Log(ran.Out + read(t, dir, "Caddyfile") + read(t, dir, "sale.yaml") + read(t, dir, "questions.md"))
	hidden(t, shop, dir)
	warningsRepeated(t, dir)
	return dir
}

// warningsRepeated adapts the configuration as Caddy does: questions.md has each of its warnings.
func warningsRepeated(t *testing.T, dir string) {
	t.Helper()
	_, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(read(t, dir, "Caddyfile")), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		if !strings.Contains(read(t, dir, "questions.md"), w.Message) {
			t.Errorf("questions.md does not repeat: %s", w)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// hidden looks for values of the recorded buyer.
func hidden(t *testing.T, shop *testShop, dir string) {
	t.Helper()
	for _, name := range []string{"Caddyfile", "sale.yaml", "questions.md"} {
		for _, canary := range append(canaries, shop.secrets()...) {
			if strings.Contains(read(t, dir, name), canary) {
				t.Errorf("%s has %q of the recording", name, canary)
			}
		}
	}
}

var siteBlock = regexp.MustCompile(`(?s)\n:8080 \{\n(.*)\n\}\n`)

// gateFor answers the questions as an operator does, and runs the configuration.
func gateFor(t *testing.T, shop *testShop, dir string) *sitetest.Site {
	t.Helper()
	found := siteBlock.FindStringSubmatch(read(t, dir, "Caddyfile"))
	if found == nil {
		t.Fatal("the Caddyfile has no site at :8080")
	}
	directives := found[1]
	if shop.answers != nil {
		directives = shop.answers(directives)
	}
	site := sitetest.OpenCaddyfile(t, directives)
	text := strings.Replace(read(t, dir, "sale.yaml"), "stock: 1", fmt.Sprint("stock: ", stock), 1)
	text = regexp.MustCompile(`starts_at: .*`).ReplaceAllString(text, "starts_at: 2020-01-01T00:00:00Z")
	text = regexp.MustCompile(`ends_at: .*`).ReplaceAllString(text, "ends_at: 2090-01-01T00:00:00Z")
	sitetest.Do[any](site, "PUT", "/stockgate/sales/sale", text)
	sitetest.Do[any](site, "POST", "/stockgate/sales/sale/open", "")
	return site
}

// crowd lets buyers buy at once: as many as there are units are sold, and the shop has no other order.
func crowd(t *testing.T, shop *testShop, site *sitetest.Site) {
	t.Helper()
	socket := site.Socket("http")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	var all sync.WaitGroup
	for i := range buyers {
		all.Go(func() { shop.buy(newBrowser(t, shop.url, dial), fmt.Sprint("buyer", i)) })
	}
	all.Wait()
	if n := shop.orders.Load(); n != stock {
		t.Errorf("the shop has %d orders, not %d", n, stock)
	}
	stockOf := sitetest.Do[sitetest.SaleStock](site, "GET", "/stockgate/sales/sale", "")
	if cell := stockOf.Cell(stockOf.Items[0].SKU, ""); cell != fmt.Sprint(stock, 0, 0, 0, stock) {
		t.Errorf("the sale has stock, available, held, in doubt, confirmed: %s", cell)
	}
}

// runLearn runs the command.
func runLearn(t *testing.T, dir string, args ...string) sitetest.Ran {
	t.Helper()
	return sitetest.Here(t, "", append([]string{"learn", "--dir", dir}, args...)...)
}
