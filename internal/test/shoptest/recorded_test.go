//go:build shops

package shoptest_test

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/chromium"
)

var update = flag.Bool("update", false, "write the recordings into internal/learn/testdata")

const recordings = "../../learn/testdata"

// storefront serves a page of testdata at the host of a shop, whose API stays where it is.
func storefront(t *testing.T, page, shop string) *httptest.Server {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: shop})
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join("testdata", page+".html"))
	})
	mux.Handle("/", proxy)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// purchase is what a buyer does on the page of a storefront: they fill the cart, something happens, and they pay.
type purchase struct {
	name, fill, pay string
	between         func()
	want            string // what pay returns
}

// recorded lets Chromium buy, and returns what the learned configuration is: of these recordings, and the same of
// those in testdata.
func recorded(t *testing.T, shop, addr, query string, purchases []purchase) (caddyfile, sale string) {
	t.Helper()
	page := storefront(t, shop, addr)
	browser := chromium.Start(t)
	fresh := t.TempDir()
	for _, p := range purchases {
		browser.Record()
		browser.Open(page.URL + "/" + query)
		chromium.Eval[any](browser, p.fill)
		if p.between != nil {
			p.between()
		}
		if got := chromium.Eval[string](browser, p.pay); got != p.want {
			t.Fatalf("%s: the page is told %s", p.name, got)
		}
		har := scrubbed(t, browser.HAR(), page.URL)
		dirs := []string{fresh}
		if *update {
			dirs = append(dirs, recordings)
		}
		for _, dir := range dirs {
			if err := os.WriteFile(filepath.Join(dir, shop+"-"+p.name+".har"), har, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	caddyfile, sale = learnFrom(t, fresh, shop, purchases)
	if stored, _ := learnFrom(t, recordings, shop, purchases); readFile(t, stored) != readFile(t, caddyfile) {
		t.Errorf("the recordings in testdata are no longer what the shop gives: make them again with -update\n%s", readFile(t, caddyfile))
	}
	return caddyfile, sale
}

// learnFrom runs the command, and returns the names of what it has written.
func learnFrom(t *testing.T, from, shop string, purchases []purchase) (caddyfile, sale string) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"stockgate", "learn", "--dir", dir}
	for _, p := range purchases {
		args = append(args, filepath.Join(from, shop+"-"+p.name+".har"))
	}
	learn := exec.Command(caddyBinary, args...)
	learn.Env = append(os.Environ(), "HOME="+dir)
	if out, err := learn.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "Caddyfile"), filepath.Join(dir, "sale.yaml")
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lists compares the item of a learned sale file.
func lists(t *testing.T, sale, sku, id string) {
	t.Helper()
	if want := "{sku: " + quoted(sku) + ", ids: [" + quoted(id) + "]"; !strings.Contains(readFile(t, sale), want) {
		t.Errorf("no %s in %s", want, readFile(t, sale))
	}
}

// A configuration that is learned from a purchase in Chromium sells out exactly.
func (v *vendure) learned(t *testing.T) {
	const fill = `fill('snk-1', 1, 'ada@shop.example')`
	caddyfile, sale := recorded(t, "vendure", v.addr, "", []purchase{
		{name: "buy", fill: fill, pay: `pay()`, want: "ordered"},
		{name: "again", fill: fill, pay: `pay()`, want: "ordered"},
		{name: "refused", fill: fill, pay: `pay(true)`, want: "PAYMENT_DECLINED_ERROR"},
	})
	lists(t, sale, "SNK-1", v.variant("SNK-1"))
	v.sellsBehind(t, caddyfile, 8, 24)
}

func (m *medusa) learned(t *testing.T) {
	const fill = `fill('snk-1', 1, 'ada@shop.example')`
	last := m.variant("ONE-1")
	takeLast := func() {
		b := newBrowser(m.url)
		defer b.close()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if e := m.buy(last)(ctx, b, 0); e != ordered {
			t.Error(e)
		}
	}
	caddyfile, sale := recorded(t, "medusa", m.addr, "?key="+m.key, []purchase{
		{name: "buy", fill: fill, pay: `pay()`, want: "ordered"},
		{name: "again", fill: fill, pay: `pay()`, want: "ordered"},
		{name: "refused", fill: strings.Replace(fill, "snk", "one", 1), between: takeLast, pay: `pay()`, want: "not_allowed"},
	})
	lists(t, sale, "SNK-1", m.variant("SNK-1"))
	m.sellsBehind(t, caddyfile, 8, 24)
}
