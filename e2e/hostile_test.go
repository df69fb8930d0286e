package e2e_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// goodOrder is the raw request that works, with room for more header lines.
func goodOrder(more string) string {
	return "POST /api/order HTTP/1.1\nHost: HOST\nX-User-Id: a\nContent-Type: application/json\n" + more + "Content-Length: 11\n\n" + `{"sku":"7"}`
}

// What two servers could read differently is refused: nothing is reserved, and
// nothing of it reaches the shop.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{shop: serve(t, s), gate: "max_body 1KiB",
		source: "buyer {header.X-User-Id}\nregion {query.region}\nline {json.sku} {json.quantity}"})
	e.sell("flash", `  - {sku: "7", stock: 100}`)
	post := func(path, head, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\nHost: HOST\nX-User-Id: a\n%sContent-Length: %d\n\n%s", path, head, len(body), body)
	}
	const asJSON = "Content-Type: application/json\n"
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	io.WriteString(zip, `{"sku":"7"}`)
	zip.Close()
	for _, test := range []struct {
		name, request string
		status        int
		reason        string // empty: Caddy itself, or a route that is not gated
	}{
		{"connection names the token", goodOrder("Connection: close, Stockgate-Token\n"), 400, "malformed"},
		{"connection names the buyer", goodOrder("Connection: X-User-Id\n"), 400, "malformed"},
		{"connection twice", goodOrder("Connection: close\nConnection: stockgate-token\n"), 400, "malformed"},
		{"announced trailers", "POST /api/order HTTP/1.1\nHost: HOST\nX-User-Id: a\nContent-Type: application/json\nTrailer: Stockgate-Token\nTransfer-Encoding: chunked\n\nb\n{\"sku\":\"7\"}\n0\nStockgate-Token: forged\n\n", 400, "malformed"},
		{"other announced trailers", "POST /api/order HTTP/1.1\nHost: HOST\nX-User-Id: a\nContent-Type: application/json\nTrailer: X-Note\nTransfer-Encoding: chunked\n\nb\n{\"sku\":\"7\"}\n0\nX-Note: hi\n\n", 400, "malformed"},
		{"upgrade", goodOrder("Connection: Upgrade\nUpgrade: websocket\n"), 400, "malformed"},
		{"upgrade alone", goodOrder("Upgrade: TLS/1.3\n"), 400, "malformed"},
		{"two buyers", goodOrder("X-User-Id: b\n"), 400, "malformed"},
		{"two content types", goodOrder("Content-Type: text/plain\n"), 400, "malformed"},
		{"encoded body", post("/api/order", asJSON+"Content-Encoding: gzip\n", zipped.String()), 400, "malformed"},
		{"encoding of two", post("/api/order", asJSON+"Content-Encoding: identity, gzip\n", zipped.String()), 400, "malformed"},
		{"sku and SKU", post("/api/order", asJSON, `{"sku":"7","SKU":"8"}`), 400, "malformed"},
		{"sku twice", post("/api/order", asJSON, `{"sku":"7","sku":"8"}`), 400, "malformed"},
		{"sku with Kelvin sign", post("/api/order", asJSON, "{\"sku\":\"7\",\"s\u212Au\":\"8\"}"), 400, "malformed"},
		{"sku escaped", post("/api/order", asJSON, `{"sku":"7","\u0073ku":"8"}`), 400, "malformed"},
		{"JSON as a form", post("/api/order", "Content-Type: application/x-www-form-urlencoded\n", `{"sku":"7"}`), 400, "malformed"},
		{"JSON as text", post("/api/order", "Content-Type: text/plain\n", `{"sku":"7"}`), 400, "malformed"},
		{"JSON as nothing", post("/api/order", "", `{"sku":"7"}`), 400, "malformed"},
		{"JSON in another charset", post("/api/order", "Content-Type: application/json; charset=utf-7\n", `{"sku":"7"}`), 400, "malformed"},
		{"multipart", post("/api/order", "Content-Type: multipart/form-data; boundary=b\n", "--b\nContent-Disposition: form-data; name=\"sku\"\n\n7\n--b--\n"), 400, "malformed"},
		{"BOM", post("/api/order", asJSON, "\ufeff{\"sku\":\"7\"}"), 400, "malformed"},
		{"two documents", post("/api/order", asJSON, `{"sku":"7"}{}`), 400, "malformed"},
		{"not UTF-8", post("/api/order", asJSON, "{\"sku\":\"7\",\"note\":\"\xff\"}"), 400, "malformed"},
		{"no sku", post("/api/order", asJSON, `{"quantity":1}`), 400, "malformed"},
		{"no body", post("/api/order", asJSON, ``), 400, "malformed"},
		{"null quantity", post("/api/order", asJSON, `{"sku":"7","quantity":null}`), 400, "malformed"},
		{"negative quantity", post("/api/order", asJSON, `{"sku":"7","quantity":-1}`), 400, "malformed"},
		{"fractional quantity", post("/api/order", asJSON, `{"sku":"7","quantity":1.5}`), 400, "malformed"},
		{"huge quantity", post("/api/order", asJSON, `{"sku":"7","quantity":1e309}`), 400, "malformed"},
		{"quantity with a zero", post("/api/order", asJSON, `{"sku":"7","quantity":"01"}`), 400, "malformed"},
		{"in query and body", post("/api/order?sku=7", asJSON, `{"sku":"7"}`), 400, "malformed"},
		{"in query and body, folded", post("/api/order?SKU=8", asJSON, `{"sku":"7"}`), 400, "malformed"},
		{"a source twice in the query", post("/api/order?region=x&region=y", asJSON, `{"sku":"7"}`), 400, "malformed"},
		{"method in the query", post("/api/order?_method=PUT", asJSON, `{"sku":"7"}`), 400, "malformed"},
		{"no buyer", "POST /api/order HTTP/1.1\nHost: HOST\nContent-Type: application/json\nContent-Length: 11\n\n{\"sku\":\"7\"}", 401, "no_buyer"},
		{"body too large", post("/api/order", asJSON, `{"sku":"7","note":"`+strings.Repeat("x", 1024)+`"}`), 413, "body_too_large"},
		{"body too large without length", "POST /api/order HTTP/1.1\nHost: HOST\nX-User-Id: a\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n800\n" + strings.Repeat("x", 2048) + "\n0\n\n", 413, "body_too_large"},
		{"nested deep", post("/api/order", asJSON, `{"sku":"7","a":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}`), 400, "malformed"},
		{"smuggled length", "POST /api/order HTTP/1.1\nHost: HOST\nX-User-Id: a\nContent-Type: application/json\nContent-Length: 11\nContent-Length: 12\n\n{\"sku\":\"7\"}", 400, ""},
		{"CONNECT", "CONNECT /api/order HTTP/1.1\nHost: HOST\n\n", 400, "malformed"},

		{"matrix parameter", post("/static/..;/api/order", asJSON, `{"sku":"7"}`), 400, "malformed"},
		{"encoded dots", post("/x/%2e%2e/api/order", asJSON, `{"sku":"7"}`), 400, "malformed"},
		{"encoded dots and a parameter", post("/x/%2e%2e;/api/order", asJSON, `{"sku":"7"}`), 400, "malformed"},
		{"encoded slash", post("/api%2forder", asJSON, `{"sku":"7"}`), 400, "malformed"},
		{"encoded letters of a dot segment", post("/x/.%2E/api/order", asJSON, `{"sku":"7"}`), 400, "malformed"},
		{"twice encoded", post("/api%252forder", asJSON, `{"sku":"7"}`), 400, "malformed"},
		{"backslash", post(`/api\order`, asJSON, `{"sku":"7"}`), 400, "malformed"},
		{"encoded backslash", post(`/api%5corder`, asJSON, `{"sku":"7"}`), 400, "malformed"},
		{"NUL", post(`/api/order%00`, asJSON, `{"sku":"7"}`), 400, "malformed"},
		{"dot segments", post(`/a/../api/order`, asJSON, `{"sku":"7"}`), 400, "malformed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.forget()
			r := e.raw(t, test.request)
			if r.err != nil || r.status != test.status || r.reason != test.reason {
				t.Errorf("the client sees %v, it should be %d %s", r, test.status, test.reason)
			}
			if got := s.requests(); len(got) != 0 {
				t.Errorf("the shop got %+v", got)
			}
			if test.reason != "" && r.header.Get("Cache-Control") != "no-store" {
				t.Errorf("a cache may keep the refusal: %v", r.header)
			}
		})
	}
	e.expect("flash", 100, 0, 0, 0)
}

// Trailers that were not announced reach neither the shop nor the outcome.
func TestUnannouncedTrailers(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{shop: serve(t, s)})
	e.sell("flash", oneUnit)
	chunked := "HTTP/1.1\nHost: HOST\nX-User-Id: a\nContent-Type: application/json\nTransfer-Encoding: chunked\n\nb\n{\"sku\":\"7\"}\n0\nStockgate-Token: forged\nX-Note: hi\n\n"
	r := e.raw(t, "POST /api/order "+chunked)
	e.raw(t, "POST /other "+chunked)
	for _, got := range s.requests() {
		for name := range got.trailer {
			if strings.HasPrefix(http.CanonicalHeaderKey(name), "Stockgate-") || got.uri == "/api/order" {
				t.Errorf("the shop got trailers: %+v (the client saw %v)", got, r)
			}
		}
	}
}

// Announced trailers of ungated routes lose what only the gate may say.
func TestTrailersOfOtherRoutes(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{shop: serve(t, s)})
	e.raw(t, "POST /other HTTP/1.1\nHost: HOST\nTrailer: Stockgate-Token, X-Note\nTransfer-Encoding: chunked\n\n2\nhi\n0\nStockgate-Token: forged\nX-Note: hi\n\n")
	got := s.requests()
	if len(got) != 1 || got[0].trailer.Get("Stockgate-Token") != "" {
		t.Errorf("the shop got %+v", got)
	}
}

// Nothing that a client says in the gate's name reaches the shop, on any route.
func TestForgedHeaders(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{shop: serve(t, s)})
	e.sell("flash", `  - {sku: "7", stock: 10}`)
	forged := "Stockgate-Token: forged\nstockgate-reservation: forged\nSTOCKGATE-ANYTHING: forged\nStockgate_Token: forged\nX-HTTP-Method-Override: PUT\nX-Method-Override: PUT\nX-Http-Method: PUT\n"
	if r := e.raw(t, goodOrder(forged)); r.status != http.StatusCreated {
		t.Fatalf("the order: %v", r)
	}
	e.raw(t, "GET /browse HTTP/1.1\nHost: HOST\n"+forged+"\n")
	e.raw(t, "OPTIONS /api/order HTTP/1.1\nHost: HOST\nOrigin: https://shop.example\n"+forged+"\n")
	got := s.requests()
	if len(got) != 3 {
		t.Fatalf("the shop got %d requests: %+v", len(got), got)
	}
	for _, r := range got {
		for name, values := range r.header {
			folded := strings.ReplaceAll(strings.ToLower(name), "_", "-")
			if strings.HasPrefix(folded, "stockgate-") && (r.uri != "/api/order" || r.method != "POST" || folded != "stockgate-token" || len(values) != 1 || values[0] == "forged") {
				t.Errorf("%s %s has %s: %v", r.method, r.uri, name, values)
			}
			if r.method == "POST" && strings.Contains(folded, "method") {
				t.Errorf("%s %s has %s: %v", r.method, r.uri, name, values)
			}
		}
	}
	e.expect("flash", 9, 0, 0, 1)
}

// The order reaches the shop byte for byte, however it was framed.
func TestBodyIsUntouched(t *testing.T) {
	t.Parallel()
	body := "{ \"note\" : \"\u00e9\\u00e9 \\\"\",\r\n\t\"quantity\":\"2\" , \"sku\":7,\"extra\":{\"a\":[1,2.50,1e5,null]}}\n"
	var framings []string
	var sites []site
	shops := make([]recorder, 6)
	for _, framing := range []string{"length", "chunked", "HTTP/1.0"} {
		for _, source := range []string{sources, inQuery + "\nregion x"} {
			sites = append(sites, site{shop: serve(t, &shops[len(sites)]), source: source})
			framings = append(framings, framing)
		}
	}
	counters := startCounters(t, sites)
	for i, framing := range framings {
		t.Run(framing, func(t *testing.T) {
			t.Parallel()
			s, e := &shops[i], counters[i].of(t)
			e.sell(e.sale, `  - {sku: "7", stock: 10}`)
			path, sent := "/api/order?x=%20a+b&y", body
			if sites[i].source != sources {
				path += "&sku=7"
				sent = strings.ReplaceAll(body, "\"sku\":7,", "")
			}
			head := "POST " + path + " HTTP/1.1\nHost: HOST\nX-User-Id: a\nContent-Type: application/json; charset=UTF-8\n"
			head = strings.ReplaceAll(head, "\n", "\r\n")
			var request string
			switch framing {
			case "length":
				request = fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(sent), sent)
			case "chunked":
				request = fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", head, 9, sent[:9], len(sent)-9, sent[9:])
			case "HTTP/1.0":
				request = fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", strings.Replace(head, "HTTP/1.1", "HTTP/1.0", 1), len(sent), sent)
			}
			r := e.rawBytes(t, request)
			got := s.requests()
			if r.status != http.StatusCreated || len(got) != 1 {
				t.Fatalf("the client sees %v, the shop %+v", r, got)
			}
			if got[0].body != sent || got[0].uri != path || got[0].header.Get("Content-Length") != "" && got[0].header.Get("Content-Length") != fmt.Sprint(len(sent)) || len(got[0].transferEncoding) != 0 {
				t.Errorf("the shop got %+v", got[0])
			}
			if got[0].header.Get("Content-Type") != "application/json; charset=UTF-8" || got[0].header.Get("X-User-Id") != "a" {
				t.Errorf("the shop got other headers: %+v", got[0])
			}
		})
	}
}

// Methods: OPTIONS is no attempt, all others that the matcher names are.
func TestMethods(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{shop: serve(t, s), source: inQuery})
	e.sell("flash", `  - {sku: "7", stock: 10}`)
	for _, test := range []struct {
		method, user string
		status       int
		reason       string
		reserved     bool
	}{
		{"OPTIONS", "a", 201, "", false},
		{"HEAD", "b", 201, "", true},
		{"HEAD", "", 401, "no_buyer", false},
		{"GET", "c", 201, "", true},
		{"PUT", "d", 201, "", true},
		{"DELETE", "", 401, "no_buyer", false},
	} {
		s.forget()
		user := ""
		if test.user != "" {
			user = "X-User-Id: " + test.user + "\n"
		}
		r := e.raw(t, test.method+" /api/order?sku=7 HTTP/1.1\nHost: HOST\n"+user+"\n")
		if r.err != nil || r.status != test.status || r.reason != test.reason || (r.reservation != "") != test.reserved {
			t.Errorf("%s: %v", test.method, r)
		}
		for _, got := range s.requests() {
			if got.method != test.method || (got.header.Get("Stockgate-Token") != "") != test.reserved {
				t.Errorf("%s: the shop got %+v", test.method, got)
			}
		}
		if r.status == 401 && (len(s.requests()) != 0 || test.method == "HEAD" && r.body != "") {
			t.Errorf("%s: the shop got %+v, the client a body %q", test.method, s.requests(), r.body)
		}
	}
	e.expect("flash", 7, 0, 0, 3)
}

// The same gate over TLS with HTTP/2.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{shop: serve(t, s), tls: true})
	e.buyers.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	eventually(t, "the edge has its certificate", func() bool {
		r, err := e.buyers.Get(e.url + "/browse")
		if err != nil {
			return false
		}
		r.Body.Close()
		if r.ProtoMajor != 2 {
			t.Fatalf("the edge speaks %s", r.Proto)
		}
		return true
	})
	e.sell("flash", oneUnit)
	r := e.buy(one("a", "7", 1, ""))
	if r.status != http.StatusCreated {
		t.Errorf("the order: %v", r)
	}
	if r := e.buy(one("b", "7", 1, "")); r.reason != "sold_out" {
		t.Errorf("the next order: %v", r)
	}
	big := one("c", "7", 1, "")
	big.body = `{"sku":"7","note":"` + strings.Repeat("x", 1<<20) + `"}`
	if r := e.buy(big); r.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too large: %v", r)
	}
	e.expect("flash", 0, 0, 0, 1)
}
