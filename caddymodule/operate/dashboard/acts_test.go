package dashboard_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/record"
)

// Each act does what the admin API does, and the journal names the user.
func TestActs(t *testing.T) {
	s, shopper := open(t)
	next := listen(t, s, "/ops/events?sale=double11")
	if _, hello, _ := next(); hello.User != "ann" || len(hello.Acts) != 5 {
		t.Errorf("hello: %+v", hello)
	}
	for _, c := range []struct{ path, body, says string }{
		{"sales/double11/pause", "", `{"id":"double11","status":"paused"}`},
		{"sales/double11/open", "{}", `{"id":"double11","status":"open"}`},
		{"sales/double11/items/few/stock", `{"id":"a1","delta":4}`, `{"id":"a1","sku":"few","delta":4,"stock":7}`},
		{"sales/double11/items/few/stock", `{"id":"a1","delta":4}`, `{"id":"a1","sku":"few","delta":4,"stock":7}`},
		{"sales/double11/items/two/stock", `{"id":"a2","delta":-1,"region":"beijing"}`, `{"id":"a2","sku":"two","region":"beijing","delta":-1,"stock":39}`},
		{"sales/double11/items/a%2Fb%25c%3Fd%23e/stock", `{"id":"a3","delta":1}`, `{"id":"a3","sku":"a/b%c?d#e","delta":1,"stock":6}`},
		{"sales/double11/items/%2E%2E/stock", `{"id":"a4","delta":1}`, `{"id":"a4","sku":"..","delta":1,"stock":8}`},
	} {
		if a := post(s, "/ops/acts/"+c.path, c.body, nil); a.Status != http.StatusOK || strings.TrimSpace(a.Body) != c.says {
			t.Errorf("%s: %d %s, want %s", c.path, a.Status, a.Body, c.says)
		}
	}
	shopper.Hold("r1", "plain", 2, time.Hour)
	shopper.Hold("r2", "plain", 3, time.Hour)
	for _, id := range []string{"r1", "r2"} {
		shopper.Must(shopper.Doubt(t.Context(), "double11", id, "timeout"))
	}
	n := until(t, next, "both are in doubt", func(n news) bool { return n.Sale.Questions != nil && n.Sale.Questions.InDoubt == 2 })
	if q := n.Sale.Questions; len(q.Causes) != 1 || q.Causes[0].Cause != "timeout" || q.Causes[0].Holds != 2 || q.Causes[0].Units != 5 || len(q.Doubts) != 2 || q.Doubts[0].ID != "r1" {
		t.Errorf("the questions: %+v", q)
	}
	dry := post(s, "/ops/acts/sales/double11/holds/confirm", `{"cause":"timeout","dry_run":true}`, nil)
	if dry.Status != http.StatusOK || !strings.Contains(dry.Body, `"changed":2`) || !strings.Contains(dry.Body, `"in_doubt":2`) {
		t.Errorf("dry run: %d %s", dry.Status, dry.Body)
	}
	if a := post(s, "/ops/acts/reservations/r1/release", `{"force":true}`, nil); a.Status != http.StatusOK || !strings.Contains(a.Body, `"state":"released"`) {
		t.Errorf("release: %d %s", a.Status, a.Body)
	}
	if a := post(s, "/ops/acts/sales/double11/holds/confirm", `{"cause":"timeout"}`, nil); a.Status != http.StatusOK || !strings.Contains(a.Body, `"changed":1`) {
		t.Errorf("confirm: %d %s", a.Status, a.Body)
	}
	n = until(t, next, "all is in the log", func(n news) bool { return len(n.Sale.Log) > 0 && n.Sale.Log[0].Kind == "confirmed" })
	var did []string
	for _, a := range n.Sale.Log {
		did = append(did, a.Kind)
		if !strings.HasPrefix(a.Who, "ann") {
			t.Errorf("%s was done by %q", a.Kind, a.Who)
		}
	}
	if got := strings.Join(did, " "); got != "confirmed released adjusted adjusted adjusted adjusted open paused open applied" {
		t.Errorf("the log: %s", got)
	}
	if r, err := shopper.Reservation(t.Context(), "r2"); err != nil || r.State != record.Confirmed || r.Cause != "operator:ann" {
		t.Errorf("r2: %+v %v", r, err)
	}
	if by := s.Logged("stock added"); len(by) == 0 || by[0]["by"] != "ann@unix" {
		t.Errorf("logged: %v", by)
	}
}

// A request that does not come from the page changes nothing.
func TestActsFromElsewhere(t *testing.T) {
	s, _ := open(t)
	const path = "/ops/acts/sales/double11/pause"
	for name, c := range map[string]struct {
		path   string
		header map[string]string
		status int
	}{
		"another origin":      {path, map[string]string{"Origin": "http://evil.example.com"}, 403},
		"another port":        {path, map[string]string{"Origin": "http://127.0.0.1:81"}, 403},
		"no origin":           {path, map[string]string{"Origin": ""}, 403},
		"a null origin":       {path, map[string]string{"Origin": "null"}, 403},
		"another site":        {path, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"a form":              {path, map[string]string{"Content-Type": "text/plain"}, 415},
		"no password":         {path, map[string]string{"Authorization": ""}, 401},
		"a wrong password":    {path, map[string]string{"Authorization": "Basic YW5uOndhbGwx"}, 401},
		"another act":         {"/ops/acts/sales/double11", nil, 404},
		"a sale file":         {"/ops/acts/sales/double11/rebuild", nil, 404},
		"a path of the admin": {"/ops/acts/gates/x/try", nil, 404},
		"an unknown sale":     {"/ops/acts/sales/none/pause", nil, 404},
		"no id of a sale":     {"/ops/acts/sales/UPPER/pause", nil, 400},
	} {
		if a := post(s, c.path, "{}", c.header); a.Status != c.status {
			t.Errorf("%s: %d %s, want %d", name, a.Status, a.Body, c.status)
		}
	}
	if a := s.AskWith("http", "GET", path, "", map[string]string{"Authorization": ann}); a.Status != http.StatusMethodNotAllowed || a.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %d %s", a.Status, a.Header.Get("Allow"))
	}
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Status != "open" {
		t.Errorf("the sale is %s", b.Status)
	}
}

// Behind a gateway that ends TLS the page has the origin that is configured for its host, and no other.
func TestActsBehindAGateway(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	s.Gates = []any{at("/ops", basic, page(object{"acts": []string{"pause"}, "origins": []string{"https://ops.example.com", "https://ops.example.net"}}))}
	s.Load(app)
	s.OpenSale()
	for origin, status := range map[string]int{
		"https://ops.example.com": 200, "http://ops.example.com": 403, "https://ops.example.net": 403, "https://ops.example.com:8443": 403, "https://evil.example.com": 403, "null": 403, "": 403,
	} {
		if a := post(s, "/ops/acts/sales/double11/pause", "{}", map[string]string{"Host": "ops.example.com", "Origin": origin}); a.Status != status {
			t.Errorf("%q: %d %s, want %d", origin, a.Status, a.Body, status)
		}
	}
}

// What acts does not name is refused.
func TestSomeActs(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	s.Gates = []any{at("/ops", basic, page(object{"acts": []string{"pause"}}))}
	s.Load(app)
	s.OpenSale()
	for path, status := range map[string]int{
		"sales/double11/close": 403, "sales/double11/items/few/stock": 403, "sales/double11/holds/release": 403, "reservations/r/confirm": 403, "sales/double11/pause": 200,
	} {
		if a := post(s, "/ops/acts/"+path, "{}", nil); a.Status != status {
			t.Errorf("%s: %d %s, want %d", path, a.Status, a.Body, status)
		}
	}
}

// The log of the page has what was done however fast it was, also where a change makes the
// page read all cells.
func TestLogMissesNothing(t *testing.T) {
	s, _ := open(t)
	next := listen(t, s, "/open/events?sale=double11")
	until(t, next, "the sale is there", func(n news) bool { return n.Sale.ID == "double11" && len(n.Sale.Log) == 2 })
	for range 6 {
		for _, act := range []string{"pause", "open"} {
			if a := post(s, "/ops/acts/sales/double11/"+act, "{}", nil); a.Status != http.StatusOK {
				t.Fatalf("%s: %d %s", act, a.Status, a.Body)
			}
		}
	}
	n := until(t, next, "all 14 are in the log", func(n news) bool { return len(n.Sale.Log) >= 14 })
	for i, a := range n.Sale.Log {
		if want := []string{"open", "paused"}[i%2]; i < 12 && (a.Kind != want || a.Who != "ann@unix") {
			t.Errorf("number %d is %+v, want %s", i, a, want)
		}
	}
	if len(n.Sale.Log) != 14 {
		t.Errorf("%d actions: some are told twice", len(n.Sale.Log))
	}
}
