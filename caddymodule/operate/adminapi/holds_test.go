package adminapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// bulk is the API's answer about many reservations.
type bulk struct {
	DryRun                    bool `json:"dry_run"`
	Matched, Changed, Already int
	FromInDoubt               int      `json:"from_in_doubt"`
	NotFound                  []string `json:"not_found"`
	TooSoon                   []string `json:"too_soon"`
	RefundNeeded              []string `json:"refund_needed"`
	Conflict, Late            []string
	InDoubt                   int64 `json:"in_doubt"`
	Next                      string
}

func (b bulk) String() string {
	s := fmt.Sprintf("%d: %d changed (%d in doubt), %d already", b.Matched, b.Changed, b.FromInDoubt, b.Already)
	for _, list := range []struct {
		name  string
		names []string
	}{{"not found", b.NotFound}, {"too soon", b.TooSoon}, {"refund needed", b.RefundNeeded}, {"conflict", b.Conflict}, {"late", b.Late}} {
		if len(list.names) > 0 {
			s += ", " + list.name + " " + strings.Join(list.names, " ")
		}
	}
	return s + fmt.Sprintf("; %d in doubt", b.InDoubt)
}

func TestAdminListsHoldsByCauseAndAge(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	sitetest.Do[any](s, "PUT", "/stockgate/sales/other", strings.ReplaceAll(sitetest.SaleFile, "double11", "other"))
	sitetest.Do[any](s, "POST", "/stockgate/sales/other/open", "")
	p := sitetest.NewShopper(t, server)
	p.Doubts(time.Hour, map[string]string{"a": "timeout", "b": "status_500", "c": "timeout", "d": "connection_lost"}, "a", "b", "c", "d")
	const one = "/stockgate/sales/double11/holds"
	for path, want := range map[string]string{
		one:                                    "a b c d",
		one + "?cause=timeout":                 "a c",
		one + "?cause=timeout&limit=1":         "a …",
		one + "?cause=status_500&limit=1":      "b",
		one + "?cause=none":                    "",
		one + "?older=0s":                      "a b c d",
		one + "?older=10m":                     "",
		one + "?state=held":                    "",
		"/stockgate/holds":                     "a b c d",
		"/stockgate/holds?limit=4":             "a b c d …", // there is another sale
		"/stockgate/holds?cause=status_500":    "b",
		"/stockgate/sales/other/holds":         "",
		"/stockgate/sales/other/holds?limit=4": "",
	} {
		h := sitetest.Do[holds](s, "GET", path, "")
		got := h.ids()
		if h.More {
			got += " …"
		}
		if got != want {
			t.Errorf("%s: %q, not %q", path, got, want)
		}
	}
	// part by part
	var ids []string
	after := ""
	for {
		h := sitetest.Do[holds](s, "GET", one+"?limit=1&after="+url.QueryEscape(after), "")
		ids = append(ids, h.ids())
		if after = h.Next; after == "" {
			break
		}
	}
	if got := strings.Join(ids, " "); got != "a b c d" {
		t.Errorf("part by part: %q", got)
	}
	for path, says := range map[string]string{
		one + "?older=10":            "older must be whole hours",
		one + "?older=-1m":           "older must be whole hours",
		one + "?after=x":             "after is not what",
		one + "?cuase=timeout":       `no parameter \"cuase\"`,
		"/stockgate/holds?after=1:a": `no parameter \"after\"`,
	} {
		if a := s.Admin("GET", path, ""); a.Status != 400 || !strings.Contains(a.Body, says) {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
}

func TestAdminResolvesManyHolds(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	causes := map[string]string{"a": "timeout", "b": "status_500", "c": "timeout", "d": "deadline", "e": "deadline"}
	p.Doubts(time.Hour, causes, "a", "b", "c")
	p.Doubts(time.Millisecond, causes, "d", "e")
	for s.Admin("GET", "/stockgate/sales/double11", ""); ; { // until their time is over
		if a := sitetest.Do[bulk](s, "POST", "/stockgate/sales/double11/holds/release", `{"cause":"deadline","dry_run":true}`); a.Changed == 2 {
			break
		}
	}
	p.HoldRef("f", "ref-1", "plain")
	p.HoldRef("g", "ref-2", "plain")
	p.Must(p.Doubt(t.Context(), "double11", "g", "timeout"))
	p.Hold("gone", "few", 3, time.Hour)
	p.Must(p.Release(t.Context(), "double11", "gone", reservation.SourceUnsent, "x"))
	p.Hold("others", "few", 1, time.Hour)

	const release, confirm = "/stockgate/sales/double11/holds/release", "/stockgate/sales/double11/holds/confirm"
	for _, step := range []struct{ path, body, want string }{
		{release, `{"cause":"timeout","dry_run":true}`, "3: 0 changed (0 in doubt), 0 already, too soon a c g; 6 in doubt"},
		{release, `{"cause":"timeout"}`, "3: 0 changed (0 in doubt), 0 already, too soon a c g; 6 in doubt"},
		{release, `{"all":true,"dry_run":true}`, "6: 2 changed (2 in doubt), 0 already, too soon a b c g; 6 in doubt"},
		{release, `{"older":"10m"}`, "0: 0 changed (0 in doubt), 0 already; 6 in doubt"},
		{release, `{"cause":"deadline"}`, "2: 2 changed (2 in doubt), 0 already; 4 in doubt"},
		{release, `{"cause":"deadline"}`, "0: 0 changed (0 in doubt), 0 already; 4 in doubt"},
		{release, `{"cause":"status_500","force":true,"dry_run":true}`, "1: 1 changed (1 in doubt), 0 already; 4 in doubt"},
		{release, `{"cause":"status_500","force":true}`, "1: 1 changed (1 in doubt), 0 already; 3 in doubt"},
		{confirm, `{"names":["a","ref-1","nosuch","gone","d"],"dry_run":true}`, "4: 2 changed (1 in doubt), 0 already, not found nosuch, late gone d; 3 in doubt"},
		{confirm, `{"names":["a","ref-1","nosuch","gone","d"]}`, "4: 3 changed (1 in doubt), 0 already, not found nosuch, refund needed gone; 2 in doubt"},
		{confirm, `{"names":["a","ref-1","f"]}`, "3: 0 changed (0 in doubt), 3 already; 2 in doubt"},
		{confirm, `{"names":["a","ref-1","nosuch","a","ref-1","nosuch"]}`, "2: 0 changed (0 in doubt), 2 already, not found nosuch; 2 in doubt"},
		{confirm, `{"state":"held","all":true,"dry_run":true}`, "1: 1 changed (0 in doubt), 0 already; 2 in doubt"},
		{confirm, `{"cause":"timeout","older":"0s"}`, "2: 2 changed (2 in doubt), 0 already; 0 in doubt"},
	} {
		if got := sitetest.Do[bulk](s, "POST", step.path, step.body).String(); got != step.want {
			t.Errorf("%s %s:\n%s, not\n%s", step.path, step.body, got, step.want)
		}
	}
	b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	if got := b.Cell("plain", "") + ", " + b.Cell("few", ""); got != "100 95 0 0 5, 3 2 1 0 0" || !b.Balanced {
		t.Errorf("%s %+v", got, b)
	}
	confirmed, released := s.Logged("holds confirmed"), s.Logged("holds released")
	if len(confirmed) != 2 || len(released) != 2 {
		t.Fatalf("%v %v", confirmed, released)
	}
	if e := confirmed[0]; fmt.Sprint(e["reservations"]) != "[a f d]" || e["by"] != "annofaccounts@unix" || e["named"] != true {
		t.Errorf("%v", e)
	}
	if e := released[1]; fmt.Sprint(e["reservations"]) != "[b]" || e["force"] != true || e["cause"] != "status_500" {
		t.Errorf("%v", e)
	}

	for body, says := range map[string]string{
		`{}`:                             "which holds?",
		`{"state":"held"}`:               "which holds?",
		`{"names":[]}`:                   "names must be 1 to 500",
		`{"names":["a b"]}`:              "a name must be 1 to 128",
		`{"names":["a"],"cause":"x"}`:    "names stand alone",
		`{"all":true,"force":true}`:      "force goes with a release only",
		`{"all":true,"state":"expired"}`: "state must be",
		`{"cause":"x","older":"1d"}`:     "older must be whole hours",
		`{"cuase":"x"}`:                  "cuase",
		`{"cause":"x","after":"x"}`:      "after is not what",
		`{"cause":"x"}{"all":true}`:      "more than one JSON value",

		`{"all":true,"dry_run":true,"Dry_Run":false}`: `no field \"Dry_Run\"`,
		`{"all":true,"dry_run":true,"dry_run":false}`: "dry_run is given twice",
		``: "which holds?",
	} {
		if a := s.Admin("POST", confirm, body); a.Status != 400 || !strings.Contains(a.Body, says) {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	if a := s.Admin("POST", release, `{"names":["a"]}`); a.Status != 400 || !strings.Contains(a.Body, "names go with a confirmation only") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := s.Admin("POST", "/stockgate/sales/nosuch/holds/release", `{"all":true}`); a.Status != 404 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// More holds than one request resolves are resolved in parts, also when all were made in the
// same millisecond.
func TestAdminResolvesInParts(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", strings.Replace(sitetest.SaleFile, "stock: 100", "stock: 2000", 1))
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/open", "")
	p := sitetest.NewShopper(t, server)
	const many = 1_100
	for i := range many {
		p.Hold(fmt.Sprintf("r%04d", i), "plain", 1, time.Millisecond)
	}
	for left := many; left > 0; {
		n, err := p.Expire(t.Context(), "double11")
		if err != nil {
			t.Fatal(err)
		}
		if left -= n; n == 0 {
			b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "") // the site's edge ends them too
			if b.Cell("plain", "") == fmt.Sprintf("2000 %d 0 %d 0", 2000-many, many) {
				break
			}
		}
	}
	ask := map[string]any{"cause": "deadline"}
	var parts []int
	for {
		body, err := json.Marshal(ask)
		if err != nil {
			t.Fatal(err)
		}
		b := sitetest.Do[bulk](s, "POST", "/stockgate/sales/double11/holds/release", string(body))
		parts = append(parts, b.Changed)
		if ask["after"] = b.Next; b.Next == "" {
			break
		}
	}
	if got := fmt.Sprint(parts); got != "[500 500 100]" {
		t.Error(got)
	}
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Cell("plain", "") != "2000 2000 0 0 0" || !b.Balanced {
		t.Errorf("%+v", b)
	}
}

func TestAdminReturnsAndExtends(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	p.Hold("r", "plain", 3, time.Minute)
	const one = "/stockgate/reservations/r/"
	for _, step := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"return", `{"id":"a"}`, 409, "the reservation is held"},
		{"extend", `{}`, 400, "hold_for is missing"},
		{"extend", `{"hold_for":"10"}`, 400, "hold_for must be whole hours"},
		{"extend", `{"hold_for":"5m","token":"x"}`, 400, `no field \"token\"`},
		{"extend?force=1", `{"hold_for":"5m"}`, 400, "no parameter"},
		{"extend", `{"hold_for":"5m"}`, 200, `"state":"held"`},
		{"confirm", ``, 200, "confirmed"},
		{"extend", `{"hold_for":"5m"}`, 409, "the reservation is confirmed"},
		{"return", ``, 400, "one JSON object"},
		{"return", `{}`, 400, "id is missing"},
		{"return", `{"id":"a","cause":"x"}`, 400, `no field \"cause\"`},
		{"return", `{"id":"a","lines":[{"sku":"plain","qty":1}]}`, 200, `"returned":[{"sku":"plain","qty":1}]`},
		{"return", `{"id":"a","lines":[{"sku":"plain","qty":1}]}`, 200, `"returned":[{"sku":"plain","qty":1}]`},
		{"return", `{"id":"a","lines":[{"sku":"plain","qty":2}]}`, 409, "this return id was used for another return"},
		{"return", `{"id":"b","lines":[{"sku":"plain","qty":3}]}`, 409, "only 2 are left"},
		{"return", `{"id":"b","lines":[{"sku":"few","qty":1}]}`, 409, "1 units of few are to be returned, but the order has none, or all of them were returned before"},
		{"return", `{"id":"b","restock":false}`, 200, `"returned":[{"sku":"plain","qty":3}]`},
	} {
		if a := s.Admin("POST", one+step.path, step.body); a.Status != step.status || !strings.Contains(a.Body, step.says) {
			t.Errorf("%s %s: %d %s", step.path, step.body, a.Status, a.Body)
		}
	}
	for _, path := range []string{"return", "extend"} {
		if a := s.Admin("POST", "/stockgate/reservations/nosuch/"+path, `{"hold_for":"5m"}`); path == "extend" && a.Status != 404 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	if got := b.Cell("plain", ""); got != "98 98 0 0 0" || !b.Balanced {
		t.Errorf("%s %+v", got, b)
	}
	returns := s.Logged("units returned")
	if len(returns) != 3 || returns[0]["return"] != "a" || returns[2]["restock"] != false || returns[0]["by"] != "annofaccounts@unix" || len(s.Logged("reservation extended")) != 1 {
		t.Errorf("%v", returns)
	}
}
