//go:build browser

// `make browser` runs these tests: they need Chromium.
package e2e_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clicks buys three times on the page of the example, and reports what it says.
const clicks = `
<script type="module">
  const says = document.querySelector('output')
  const results = []
  for (const buyer of ['ann', 'ben', 'cay']) {
    document.querySelector('[name=buyer]').value = buyer
    const result = new Promise((resolve) => {
      new MutationObserver((_, watcher) => {
        if (/^(Ordered|Not ordered)/.test(says.textContent)) {
          watcher.disconnect()
          resolve(says.textContent)
        }
      }).observe(says, { childList: true })
    })
    document.querySelector('button').click()
    results.push(await result)
  }
  await fetch('/report', { method: 'POST', body: results.join('\n') })
</script>`

// The page of examples/challenge orders in a browser: where the edge asks for work, it does
// the work in a worker and orders again.
func TestBrowserSolvesChallenges(t *testing.T) {
	report := make(chan string, 1)
	s := new(recorder)
	shop := http.NewServeMux()
	shop.Handle("POST /api/order", s)
	page, err := os.ReadFile("../examples/challenge/index.html")
	if err != nil {
		t.Fatal(err)
	}
	shop.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, string(page)+clicks) })
	shop.Handle("GET /", http.FileServer(http.Dir("../examples/challenge")))
	shop.HandleFunc("POST /report", func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		report <- string(body)
	})
	e := startEdge(t, site{shop: serve(t, shop), gate: "challenge pow {\nabove 1 1h\nbits 14 14\n}", source: "buyer {json.buyer}\nline {json.sku}"})
	e.sell("flash", `  - {sku: "7", stock: 20}`)

	browser := exec.Command("chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--user-data-dir="+filepath.Join(e.dir, "browser"), e.url+"/")
	log := new(logBuffer)
	browser.Stdout, browser.Stderr = log, log
	dieWithParent(browser)
	if err := browser.Start(); err != nil {
		t.Fatalf("%v: `scripts/need chromium` installs it", err)
	}
	gone := make(chan struct{})
	go func() {
		browser.Wait()
		close(gone)
	}()
	defer func() {
		browser.Process.Kill()
		<-gone
	}()
	select {
	case got := <-report:
		if want := strings.Repeat("Ordered.\n", 2) + "Ordered."; got != want {
			t.Errorf("the page says %q, want %q", got, want)
		}
	case <-gone:
		t.Fatalf("the browser has ended:\n%s", log.tail())
	case <-time.After(patience):
		t.Fatalf("the page reports nothing:\n%s", log.tail())
	}
	if s.orders() != 3 {
		t.Errorf("the shop got %d orders", s.orders())
	}
	if asked := e.metric(`stockgate_attempts_total{outcome="refused",reason="challenge",sale=""}`); asked != 2 {
		t.Errorf("%v attempts were asked for work, want 2", asked)
	}
}
