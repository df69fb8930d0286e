package adminapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// applied is the API's answer to a file.
type applied struct {
	Changes, Warnings []string
	Same              bool
	DryRun            bool `json:"dry_run"`
	Version           int64
}

type listed struct {
	Sales []struct {
		ID, Status string
		StartsAt   time.Time `json:"starts_at"`
		EndsAt     time.Time `json:"ends_at"`
		Timezone   string
		Balanced   bool
	}
}

func TestAdminLoadsAndRunsASale(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)

	dry := sitetest.Do[applied](s, "PUT", "/stockgate/sales/double11?dry_run=1", sitetest.SaleFile)
	if !dry.DryRun || dry.Same || len(dry.Changes) != 6 {
		t.Errorf("dry run: %+v", dry)
	}
	if l := sitetest.Do[listed](s, "GET", "/stockgate/sales", ""); l.Sales == nil || len(l.Sales) != 0 {
		t.Errorf("after a dry run: %+v", l)
	}
	first := sitetest.Do[applied](s, "PUT", "/stockgate/sales/double11", sitetest.SaleFile)
	if first.DryRun || first.Same || first.Version != 1 {
		t.Errorf("first: %+v", first)
	}
	again := sitetest.Do[applied](s, "PUT", "/stockgate/sales/double11", sitetest.SaleFile)
	if !again.Same || again.Version != 1 {
		t.Errorf("again: %+v", again)
	}

	b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	if b.Status != "draft" || !b.Balanced || b.Cell("two", "shanghai") != "60 60 0 0 0" || b.Cell("..", "") != "7 7 0 0 0" {
		t.Errorf("%+v", b)
	}
	for _, step := range []struct {
		word, status string
		code         int
	}{
		{"pause", "draft", http.StatusConflict},
		{"open", "open", http.StatusOK},
		{"open", "open", http.StatusOK},
		{"pause", "paused", http.StatusOK},
		{"open", "open", http.StatusOK},
		{"close", "closed", http.StatusOK},
		{"close", "closed", http.StatusOK},
		{"open", "closed", http.StatusConflict},
	} {
		a := s.Admin("POST", "/stockgate/sales/double11/"+step.word, "")
		if a.Status != step.code {
			t.Errorf("%s: %d %s", step.word, a.Status, a.Body)
		}
		if want := fmt.Sprintf("{\"id\":\"double11\",\"status\":%q}\n", step.status); a.Status == http.StatusOK && a.Body != want {
			t.Errorf("%s: %s, not %s", step.word, a.Body, want)
		}
		l := sitetest.Do[listed](s, "GET", "/stockgate/sales", "")
		if len(l.Sales) != 1 || l.Sales[0].Status != step.status || l.Sales[0].Timezone == "" || !l.Sales[0].Balanced || l.Sales[0].EndsAt.IsZero() {
			t.Errorf("after %s: %+v", step.word, l)
		}
	}
}

func TestAdminRefuses(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	const sales, plain = "/stockgate/sales/", "/stockgate/sales/double11/items/plain/stock"
	limit := sitetest.SaleFile + "limits: [{per: buyer, every: sale, max: 1, count: orders}]\n"
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", sales + "nosuch", "", 404, "no such sale: nosuch"},
		{"GET", sales + "nosuch/holds", "", 404, "no such sale: nosuch"},
		{"POST", sales + "nosuch/open", "", 404, "no such sale: nosuch"},
		{"POST", sales + "nosuch/forget_shadow", "", 404, "no such sale: nosuch"},
		{"POST", sales + "nosuch/items/plain/stock", `{"id":"a","delta":1}`, 404, "no such sale: nosuch"},
		{"GET", sales + "Upper", "", 400, "no id of a sale"},
		{"GET", sales + "%7Bx%7D", "", 400, "no id of a sale"},
		{"GET", sales + "a%2Fb", "", 400, "no id of a sale"},
		{"POST", sales + "a%0Ab/open", "", 400, "no id of a sale"},
		{"GET", sales + strings.Repeat("a", 65), "", 400, "no id of a sale"},
		{"GET", sales + "double11?x=1", "", 400, `no parameter "x"`},

		{"PUT", sales + "other", sitetest.SaleFile, 400, "the file is about the sale double11, the path about other"},
		{"PUT", sales + "double11", "", 400, "the file is empty"},
		{"PUT", sales + "double11?dryrun=1", sitetest.SaleFile, 400, `no parameter "dryrun"`},
		{"PUT", sales + "double11?dry_run=yes", sitetest.SaleFile, 400, "dry_run must be 1 or 0"},
		{"PUT", sales + "double11?dry_run=1&dry_run=0", sitetest.SaleFile, 400, "given twice"},
		{"PUT", sales + "double11", "id: double11\nstarts_at: x\nitems: [{sku: a b, stock: -1}]\n", 400,
			`line 1: ends_at: is missing: give a time such as 2026-11-11T00:00:00+08:00\nline 2: starts_at: `},
		{"PUT", sales + "double11", "id: double11\nitems: [{sku: a b, stock: -1}]\n", 400, "items[0].stock: must not be negative"},
		{"PUT", sales + "double11", limit, 409, "refused"},
		{"PUT", sales + "double11", strings.Repeat("#", 16<<20+1), 413, "larger than 16777216 bytes"},

		{"POST", plain, ``, 400, "id must be"},
		{"POST", plain, `{"delta":1}`, 400, "id must be"},
		{"POST", plain, `{"id":"a b","delta":1}`, 400, "id must be"},
		{"POST", plain, `{"id":"a"}`, 400, "delta must be"},
		{"POST", plain, `{"id":"a","delta":0}`, 400, "delta must be"},
		{"POST", plain, `{"id":"a","delta":1.5}`, 400, "cannot be read"},
		{"POST", plain, `{"id":"a","delta":1e300}`, 400, "cannot be read"},
		{"POST", plain, `{"id":"a","dleta":1}`, 400, "dleta"},
		{"POST", plain, `{"id":"a","delta":1}{}`, 400, "more than one JSON value"},
		{"POST", plain, `{"id":"a","delta":5,"delta":-3}`, 400, "delta is given twice"},
		{"POST", plain, `{"id":"a","delta":5,"del\u0074a":-3}`, 400, "delta is given twice"},
		{"POST", plain, `{"id":"a","delta":5,"Delta":-3}`, 400, `no field "Delta"; known are delta, id, region`},
		{"POST", plain, `{"id":"a","DELTA":5}`, 400, `no field "DELTA"; known are delta, id, region`},
		{"POST", plain, `{"id":"a","delta":1,"region":"b c"}`, 400, "region must be"},
		{"POST", plain, `{"id":"a","delta":1,"region":"beijing"}`, 400, "not split by region"},
		{"POST", plain, `{"id":"a","delta":-101}`, 409, "only 100 units are available"},
		{"POST", plain, `{"id":"a","delta":1000000000001}`, 409, "beyond the bound"},
		{"POST", plain, `{"id":"` + strings.Repeat("a", 5000) + `"}`, 413, "larger than 4096 bytes"},
		{"POST", sales + "double11/items/nope/stock", `{"id":"a","delta":1}`, 404, "has no item nope"},
		{"POST", sales + "double11/items/a%20b/stock", `{"id":"a","delta":1}`, 400, "the sku must be"},
		{"POST", sales + "double11/items/two/stock", `{"id":"a","delta":1}`, 400, "name one of beijing, shanghai"},
		{"POST", sales + "double11/items/two/stock", `{"id":"a","delta":1,"region":"x"}`, 400, "name one of beijing, shanghai"},

		{"GET", sales + "double11/holds?state=confirmed", "", 400, "state must be"},
		{"GET", sales + "double11/holds?limit=0", "", 400, "limit must be 1 to 1000"},
		{"GET", sales + "double11/holds?limit=1001", "", 400, "limit must be 1 to 1000"},
		{"GET", "/stockgate/reservations/nosuch", "", 404, "no such reservation: nosuch"},
		{"POST", "/stockgate/reservations/nosuch/confirm", "", 404, "no such reservation: nosuch"},
		{"POST", "/stockgate/reservations/nosuch/release", "", 404, "no such reservation: nosuch"},
		{"POST", "/stockgate/reservations/nosuch/release?force=2", "", 400, "force must be"},
		{"POST", "/stockgate/reservations/nosuch/release", `{"farce":true}`, 400, "farce"},
	} {
		a := s.Admin(c.method, c.path, c.body)
		name := c.method + " " + c.path[:min(len(c.path), 60)] + " " + c.body[:min(len(c.body), 60)]
		if a.Status != c.status || !strings.HasPrefix(a.Body, `{"error":"`) || a.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %.200s", name, a.Status, a.Body)
		}
		if text := strings.ReplaceAll(a.Body, `\"`, `"`); !strings.Contains(text, c.says) {
			t.Errorf("%s: %.300s does not say %s", name, text, c.says)
		}
	}
	// what later versions will bring, and what is none of ours
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/stockgate/reservations/x/destroy", 404},
		{"GET", "/stockgate/sales/double11/reconcile", 405},
		{"GET", "/stockgate/", 404},
		{"GET", "/stockgate/sales/double11/items", 404},
		{"DELETE", "/stockgate/sales/double11", 409}, // it is open
		{"DELETE", "/stockgate/sales/nosuch", 404},
		{"PATCH", "/stockgate/sales/double11", 405},
		{"GET", "/stockgate/sales/double11/open", 405},
	} {
		if a := s.Admin(c.method, c.path, ""); a.Status != c.status {
			t.Errorf("%s %s: %d", c.method, c.path, a.Status)
		}
	}
	b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	if b.Status != "open" || b.Cell("plain", "") != "100 100 0 0 0" || b.Cell("two", "beijing") != "40 40 0 0 0" {
		t.Errorf("something changed: %+v", b)
	}
}

func TestAdminAddsStockOnce(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	type changed struct {
		ID, SKU, Region string
		Delta, Stock    int64
	}
	for _, c := range []struct {
		sku, body string
		want      changed
	}{
		{"plain", `{"id":"1","delta":50}`, changed{"1", "plain", "", 50, 150}},
		{"plain", `{"id":"1","delta":50}`, changed{"1", "plain", "", 50, 150}},
		{"plain", `{"id":"2","delta":-30}`, changed{"2", "plain", "", -30, 120}},
		{"plain", `{"id":"1","delta":50}`, changed{"1", "plain", "", 50, 150}},
		{"two", `{"id":"3","delta":1,"region":"beijing"}`, changed{"3", "two", "beijing", 1, 41}},
		{"a%2Fb%25c%3Fd%23e", `{"id":"4","delta":1}`, changed{"4", "a/b%c?d#e", "", 1, 6}},
		{"%2E%2E", `{"id":"5","delta":1}`, changed{"5", "..", "", 1, 8}},
	} {
		if got := sitetest.Do[changed](s, "POST", "/stockgate/sales/double11/items/"+c.sku+"/stock", c.body); got != c.want {
			t.Errorf("%s %s: %+v", c.sku, c.body, got)
		}
	}
	if a := s.Admin("POST", "/stockgate/sales/double11/items/plain/stock", `{"id":"1","delta":51}`); a.Status != http.StatusConflict {
		t.Errorf("an id for two changes: %d %s", a.Status, a.Body)
	}
	b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	if got := b.Cell("plain", ""); got != "120 120 0 0 0" {
		t.Error(got)
	}
}

// holds is the API's list of reservations.
type holds struct {
	Holds []reservation.Record
	More  bool
	Next  string
}

func (h holds) ids() string {
	ids := make([]string, len(h.Holds))
	for i, r := range h.Holds {
		ids[i] = r.ID
	}
	return strings.Join(ids, " ")
}

func TestAdminResolvesReservations(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	for i := range 3 {
		p.Hold(fmt.Sprint("held", i), "plain", 1, time.Hour)
		p.Hold(fmt.Sprint("doubt", i), "plain", 2, time.Hour)
		p.Must(p.Doubt(t.Context(), "double11", fmt.Sprint("doubt", i), "timeout"))
	}
	p.Hold("late", "few", 2, time.Hour)
	p.Must(p.Release(t.Context(), "double11", "late", reservation.SourceShop, "4xx"))
	p.Hold("gone", "few", 3, time.Hour)
	p.Must(p.Release(t.Context(), "double11", "gone", reservation.SourceShop, "4xx"))
	p.Hold("other", "few", 1, time.Hour)
	p.Must(p.Confirm(t.Context(), "double11", "gone", reservation.SourceAnswer, "2xx"))

	const list, one = "/stockgate/sales/double11/holds", "/stockgate/reservations/"
	for query, want := range map[string]string{
		"":                       "doubt0 doubt1 doubt2",
		"?state=in_doubt":        "doubt0 doubt1 doubt2",
		"?state=held&limit=4":    "held0 held1 held2 other",
		"?state=unbacked":        "gone",
		"?state=held&limit=2":    "held0 held1 …",
		"?limit=3":               "doubt0 doubt1 doubt2",
		"?limit=1000&state=held": "held0 held1 held2 other",
	} {
		h := sitetest.Do[holds](s, "GET", list+query, "")
		got := h.ids()
		if h.More {
			got += " …"
		}
		if got != want {
			t.Errorf("%s: %s, not %s", query, got, want)
		}
	}
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Cell("plain", "") != "100 91 3 6 0" || !b.Balanced || b.Unbacked != 1 || b.Oldest.IsZero() {
		t.Errorf("%+v", b)
	}

	for _, c := range []struct {
		id, word, body string
		status         int
		says           string // the state, or the error
	}{
		{"doubt0", "confirm", "", 200, "confirmed"},
		{"doubt0", "confirm", "", 200, "confirmed"},
		{"doubt0", "release", "", 409, "the reservation is confirmed"},
		{"doubt0", "release?force=1", "", 409, "the reservation is confirmed"},
		{"held0", "release", "", 409, "may still sell this reservation"},
		{"doubt1", "release", "", 409, "may still sell this reservation"},
		{"doubt1", "release?force=1", "", 200, "released"},
		{"doubt1", "release", "", 200, "released"},
		{"doubt2", "release", `{"force":true}`, 200, "released"},
		{"doubt2", "confirm", "", 200, "confirmed"}, // the units are still there
		{"held1", "confirm", "", 200, "confirmed"},
		{"late", "confirm", "", 200, "confirmed"},
		{"gone", "confirm", "", 409, "refund_needed: "},
		{"gone", "release", "", 409, "may still sell this reservation"},
		{"gone", "release?force=1", "", 200, "released"},
		{"gone", "confirm", "", 409, "refund_needed: "},
	} {
		a := s.Admin("POST", one+c.id+"/"+c.word, c.body)
		if a.Status != c.status || !strings.Contains(a.Body, c.says) {
			t.Errorf("%s %s: %d %s", c.id, c.word, a.Status, a.Body)
			continue
		}
		now := sitetest.Do[reservation.Record](s, "GET", one+c.id, "")
		if a.Status == 200 && (string(now.State) != c.says || now.Cause != "operator:annofaccounts@unix" || now.Sale != "double11") {
			t.Errorf("%s after %s: %+v", c.id, c.word, now)
		}
	}
	b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	if got := b.Cell("plain", "") + ", " + b.Cell("few", ""); got != "100 93 2 0 5, 3 0 1 0 2" || !b.Balanced || b.Unbacked != 0 {
		t.Errorf("%s %+v", got, b)
	}
}

// After the deadline an operator's release needs no force.
func TestAdminReleasesAfterTheDeadline(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	p.Hold("over", "plain", 1, time.Millisecond)
	p.Must(p.Doubt(t.Context(), "double11", "over", "timeout"))
	for { // a request takes longer than a millisecond, or nearly
		a := s.Admin("POST", "/stockgate/reservations/over/release", "")
		if a.Status == http.StatusOK {
			return
		}
		if !strings.Contains(a.Body, "may still sell") {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
}

// A change is logged with its caller and its details; refused requests and reads are not.
func TestAdminLogsWhoChangedWhat(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11?dry_run=true", sitetest.SaleFile)
	s.OpenSale()
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/items/plain/stock", `{"id":"x","delta":5}`)
	sitetest.NewShopper(t, server).Hold("r", "plain", 1, time.Hour)
	sitetest.Do[any](s, "POST", "/stockgate/reservations/r/release?force=1", "")
	s.Admin("POST", "/stockgate/reservations/r/confirm", "")
	s.Admin("POST", "/stockgate/sales/double11/pause", "")
	s.Admin("POST", "/stockgate/sales/nosuch/pause", "")
	for message, want := range map[string][]map[string]any{
		"sale applied":          {{"sale": "double11", "force": false}},
		"sale status set":       {{"sale": "double11", "status": "open"}, {"sale": "double11", "status": "paused"}},
		"stock added":           {{"sale": "double11", "sku": "plain", "delta": 5.0, "stock": 105.0, "id": "x"}},
		"reservation released":  {{"reservation": "r", "was": "held", "state": "released", "force": true}},
		"reservation confirmed": {{"reservation": "r", "was": "released", "state": "confirmed"}},
	} {
		got := s.Logged(message)
		if len(got) != len(want) {
			t.Errorf("%q stands %d times in the log", message, len(got))
			continue
		}
		for i, fields := range want {
			for field, value := range fields {
				if got[i][field] != value {
					t.Errorf("%q: %s is %v, not %v", message, field, got[i][field], value)
				}
			}
			if got[i]["by"] != "annofaccounts@unix" || got[i]["logger"] != "admin.api.stockgate" {
				t.Errorf("%q: %v", message, got[i])
			}
		}
	}
}

// Without an answer from Redis, and without an app, the API says so.
func TestAdminSaysWhenItCannotAnswer(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	asks := []struct{ method, path, body string }{
		{"GET", "/stockgate/sales", ""},
		{"GET", "/stockgate/sales/double11", ""},
		{"PUT", "/stockgate/sales/double11", sitetest.SaleFile},
		{"POST", "/stockgate/sales/double11/pause", ""},
		{"POST", "/stockgate/sales/double11/items/plain/stock", `{"id":"a","delta":1}`},
		{"GET", "/stockgate/sales/double11/holds", ""},
		{"GET", "/stockgate/reservations/r", ""},
		{"POST", "/stockgate/reservations/r/confirm", ""},
		{"POST", "/stockgate/reservations/r/release", ""},
	}
	all := func(says string) {
		t.Helper()
		for _, c := range asks {
			a := s.Admin(c.method, c.path, c.body)
			if a.Status != http.StatusServiceUnavailable || !strings.Contains(a.Body, says) {
				t.Errorf("%s %s: %d %s", c.method, c.path, a.Status, a.Body)
			}
		}
	}
	server.Stop()
	all("redis does not answer")
	a := s.Admin("POST", "/stockgate/sales/double11/pause", "")
	if !strings.Contains(a.Body, "it is unknown whether the change was made") {
		t.Error(a.Body)
	}
	if len(s.Logged("redis did not answer: the change may have been made")) == 0 {
		t.Error("the log does not say that a change may have been made")
	}
	s.Load(nil)
	all("no stockgate app is running")
}

// The endpoint outlives reloads: it uses the app that runs now.
func TestAdminFollowsAReload(t *testing.T) {
	_, first := sitetest.Redis(t)
	_, second := sitetest.Redis(t)
	s := sitetest.Open(t, first)
	s.OpenSale()
	s.Load(second)
	if l := sitetest.Do[listed](s, "GET", "/stockgate/sales", ""); len(l.Sales) != 0 {
		t.Errorf("the second Redis has %+v", l)
	}
	s.Load(first)
	if l := sitetest.Do[listed](s, "GET", "/stockgate/sales", ""); len(l.Sales) != 1 {
		t.Errorf("the first Redis has %+v", l)
	}
}
