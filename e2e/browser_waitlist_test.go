//go:build browser

package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/fileserver"

	"github.com/stockgate/stockgate/internal/test/chromium"
)

// person is a browser of one person on the page of examples/waitlist.
type person struct {
	*chromium.Browser
	t    *testing.T
	name string
}

// newPerson opens the page for a user, on a phone whose clock is wrong by months.
func newPerson(t *testing.T, e *edge, name, query string) *person {
	t.Helper()
	p := &person{chromium.Start(t), t, name}
	p.Size(390, 844, true)
	p.Header("Authorization", basicAuth(name))
	p.Before(`{ const now = Date.now; Date.now = () => now() - 1e10 }`)
	p.Open(e.url + "/" + query)
	return p
}

func basicAuth(name string) string {
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth(name, "stockgate")
	return r.Header.Get("Authorization")
}

func (p *person) press(act string) {
	p.t.Helper()
	p.Until(`document.querySelector('section:not([hidden]) [data-act="` + act + `"]') && !document.querySelector('main').dataset.busy`)
	chromium.Eval[any](p.Browser, `document.querySelector('section:not([hidden]) [data-act="`+act+`"]').click()`)
}

// sees waits until the page has come to a state with a text.
func (p *person) sees(state, text string) {
	p.t.Helper()
	p.Until(fmt.Sprintf(`document.querySelector('main').dataset.state === %q && document.body.innerText.includes(%q)`, state, text))
}

// looks lets axe-core look at the page in both colours, and takes pictures of it.
func (p *person) looks(what string) {
	p.t.Helper()
	const screens = "../bin/screens"
	axe, err := os.ReadFile("../caddymodule/operate/dashboard/web/node_modules/axe-core/axe.min.js")
	if err == nil {
		err = os.MkdirAll(screens, 0o755)
	}
	if err != nil {
		p.t.Fatalf("%v: `make browser` installs it", err)
	}
	chromium.Eval[any](p.Browser, string(axe)+"\n;0")
	for name, dark := range map[string]bool{"light": false, "dark": true} {
		p.Dark(dark)
		for _, v := range chromium.Eval[[]string](p.Browser, `axe.run().then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html + ' ' + n.failureSummary).slice(0, 3).join(' | ')))`) {
			p.t.Errorf("%s, %s: %s", what, name, v)
		}
		p.Screenshot(filepath.Join(screens, "waitlist-"+what+"-"+name+".png"), "png", true)
	}
	p.Dark(false)
	if over := chromium.Eval[int](p.Browser, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		p.t.Errorf("%s is %d px too wide for a phone", what, over)
	}
}

// The page of examples/waitlist, behind the Caddyfile and with the sale beside it: a person enters, waits, and orders
// what is offered; another one lets an offer lapse, and one leaves. It says so when it knows nothing.
func TestBrowserWaits(t *testing.T) {
	const example = "../examples/waitlist/"
	e := newEdge(t, "")
	e.env = []string{
		"STOCKGATE_SITE=" + e.url, "STOCKGATE_STORE=" + filepath.Join(e.dir, "store"), "STOCKGATE_STORE_TIMEOUT=20s", "STOCKGATE_PAGE=" + example,
		"STOCKGATE_HOLD_FOR=10m", "CADDY_ADMIN=unix/" + e.admin,
	}
	e.startFile(example + "Caddyfile")
	file, err := os.ReadFile(example + "sale.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sale := strings.TrimPrefix(string(file), "id: first\n")
	e.apply("first", sale)
	e.must("POST", "sales/first/open", "", nil)

	ann, ben := newPerson(t, e, "ann", ""), newPerson(t, e, "ben", "?lang=zh")
	ann.looks("start")
	eventually(t, "the edge sells", func() bool { // until then the order of Ann is refused
		ann.press("order")
		ann.Until(`!document.querySelector('main').dataset.busy`)
		return chromium.Eval[string](ann.Browser, `document.querySelector('main').dataset.state`) == "ended"
	})
	ann.sees("ended", "Ordered.")

	ben.press("order")
	ben.sees("held", "加入候补名单")
	ben.looks("held")
	ben.press("enter")
	ben.sees("waiting", "第 1 位")
	ben.sees("waiting", "暂时无法预计")
	ben.Open(e.url + "/") // the page was closed, and has the place when it comes back
	ben.sees("waiting", "Place 1")
	ben.looks("waiting")
	ben.Offline(true)
	ben.sees("waiting", "No connection.")
	ben.looks("offline")
	ben.Offline(false)
	ben.Until(`document.querySelector('.trouble').textContent === ''`)

	text, err := os.ReadFile(example + "Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	e.mustReloadText(changed(t, string(text), "@waitlist path /waitlist /waitlist/*", "respond /waitlist/* 503\n@waitlist path /waitlist", "respond 404", "respond /nothing 404"))
	ben.sees("waiting", "not known at the moment where you stand")
	e.mustReloadText(string(text))
	ben.Until(`document.querySelector('.trouble').textContent === ''`)

	release := func() {
		t.Helper()
		for _, r := range e.holds("first", "held") {
			e.must("POST", "reservations/"+r.ID+"/release?force=true", "", nil)
		}
	}
	release()
	ben.sees("offered", "It is your turn: 1 held for you.")
	ben.sees("offered", "4:5") // 300 s less than ten
	ben.looks("offered")
	e.must("POST", "sales/first/pause", "", nil)
	ben.sees("offered", "The sale is paused.")
	e.must("POST", "sales/first/open", "", nil)
	ben.sees("offered", "4:")
	ben.press("accept")
	ben.sees("ended", "Ordered.")
	ben.looks("ended")
	if hold := e.holds("first", "held"); len(hold) != 1 {
		t.Fatalf("holds: %+v", hold)
	}

	e.apply("first", strings.Replace(sale, "offer: 5m", "offer: 30s", 1))
	enter := func(p *person) {
		t.Helper()
		p.press("again")
		p.press("order")
		p.press("enter")
	}
	enter(ann)
	ann.sees("waiting", "Place 1")
	enter(ben)
	ben.sees("waiting", "Place 2")
	release()
	ann.sees("offered", "Less than a minute left.")
	ann.sees("ended", "Your offer is over.") // and it went to Ben
	ben.sees("offered", "It is your turn")
	ben.press("leave")
	ben.sees("ended", "You have left the waiting list.")
	e.untilExpected("first", 1, 0, 0, 0)
	for _, p := range []*person{ann, ben} {
		if kept := chromium.Eval[string](p.Browser, `localStorage.getItem('waitlist:/waitlist:20002001') ?? ''`); kept != "" {
			t.Errorf("the page of %s keeps %s", p.name, kept)
		}
	}
}
