//go:build browser

// `make browser` runs these tests: they need Chromium, Node and npm.
package dashboard_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/chromium"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// startEdge starts an edge on a Redis, whose gate has further options, in front of a shop that
// takes every order but for some buyers.
func startEdge(t testing.TB, redis string, options ...string) *edgeProcess {
	t.Helper()
	return startEdgeAt(t, redis, filepath.Join(t.TempDir(), "storage"), options...)
}

// screens is where the screenshots go, for people to look at.
const screens = "../../../bin/screens"

// shots takes a screenshot in each size and colour.
func shots(t *testing.T, b *chromium.Browser, name string) {
	t.Helper()
	if err := os.MkdirAll(screens, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{1440, 1024, 390} {
		b.Size(width, 900, width < 500)
		for _, dark := range []bool{false, true} {
			b.Dark(dark)
			b.Screenshot(filepath.Join(screens, fmt.Sprintf("%s-%d-%s.png", name, width, map[bool]string{false: "light", true: "dark"}[dark])), "png", true)
			if over := chromium.Eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%s at %d px is %d px too wide", name, width, over)
			}
		}
	}
	b.Size(1440, 900, false)
	b.Dark(false)
}

// accessible lets axe-core look for what keeps people from using the page.
func accessible(t *testing.T, b *chromium.Browser, what string) {
	t.Helper()
	axe, err := os.ReadFile("web/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("%v: `make browser` installs it", err)
	}
	chromium.Eval[any](b, string(axe)+"\n;0")
	for _, width := range []int{1440, 390} {
		b.Size(width, 900, width < 500)
		rules(t, b, fmt.Sprintf("%s at %d px", what, width))
	}
	b.Size(1440, 900, false)
}

// rules lets axe-core run its rules in both colours.
func rules(t *testing.T, b *chromium.Browser, what string) {
	t.Helper()
	for _, dark := range []bool{false, true} {
		b.Dark(dark)
		for _, v := range chromium.Eval[[]string](b, `axe.run().then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html + ' ' + n.failureSummary).slice(0, 3).join(' | ')))`) {
			t.Errorf("%s, dark %v: %s", what, dark, v)
		}
	}
	b.Dark(false)
}

// stockOnPage reads what the page says: sold of all, and available, held, in doubt, sold.
const stockOnPage = `[document.querySelector('#sold').textContent, ...[...document.querySelectorAll('#cells dd')].map((d) => d.textContent)].join(' ')`

// row is a condition: a table has a row that begins so.
func row(place string, cells ...string) string {
	want, _ := json.Marshal(strings.Join(cells, "|"))
	return fmt.Sprintf(`[...document.querySelectorAll('%s tr')].some((r) => [...r.cells].slice(0, %d).map((c) => c.textContent).join('|') === %s)`, place, len(cells), want)
}

// The page as an operator uses it, from an empty edge to a Redis that is gone.
func TestBrowserDashboard(t *testing.T) {
	redis := redistest.Start(t)
	e := startEdge(t, redis.Addr())
	b := chromium.Start(t)
	b.Size(1440, 900, false)
	b.Header("Authorization", ann)
	b.Open("http://" + e.pages + "/ops/")
	b.Until(`document.querySelector('#empty pre')?.textContent.includes('caddy stockgate sale open')`)
	accessible(t, b, "empty")
	shots(t, b, "empty")

	// a sale is shown without a reload
	chromium.Eval[any](b, `window.same = 'page'`)
	e.ask("PUT", "sales/flash", edgeSale)
	b.Until(`document.querySelector('#title').textContent === 'flash' && document.querySelector('#state').textContent === 'draft, not open'`)
	b.Until(`location.search === '?sale=flash'`) // and still when the page is loaded again

	byKeyboard(t, b, "open")
	b.Until(`document.querySelector('#state').textContent === 'on sale'`)

	// a stampede: in the end the numbers on the page are those of the books
	attempts := 400
	if n := e.rush(attempts, "apple", "berry"); n != 100 {
		t.Errorf("%d orders of 100 units", n)
	}
	b.Until(stockOnPage + ` === '100 10 0 0 100'`)
	b.Until(`document.querySelector('#age').textContent.startsWith('live')`)
	var books struct {
		Items []struct{ Available, Confirmed int64 }
	}
	if err := json.Unmarshal([]byte(e.ask("GET", "sales/flash", "")), &books); err != nil || books.Items[0].Confirmed+books.Items[1].Confirmed != 100 {
		t.Errorf("the books: %+v %v", books, err)
	}
	const soldOut = `[...document.querySelectorAll('#refusals tr')].some((r) => r.textContent.startsWith('sold_out'))`
	for !chromium.Eval[bool](b, soldOut) { // while orders were at the shop, others heard all_held
		e.rush(1, "apple")
		attempts++
	}
	b.Until(row("#refusals", "confirmed", "100"))
	// every attempt was answered, 100 by an order; nothing waits any more
	b.Until(row("#refusals", "got the goods", "100") + " && " + row("#refusals", "were refused", fmt.Sprint(attempts-100)))
	if !chromium.Eval[bool](b, `['got the goods', 'were refused'].every((who) => { const [, half, most] = [...[...document.querySelectorAll('#refusals tr')].find((r) => r.cells[0].textContent === who).cells].slice(1).map((c) => Number(c.textContent.replaceAll(',', ''))); return half > 0 && half <= most })`) {
		t.Errorf("how long they waited: %s", chromium.Eval[string](b, `document.querySelector('#refusals').innerText`))
	}
	b.Until(`[...document.querySelectorAll('#behind dd')].slice(0, 2).map((d) => d.textContent).join() === '0,0'`)
	b.Until(`[...document.querySelectorAll('#items tbody tr')].some((r) => r.textContent.startsWith('apple') && r.textContent.includes('sold out'))`)
	b.Until(`document.querySelectorAll('canvas').length === 3`)
	accessible(t, b, "sold out")
	shots(t, b, "rush")

	search(t, b)
	addStock(t, b, e)
	resolve(t, b, e)
	if got := b.Complaints(); len(got) > 0 {
		t.Errorf("the browser complains: %q", got)
	}

	// the edge ends and starts again: the same page says so, and goes on
	e.stop()
	b.Until(`document.body.classList.contains('stale') && document.querySelector('#age').textContent.startsWith('stale since')`)
	e.start()
	b.Until(`!document.body.classList.contains('stale') && document.querySelector('#age').textContent.startsWith('live') && window.same === 'page'`)

	redis.Stop()
	b.Until(`document.body.classList.contains('stale') && document.querySelector('#alarms').textContent.includes('redis') && document.querySelector('#vitals').textContent.includes('not selling') && document.querySelector('#state').textContent === 'open, but this edge does not sell'`)
	accessible(t, b, "without Redis")
	shots(t, b, "redis-gone")
}

// byKeyboard does an act of the sale with the keyboard alone.
func byKeyboard(t *testing.T, b *chromium.Browser, act string) {
	t.Helper()
	b.Until(`document.querySelector('[data-act=` + act + `]')`)
	chromium.Eval[any](b, `document.querySelector('[data-act=`+act+`]').focus()`)
	b.Key("Enter", 13)
	b.Until(`document.querySelector('dialog').open && document.activeElement.textContent === 'Cancel'`)
	accessible(t, b, "dialog of "+act)
	confirm(t, b)
}

// confirm confirms the open dialog, and closes it when the answer is there.
func confirm(t *testing.T, b *chromium.Browser) {
	t.Helper()
	chromium.Eval[any](b, `document.querySelector('dialog .primary').focus()`)
	b.Key("Enter", 13)
	b.Until(`document.querySelector('dialog .good')`)
	b.Key("Escape", 27)
	b.Until(`!document.querySelector('dialog').open`)
}

// search finds an item, and the list is what moves again without a search.
func search(t *testing.T, b *chromium.Browser) {
	t.Helper()
	chromium.Eval[any](b, `document.querySelector('#search').focus()`)
	b.Type("SOUTH")
	b.Until(`[...document.querySelectorAll('#items tbody tr')].map((r) => r.cells[0].textContent + r.cells[1].textContent).join() === 'cherrysouth'`)
	chromium.Eval[any](b, `document.querySelector('#search').value = ''; document.querySelector('#search').dispatchEvent(new Event('input'))`)
	b.Until(`document.querySelectorAll('#items tbody tr').length === 4`)
}

// addStock adds stock to an item: the dialog names what will change.
func addStock(t *testing.T, b *chromium.Browser, e *edgeProcess) {
	t.Helper()
	b.Until(`document.querySelector('[aria-label="Add stock: apple "]')`)
	chromium.Eval[any](b, `document.querySelector('[aria-label="Add stock: apple "]').click()`)
	b.Until(`document.activeElement.id === 'delta'`)
	b.Type("7")
	b.Until(`document.querySelector('dialog .effect').textContent.includes('60 units become 67, 0 available become 7.')`)
	confirm(t, b)
	b.Until(stockOnPage + ` === '100 17 0 0 100'`)
	b.Until(`document.querySelector('#log').textContent.includes('ann@127.0.0.1') && document.querySelector('#log').textContent.includes('+7 of apple')`)
}

// resolve settles holds in doubt: first a dry run says how many, then they are released.
func resolve(t *testing.T, b *chromium.Browser, e *edgeProcess) {
	t.Helper()
	for e.rushAs("lost", "apple") == http.StatusConflict { // until the edge knows of the stock that was added
	}
	b.Until(`document.querySelector('#questions').textContent.includes('status_500')`)
	accessible(t, b, "questions")
	chromium.Eval[any](b, `document.querySelector('#questions [data-to=confirm]').click()`)
	b.Until(`document.querySelector('dialog').open && document.querySelector('dialog .effect').textContent.includes('1 unit counts as sold')`)
	confirm(t, b)
	b.Until(stockOnPage + ` === '101 16 0 0 101'`)
	b.Until(`document.querySelector('#questions').textContent.includes('nothing to decide')`)
}

// Read-only is the same page without the buttons, and its server refuses what they would do.
func TestBrowserReadOnly(t *testing.T) {
	e := startEdge(t, redistest.Start(t).Addr())
	e.ask("PUT", "sales/flash", edgeSale)
	b := chromium.Start(t)
	b.Header("Authorization", ann)
	b.Open("http://" + e.pages + "/wall/")
	b.Until(stockOnPage + ` === '0 110 0 0 0' && document.querySelectorAll('#items tbody tr').length === 4`)
	if n := chromium.Eval[int](b, `document.querySelectorAll('[data-act], [data-stock], [data-to]').length`); n != 0 {
		t.Errorf("%d buttons", n)
	}
	if status := chromium.Eval[int](b, `fetch('acts/sales/flash/open', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'}).then((r) => r.status)`); status != 405 {
		t.Errorf("an act: %d", status)
	}
	b.Open("http://" + e.pages + "/wall/?sale=gone") // such as the address that the page had
	b.Until(`document.querySelector('#empty a')?.textContent === 'Show the first sale'`)
	chromium.Eval[any](b, `document.querySelector('#empty a').click()`)
	b.Until(`location.search === '?sale=flash' && document.querySelector('#title').textContent === 'flash'`)
}

// What a gate in shadow would have refused is on the page: by reason, and whether the shop sold
// it. The shop answers every order, and no unit is held.
func TestBrowserShadow(t *testing.T) {
	e := startEdge(t, redistest.Start(t).Addr(), "shadow")
	e.ask("PUT", "sales/flash", strings.ReplaceAll(edgeSale, "stock: 60", "stock: 2"))
	e.ask("POST", "sales/flash/open", "")
	b := chromium.Start(t)
	b.Size(1440, 900, false)
	b.Header("Authorization", ann)
	b.Open("http://" + e.pages + "/wall/")
	b.Until(`document.querySelector('#state').textContent === 'on sale'`)
	if chromium.Eval[bool](b, `document.querySelector('#refusals').textContent.includes('In shadow')`) {
		t.Error("the page speaks of shadow before there was an order")
	}
	past, would := "refused it, and the shop sold it", "refused it"
	for _, order := range []struct {
		buyer, sku string
		answer     int
		row        []string
	}{
		{"ann", "apple", 201, []string{"forwarded it, and the shop sold it", "", "1"}},
		{"bob", "apple", 201, []string{"forwarded it, and the shop sold it", "", "2"}},
		{"poor", "berry", 402, []string{"forwarded it, and the shop refused it", "", "1"}},
		{"cai", "apple", 201, []string{past, "sold_out", "1"}}, // there were two
		{"dan", "apple", 201, []string{past, "sold_out", "2"}},
		{"poor", "apple", 402, []string{would, "sold_out", "1"}},
		{"eve", "plum", 201, []string{past, "unknown_item", "1"}},
		{"lost", "berry", 500, []string{"forwarded it, and the answer is unclear", "", "1"}},
	} {
		if got := e.rushAs(order.buyer, order.sku); got != order.answer {
			t.Errorf("%s got %d for %s, the shop says %d", order.buyer, got, order.sku, order.answer)
		}
		b.Until(row("#refusals", order.row...)) // each is judged when it is answered: the next one comes after it
	}
	if got := chromium.Eval[int](b, `document.querySelectorAll('#refusals [aria-label="In shadow"] tbody tr').length`); got != 6 {
		t.Errorf("%d rows of shadow: %s", got, chromium.Eval[string](b, `document.querySelector('#refusals').innerText`))
	}
	b.Until(stockOnPage + ` === '0 52 0 0 0'`)
	accessible(t, b, "in shadow")
	shots(t, b, "shadow")
}

// A length of time is rounded before it is split: the smaller unit never reaches a whole larger one.
func TestBrowserSpans(t *testing.T) {
	const program = `globalThis.navigator ??= { language: 'en' }
const { span } = await import('./web/src/format.js')
for (const ms of process.argv.slice(1)) console.log(span(Number(ms)))`
	wants := []string{
		"-5", "0.0 s", "0", "0.0 s", "9940", "9.9 s", "9960", "10 s", "119400", "119 s", "119600", "2 min 0 s", "179600", "3 min 0 s", "3599600", "60 min 0 s",
		"7199400", "119 min 59 s", "7199600", "2 h 0 min", "86399999", "24 h 0 min", "172769000", "47 h 59 min", "172770000", "2 days", "259200000", "3 days",
	}
	args := []string{"--input-type=module", "-e", program, "--"}
	for i := 0; i < len(wants); i += 2 {
		args = append(args, wants[i])
	}
	out, err := exec.Command("node", args...).CombinedOutput()
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(got) != len(wants)/2 {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, text := range got {
		if want := wants[2*i+1]; text != want {
			t.Errorf("%s ms are %q, want %q", wants[2*i], text, want)
		}
	}
}

// Times are told in the time zone of the sale, wherever the browser is, and say so.
func TestBrowserZones(t *testing.T) {
	const program = `globalThis.navigator ??= { language: 'en' }
const { clock, moment, tellIn, tick, zone } = await import('./web/src/format.js')
const at = Date.UTC(2026, 10, 10, 16, 30, 5)
console.log(zone(), clock(at), tick(at))
for (const name of ['Asia/Shanghai', 'America/New_York', 'No/Where']) { tellIn(name); console.log(zone(), clock(at), tick(at)) }
tellIn('Asia/Shanghai')
console.log(moment(at, at + 3600_000)); console.log(moment(at, at - 3600_000))
tellIn('UTC')
console.log(moment(at, at - 3600_000))`
	node := exec.Command("node", "--input-type=module", "-e", program)
	node.Env = append(os.Environ(), "TZ=Europe/Berlin")
	out, err := node.CombinedOutput()
	want := "UTC 16:30:05 UTC 16:30:05\nAsia/Shanghai 00:30:05 GMT+8 00:30:05\nAmerica/New_York 11:30:05 EST 11:30:05\nUTC 16:30:05 UTC 16:30:05\n" +
		"00:30:05 GMT+8\nNov 11, 00:30 GMT+8\n16:30:05 UTC\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s, want\n%s", err, out, want)
	}
}

// What is committed is what the sources give.
func TestBrowserDashboardIsBuilt(t *testing.T) {
	out := t.TempDir()
	build := exec.Command("node", "build.mjs", out)
	build.Dir = "web"
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: `make browser` installs what it needs\n%s", err, text)
	}
	built, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadDir("web/dist")
	if err != nil || len(built) != len(committed) {
		t.Errorf("%d files are committed, %d are built, %v", len(committed), len(built), err)
	}
	for _, f := range built {
		want, _ := os.ReadFile(filepath.Join(out, f.Name()))
		have, _ := os.ReadFile(filepath.Join("web/dist", f.Name()))
		if !bytes.Equal(want, have) {
			t.Errorf("web/dist/%s is not what web/src gives: run `npm ci && npm run build` in caddymodule/operate/dashboard/web", f.Name())
		}
	}
}

// The demo prints where its page is, and the page shows the sale. With SCREENSHOT the test
// writes what it sees into that file: scripts/screenshot.
func TestBrowserDemo(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	picture := os.Getenv("SCREENSHOT")
	buyers, stock := "3000", "1000"
	if picture != "" { // long enough for curves
		buyers, stock = "90000", "40000"
	}
	cmd := exec.Command(self, "stockgate", "demo", "--listen", "127.0.0.1:0", "--buyers", buyers, "--stock", stock)
	cmd.Env = append(os.Environ(), sitetest.BeCaddyEnv+"=1", "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	url := ""
	for lines := bufio.NewScanner(stdout); url == "" && lines.Scan(); {
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+/$`).FindString(lines.Text())
	}
	go func() { // the rest must not block it
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
		}
	}()
	b := chromium.Start(t)
	b.Size(1440, 900, false)
	b.Open(url + "?sale=demo")
	if picture != "" {
		b.Until(`Number(document.querySelector('#sold').textContent.replaceAll(',', '')) > 30000 && document.querySelectorAll('canvas').length === 3`)
		b.Screenshot(picture, strings.TrimPrefix(filepath.Ext(picture), "."), false)
		return
	}
	b.Until(`document.querySelector('#sold').textContent === '1,000'`)
}
