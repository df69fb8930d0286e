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

	if got, want := browse(t, e, report), strings.Repeat("Ordered.\n", 2)+"Ordered."; got != want {
		t.Errorf("the page says %q, want %q", got, want)
	}
	if s.orders() != 3 {
		t.Errorf("the shop got %d orders", s.orders())
	}
	if asked := e.metric(`stockgate_attempts_total{outcome="refused",reason="challenge",sale=""}`); asked != 2 {
		t.Errorf("%v attempts were asked for work, want 2", asked)
	}
}

// browse opens the edge's page in a browser until the test ends, and returns the first report.
func browse(t *testing.T, e *edge, report <-chan string) string {
	t.Helper()
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
	t.Cleanup(func() {
		browser.Process.Kill()
		<-gone
	})
	select {
	case got := <-report:
		return got
	case <-gone:
		t.Fatalf("the browser has ended:\n%s", log.tail())
	case <-time.After(patience):
		t.Fatalf("the page reports nothing:\n%s", log.tail())
	}
	panic("unreachable")
}

// waits orders on the page of the example while the shop is busy: the first order comes to its
// turn, the second is cancelled.
const waits = `
<script type="module">
  const says = document.querySelector('output')
  const until = (state) => new Promise((resolve) => {
    const look = () => says.dataset.state === state && resolve(says.textContent)
    new MutationObserver(look).observe(says, { attributes: true, childList: true })
    look()
  })
  const report = (text) => fetch('/report', { method: 'POST', body: text })
  const buy = (buyer) => {
    document.querySelector('[name=buyer]').value = buyer
    document.querySelector('form button').click()
  }
  buy('ann')
  await report(await until('waiting'))
  await report(await until('ordered'))
  buy('ben')
  await report(await until('waiting'))
  document.querySelector('#cancel').click()
  await report(await until('released'))
</script>`

// The page of examples/queue shows its place in the line, the shop's answer when its turn has come,
// and that an order was cancelled.
func TestBrowserShowsThePlace(t *testing.T) {
	report, goOn, busy := make(chan string), make(chan struct{}), make(chan struct{})
	s := new(recorder)
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Busy") != "" {
			<-busy
		}
		w.WriteHeader(http.StatusCreated)
	}
	shop := http.NewServeMux()
	shop.Handle("POST /api/order", s)
	page, err := os.ReadFile("../examples/queue/index.html")
	if err != nil {
		t.Fatal(err)
	}
	shop.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, string(page)+waits) })
	shop.Handle("GET /", http.FileServer(http.Dir("../examples/queue")))
	shop.HandleFunc("POST /report", func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		report <- string(body)
		<-goOn
	})
	e := startEdge(t, site{
		shop: serve(t, shop), gate: "hold_for 10m\nidempotency {header.Idempotency-Key}\nqueue {\nat_once 1\n}", source: "buyer {json.buyer}\nline {json.sku}",
	})
	e.sell("flash", `  - {sku: "7", stock: 20}`)
	keepBusy := func(buyer string, orders int) <-chan result {
		done := e.goBuy(order{body: `{"buyer":"` + buyer + `","sku":"7"}`, header: http.Header{"X-Busy": {"1"}}})
		eventually(t, "the shop is busy", func() bool { return s.orders() == orders })
		return done
	}
	first := keepBusy("first", 1)
	const place = "The goods are held for you. You are number 1 in the line"
	if got := browse(t, e, report); !strings.HasPrefix(got, place) {
		t.Errorf("the page says %q", got)
	}
	goOn <- struct{}{}
	busy <- struct{}{}
	await(t, "the shop's answer", first)
	if got := await(t, "the page", report); got != "Ordered." {
		t.Errorf("then it says %q", got)
	}
	second := keepBusy("second", 3)
	goOn <- struct{}{}
	if got := await(t, "the page", report); !strings.HasPrefix(got, place) {
		t.Errorf("of the second order it says %q", got)
	}
	goOn <- struct{}{}
	if got := await(t, "the page", report); !strings.HasPrefix(got, "Not ordered") {
		t.Errorf("of the cancelled order it says %q", got)
	}
	goOn <- struct{}{}
	busy <- struct{}{}
	await(t, "the shop's answer", second)
	e.untilExpected("flash", 17, 0, 0, 3)
}
