package e2e_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// A refusal is an RFC 9457 document with what helps, and says to caches what it is.
func TestRefusalIsAProblemDocument(t *testing.T) {
	t.Parallel()
	e := startEdge(t, site{shop: freeAddr(t), outer: `header {
		Access-Control-Allow-Origin https://shop.example
		X-Frame-Options DENY
	}`})
	e.sell("flash", "  - {sku: \"7\", stock: 0}\n  - {sku: \"8\", stock: 1}")
	r := e.buy(one("a", "7", 1, ""))
	var problem struct {
		Type, Title, Reason, SKU string
		Status                   int
	}
	if err := json.Unmarshal([]byte(r.body), &problem); err != nil {
		t.Fatalf("%v: %v", err, r)
	}
	if problem.Type != "urn:stockgate:refusal:sold_out" || problem.Title == "" || problem.Reason != "sold_out" || problem.SKU != "7" || problem.Status != 409 || r.status != 409 {
		t.Errorf("%d %+v", r.status, problem)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/problem+json", "Stockgate-Refusal": "sold_out", "Cache-Control": "no-store",
		"Access-Control-Allow-Origin": "https://shop.example", "X-Frame-Options": "DENY",
		"Content-Length": strconv.Itoa(len(r.body)), "Retry-After": "", "Stockgate-Reservation": "",
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s is %q, it should be %q", name, got, want)
		}
	}
	e.must("POST", "sales/flash/pause", "", nil)
	eventually(t, "the sale is paused", func() bool { return e.itemState("flash", "8") == "paused" })
	r = e.buy(one("a", "8", 1, ""))
	var waits struct {
		RetryAfter int `json:"retry_after"`
	}
	json.Unmarshal([]byte(r.body), &waits)
	if r.header.Get("Retry-After") != strconv.Itoa(waits.RetryAfter) || waits.RetryAfter < 1 {
		t.Errorf("Retry-After %q, in the document %d", r.header.Get("Retry-After"), waits.RetryAfter)
	}
}

// A shop may give refusals its own words, per reason, or hand them to Caddy's error
// routes; the header that names the reason stays.
func TestRefusalInTheWordsOfTheShop(t *testing.T) {
	t.Parallel()
	e := startEdge(t, site{shop: freeAddr(t), gate: `
		refuse error
		refuse sold_out all_held 200 ` + "`{\"code\":30001,\"msg\":\"{title}\",\"sku\":\"{sku}\"}`" + `
		refuse unknown_item 404 "<p>{reason}: {sku}</p>"
		refuse no_buyer problem`,
		backend: "reverse_proxy " + freeAddr(t) + "\nhandle_errors {\n header X-Reason {http.stockgate.reason}\n respond \"{err.status_code} {http.stockgate.verdict}\" {err.status_code}\n}"})
	e.sell("flash", "  - {sku: \"7\", stock: 0}\n  - {sku: \"8\", stock: 5, max: 2}")
	for _, test := range []struct {
		order  order
		status int
		kind   string
		body   string
		reason string
	}{
		{one("a", "7", 1, ""), 200, "application/json", `{"code":30001,"msg":"Sold out.","sku":"7"}`, "sold_out"},
		{one("a", "<b>", 1, ""), 404, "text/html; charset=utf-8", "<p>unknown_item: &lt;b&gt;</p>", "unknown_item"},
		{one("a", "8", 3, ""), 400, "text/plain; charset=utf-8", "400 refused", "quantity"},
		{one("", "8", 1, ""), 401, "application/problem+json", "", "no_buyer"},
	} {
		r := e.buy(test.order)
		if r.status != test.status || r.reason != test.reason || r.header.Get("Content-Type") != test.kind || test.body != "" && r.body != test.body {
			t.Errorf("%v %v", r, r.header)
		}
		if test.reason == "quantity" && r.header.Get("X-Reason") != "quantity" {
			t.Errorf("handle_errors does not know the reason: %v", r.header)
		}
	}
}

// Outer handlers and the access log see what the gate decided.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{shop: serve(t, s), outer: `log
	log_append gate_verdict {http.stockgate.verdict}
	log_append gate_reason {http.stockgate.reason}
	header {
		defer
		X-Seen "{http.stockgate.verdict} {http.stockgate.reason} {http.stockgate.sale} {http.stockgate.reservation}"
	}`})
	e.sell("flash", oneUnit)
	r := e.buy(one("a", "7", 1, ""))
	if want := "reserved  flash " + r.reservation; r.status != http.StatusCreated || r.header.Get("X-Seen") != want {
		t.Errorf("X-Seen is %q, it should be %q", r.header.Get("X-Seen"), want)
	}
	r = e.buy(one("b", "7", 1, ""))
	if got := strings.Fields(r.header.Get("X-Seen")); len(got) < 2 || got[0] != "refused" || got[1] != "sold_out" {
		t.Errorf("X-Seen is %q", r.header.Get("X-Seen"))
	}
	eventually(t, "the access log has the verdict", func() bool {
		for line := range strings.Lines(e.log.String()) {
			if strings.Contains(line, "http.log.access") && strings.Contains(line, `"gate_verdict":"refused"`) && strings.Contains(line, `"gate_reason":"sold_out"`) {
				return true
			}
		}
		return false
	})
}
