package shopapi_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/record"
)

const ()

func TestAPINeedsItsKey(t *testing.T) {
	s, p, _ := sitetest.OpenAPI(t)
	p.Hold("r", "plain", 1, time.Hour)
	token := signToken(t, "r", time.Hour, 0)
	for header, status := range map[string]int{
		"Bearer " + sitetest.APIKey:              200,
		"bearer " + sitetest.APIKey:              200,
		"BEARER  " + sitetest.APIKey:             200,
		"Bearer " + sitetest.APIOldKey:           200,
		"":                                       401,
		"Bearer":                                 401,
		"Bearer ":                                401,
		sitetest.APIKey:                          401,
		"Basic " + sitetest.APIKey:               401,
		"Bearer " + sitetest.APIKey + " ":        200, // net/http trims what ends a header
		"Bearer " + sitetest.APIKey + ", " + "x": 401,
		"Bearer " + sitetest.APIKey[1:]:          401,
		"Bearer " + sitetest.APIKey + "0":        401,
		"Bearer " + sitetest.APIKey + sitetest.APIOldKey: 401,
		"Bearer " + token:                401,
		"Bearer " + sitetest.APISecret:   401,
		"Bearer " + strings.ToUpper("x"): 401,
	} {
		a := s.AskWith("http", "GET", "/reservations/r", "", map[string]string{"Authorization": header})
		if a.Status != status || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%q: %d %v %s", header, a.Status, a.Header, a.Body)
		}
		if status == 401 {
			if p := sitetest.ProblemOf(t, a); p.Reason != "unauthorized" || !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), `Bearer realm="stockgate_api"`) || strings.Contains(a.Body, sitetest.APIKey) {
				t.Errorf("%q: %v %s", header, a.Header, a.Body)
			}
		}
	}
	// clients without the key learn nothing
	for _, path := range []string{"/", "/reservations/nosuch", "/reservations/r/confrim", "/reservations/r/confirm"} {
		a := s.AskWith("http", "POST", path, `{"nonsense":1}`, map[string]string{"Stockgate-Token": token, "Content-Type": "application/json"})
		if a.Status != 401 {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	if r := sitetest.RecordOf(t, s.API("GET", "/reservations/r", "")); r.State != record.Held {
		t.Errorf("%+v", r)
	}
}

func TestAPIKeysAreChecked(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	t.Setenv("STOCKGATE_TEST_API_KEY", sitetest.APIKey)
	t.Setenv("STOCKGATE_TEST_SHORT", "15-bytes-of-key")
	file := s.File("key", sitetest.APIOldKey+"\n")
	for _, test := range []struct {
		keys []string
		says string // empty: it is taken
	}{
		{[]string{"{env.STOCKGATE_TEST_API_KEY}"}, ""},
		{[]string{"{file." + file + "}", sitetest.APIKey}, ""},
		{nil, "there is no key"},
		{[]string{sitetest.APIKey, "{env.STOCKGATE_TEST_NONE}"}, "key number 2 is empty"},
		{[]string{"{file." + file + ".none}"}, "key number 1 is empty"},
		{[]string{"{http.auth.user.id}" + sitetest.APIKey}, "key number 1 has a placeholder that is not known here"},
		{[]string{"{env.STOCKGATE_TEST_SHORT}"}, "key number 1 has 15 bytes, it needs at least 16"},
		{[]string{"a key with spaces in it"}, "key number 1 cannot stand in a header"},
		{[]string{"schlüssel-schlüssel"}, "key number 1 cannot stand in a header"},
	} {
		s.Gates = []any{map[string]any{"handler": "stockgate_api", "keys": test.keys}}
		config := s.Config(app)
		var c caddy.Config
		if err := caddy.StrictUnmarshalJSON(config, &c); err != nil {
			t.Fatal(err)
		}
		err := caddy.Validate(&c)
		switch {
		case test.says == "" && err != nil:
			t.Errorf("%q: %v", test.keys, err)
		case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%q: %v", test.keys, err)
		case err != nil && (strings.Contains(err.Error(), "15-bytes") || strings.Contains(err.Error(), "spaces in it")):
			t.Errorf("the error shows the key: %v", err)
		}
	}
}

func TestAPIReadsStrictly(t *testing.T) {
	s, p, _ := sitetest.OpenAPI(t)
	p.Hold("r", "plain", 2, time.Hour)
	const json, confirm, extend, back = "application/json", "/reservations/r/confirm", "/reservations/r/extend", "/reservations/r/return"
	for _, c := range []struct {
		method, path, contentType, body string
		status                          int
		reason, says                    string
	}{
		{"GET", "/", "", "", 404, "no_such_route", "/reservations/{id}"},
		{"GET", "/reservations", "", "", 404, "no_such_route", ""},
		{"GET", "/stockgate/reservations/r", "", "", 404, "no_such_route", "behind the prefix"},
		{"POST", "/reservations/r/confrim", "", "", 404, "no_such_route", "confirm, release, extend and return"},
		{"POST", "/reservations/r/confirm/", "", "", 404, "no_such_route", ""},
		{"GET", "/reservations/r/", "", "", 404, "no_such_route", ""},
		{"GET", "/reservations/r/show", "", "", 404, "no_such_route", ""},
		{"GET", "/reservations//confirm", "", "", 400, "malformed", "the reservation's id"},
		{"GET", "/reservations/a%20b", "", "", 400, "malformed", "the reservation's id"},
		{"GET", "/reservations/" + strings.Repeat("a", 129), "", "", 400, "malformed", "the reservation's id"},
		{"GET", confirm, "", "", 405, "method", "use POST"},
		{"OPTIONS", confirm, "", "", 405, "method", "use POST"},
		{"POST", "/reservations/r", "", "", 405, "method", "use GET"},
		{"GET", "/reservations/r?sael=double11", "", "", 400, "malformed", `no parameter "sael"`},
		{"GET", "/reservations/r?sale=", "", "", 400, "malformed", "sale is no id"},
		{"GET", "/reservations/r?sale=%7Bx%7D", "", "", 400, "malformed", "sale is no id"},
		{"GET", "/reservations/r?sale=nosuch", "", "", 404, "not_found", "redis knows no sale nosuch"},
		{"GET", "/refs/no?sale=nosuch", "", "", 404, "not_found", "no sale nosuch, or no reservation"},
		{"GET", "/refs/no?sale=double11", "", "", 404, "not_found", "no sale double11, or no reservation"},
		{"GET", "/reservations/nosuch", "", "", 404, "not_found", "redis knows no reservation by that id or ref"},
		{"GET", "/reservations/r", json, "{\"sale\":\"double11\"}", 400, "malformed", `no field "sale"; none is known`},

		{"POST", confirm, "", "{}", 415, "media_type", "Content-Type: application/json"},
		{"POST", confirm, "text/plain", "{}", 415, "media_type", ""},
		{"POST", confirm, "application/x-www-form-urlencoded", "{}", 415, "media_type", ""},
		{"POST", confirm, "application/json; charset=latin1", "{}", 415, "media_type", ""},
		{"POST", confirm, json, strings.Repeat(" ", 16<<10+1), 413, "body_too_large", "16384"},
		{"POST", confirm, json, "[]", 400, "malformed", "one JSON object"},
		{"POST", confirm, json, "nonsense", 400, "malformed", "one JSON object"},
		{"POST", confirm, json, "{\"sale\":\"\xff\"}", 400, "malformed", "UTF-8"},
		{"POST", confirm, json, `{"sale":"double11"`, 400, "malformed", "cannot be read"},
		{"POST", confirm, json, `{"sale":"double11",}`, 400, "malformed", "cannot be read"},
		{"POST", confirm, json, `{} {}`, 400, "malformed", "something follows"},
		{"POST", confirm, json, `{"tokne":"x"}`, 400, "malformed", `no field "tokne"; known are sale, token`},
		{"POST", confirm, json, `{"Token":"x"}`, 400, "malformed", `no field "Token"`},
		{"POST", confirm, json, `{"cause":"x"}`, 400, "malformed", `no field "cause"`},
		{"POST", confirm, json, `{"sale":"double11","sa\u006ce":"double11"}`, 400, "malformed", "sale is given twice"},
		{"POST", confirm, json, `{"token":null}`, 400, "malformed", "token is null"},
		{"POST", confirm, json, `{"token":1}`, 400, "malformed", "token must be text"},
		{"POST", confirm, json, `{"sale":"Double11"}`, 400, "malformed", "sale is no id"},
		{"POST", confirm + "?sale=other", json, `{"sale":"double11"}`, 400, "malformed", "two sales"},
		{"POST", confirm, json, `{"sale":"other"}`, 404, "not_found", ""},
		{"POST", "/reservations/nosuch/confirm", "", "", 404, "not_found", ""},
		{"POST", "/reservations/nosuch/release", json, `{"sale":"double11"}`, 404, "not_found", ""},
		{"POST", "/reservations/r/release", json, `{"cause":"two words"}`, 400, "malformed", "cause must be 1 to 64"},

		{"POST", extend, "", "", 400, "malformed", "hold_for is missing"},
		{"POST", extend, json, `{"hold_for":600}`, 400, "malformed", "hold_for must be text"},
		{"POST", extend, json, `{"hold_for":"10"}`, 400, "malformed", "hold_for must be whole hours"},
		{"POST", extend, json, `{"hold_for":"-5m"}`, 400, "malformed", "hold_for must be whole hours"},
		{"POST", extend, json, `{"hold_for":"0s"}`, 400, "malformed", "hold_for must be 1s to 168h"},
		{"POST", extend, json, `{"hold_for":"169h"}`, 400, "malformed", "hold_for must be 1s to 168h"},
		{"POST", extend, json, `{"hold_for":"10m","token":"abc"}`, 400, "malformed", "token: malformed token"},

		{"POST", back, "", "", 400, "malformed", "id is missing"},
		{"POST", back, json, `{"id":""}`, 400, "malformed", "id must be 1 to 128"},
		{"POST", back, json, `{"id":"a","restock":"no"}`, 400, "malformed", "restock must be true or false"},
		{"POST", back, json, `{"id":"a","lines":[]}`, 400, "malformed", "lines must have 1 to 50"},
		{"POST", back, json, `{"id":"a","lines":{}}`, 400, "malformed", "lines must be a list"},
		{"POST", back, json, `{"id":"a","lines":[1]}`, 400, "malformed", "lines number 1: it must be one JSON object"},
		{"POST", back, json, `{"id":"a","lines":[{"sku":"plain"}]}`, 400, "malformed", "lines number 1 needs sku and qty"},
		{"POST", back, json, `{"id":"a","lines":[{"sku":"plain","qty":1},{"sku":"plain","qty":0}]}`, 400, "malformed", "lines number 2: qty must be a number of units"},
		{"POST", back, json, `{"id":"a","lines":[{"sku":"plain","qty":1.5}]}`, 400, "malformed", "qty must be a whole number"},
		{"POST", back, json, `{"id":"a","lines":[{"sku":"plain","quantity":1}]}`, 400, "malformed", `no field "quantity"; known are qty, region, sku`},
		{"POST", back, json, `{"id":"a"}`, 409, "conflict", "the reservation is held"},
	} {
		header := map[string]string{"Authorization": "Bearer " + sitetest.APIKey}
		if c.contentType != "" {
			header["Content-Type"] = c.contentType
		}
		a := s.AskWith("http", c.method, c.path, c.body, header)
		name := c.method + " " + c.path[:min(len(c.path), 60)] + " " + c.body[:min(len(c.body), 60)]
		p := sitetest.ProblemOf(t, a)
		if a.Status != c.status || p.Reason != c.reason || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
		if (a.Status == 405) != (a.Header.Get("Allow") != "") {
			t.Errorf("%s: Allow %q", name, a.Header.Get("Allow"))
		}
	}
	if r := s.API("HEAD", "/reservations/r", ""); r.Status != 200 || r.Body != "" {
		t.Errorf("HEAD: %+v", r)
	}
	r := sitetest.RecordOf(t, s.API("GET", "/reservations/r?sale=double11", ""))
	if r.State != record.Held || len(r.Lines) != 1 || r.Sale != "double11" {
		t.Errorf("%+v", r)
	}
	if admin, api := s.Admin("GET", "/stockgate/reservations/r", "").Body, s.API("GET", "/reservations/r", "").Body; admin != api {
		t.Errorf("the admin API shows %s, the shop's %s", admin, api)
	}
}

// Without an answer from Redis the API says that the shop should ask again, at once
// and for good; after a reload it goes on, also in the old configuration.
func TestAPIWithoutRedis(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	s.Gates = []any{map[string]any{"handler": "stockgate_api", "keys": []string{sitetest.APIKey}}}
	s.Load(app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	p.Hold("r", "plain", 1, time.Hour)
	server.Stop()
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/reservations/r", ""},
		{"POST", "/reservations/r/confirm", ""},
		{"POST", "/reservations/r/confirm", `{"sale":"double11"}`},
		{"POST", "/reservations/r/release", ""},
		{"POST", "/reservations/r/extend", `{"hold_for":"5m"}`},
		{"POST", "/reservations/r/return", `{"id":"x"}`},
	} {
		a := s.API(c.method, c.path, c.body)
		if p := sitetest.ProblemOf(t, a); a.Status != 503 || p.Reason != "unavailable" || !regexp.MustCompile(`^[123]$`).MatchString(a.Header.Get("Retry-After")) {
			t.Errorf("%s %s: %d %v %s", c.method, c.path, a.Status, a.Header, a.Body)
		}
	}
	if len(s.Logged("the shop's request could not be answered")) == 0 {
		t.Error("the log does not say why")
	}
	server.Restart()
	s.Load(app)
	if a := s.API("GET", "/reservations/r", ""); a.Status != 200 && !strings.Contains(a.Body, "lost the sale") { // this Redis keeps nothing
		t.Errorf("after a reload: %d %s", a.Status, a.Body)
	}
	if text := s.Get("/metrics").Body; !strings.Contains(text, `stockgate_api_requests_total{answer="unavailable",operation="confirm"} `) {
		t.Error("the metrics do not say so")
	}
	if _, err := os.Stat(s.Path("log")); err != nil {
		t.Error(err)
	}
}
