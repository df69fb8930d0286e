package e2e_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// What the shop's answer says, and which rule hears it first. The client gets the
// answer as it is, whatever is decided.
func TestAnswerRules(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	io.WriteString(zip, `{"code":0}`)
	zip.Close()
	long := `{"note":"` + strings.Repeat("x", 70<<10) + `","code":0}`
	fits := `{"note":"` + strings.Repeat("x", 60<<10) + `","code":0}`
	const byCode = "@sold {\n status 200\n json code 0 200\n}\n@refused {\n json code 500 30001\n}\nconfirm @sold\nrelease @refused 4xx"
	plain := http.Header{"Content-Type": {"application/json"}}
	tests := []struct {
		name   string
		gate   string
		status int
		header http.Header
		body   string
		state  string
	}{
		{"a value", byCode, 200, plain, `{"code":0}`, "confirmed"},
		{"another value", byCode, 200, plain, `{"code":"200"}`, "confirmed"},
		{"a refusal", byCode, 200, plain, `{"code":30001,"msg":"no"}`, "released"},
		{"no value of any rule", byCode, 200, plain, `{"code":1}`, "in_doubt"},
		{"not JSON", byCode, 200, plain, `<html>code: 0</html>`, "in_doubt"},
		{"cut JSON", byCode, 200, plain, `{"code":0`, "in_doubt"},
		{"two documents", byCode, 200, plain, `{"code":0}{"code":500}`, "in_doubt"},
		{"no body", byCode, 200, plain, ``, "in_doubt"},
		{"a status without JSON", byCode, 404, plain, `not found`, "released"},
		{"the status does not match", byCode, 201, plain, `{"code":0}`, "in_doubt"},
		{"almost 64 KiB", byCode, 200, plain, fits, "confirmed"},
		{"over 64 KiB", byCode, 200, plain, long, "in_doubt"},
		{"encoded although not asked for", byCode, 200, http.Header{"Content-Encoding": {"gzip"}}, zipped.String(), "confirmed"},
		{"in an encoding that is not undone", byCode, 200, http.Header{"Content-Encoding": {"br"}}, zipped.String(), "in_doubt"},
		{"in a broken encoding", byCode, 200, http.Header{"Content-Encoding": {"gzip"}}, zipped.String()[:20], "in_doubt"},
		{"present", "@ok {\n json data.order_no\n}\nconfirm @ok", 200, plain, `{"data":{"order_no":"SO-1"}}`, "confirmed"},
		{"present, in an array", "@ok {\n json data.0.no\n}\nconfirm @ok", 200, plain, `{"data":[{"no":1}]}`, "confirmed"},
		{"one of many", "@ok {\n json data.0.no\n}\nconfirm @ok", 200, plain, `{"data":[{"no":1},{"no":2}]}`, "in_doubt"},
		{"one of many, another rule behind it", "@refused {\n json errors.0.code 500\n}\nrelease @refused\nconfirm 2xx", 200, plain, `{"errors":[{"code":1},{"code":500}]}`, "in_doubt"},
		{"null is absent", "@ok {\n json data.order_no\n}\nconfirm @ok", 200, plain, `{"data":{"order_no":null}}`, "in_doubt"},
		{"absent", "@ok {\n json !error\n}\nconfirm @ok", 200, plain, `{"order":1}`, "confirmed"},
		{"null is absent here too", "@ok {\n json !error\n}\nconfirm @ok", 200, plain, `{"error":null}`, "confirmed"},
		{"not absent", "@ok {\n json !error\n}\nconfirm @ok", 200, plain, `{"error":{}}`, "in_doubt"},
		{"absent needs JSON", "@ok {\n json !error\n}\nconfirm @ok", 200, plain, `<html>`, "in_doubt"},
		{"header", "@paid {\n header X-Order\n}\nconfirm @paid", 200, http.Header{"X-Order": {"1"}}, ``, "confirmed"},
		{"no header", "@paid {\n header X-Order\n}\nconfirm @paid", 200, plain, ``, "in_doubt"},
		{"header value", "@thanks {\n status 302\n header Location /thanks\n}\n@login {\n header Location /login\n}\nconfirm @thanks\nrelease @login", 302, http.Header{"Location": {"/login"}}, ``, "released"},
		{"the first rule counts", "release 2xx\nconfirm 201", 201, plain, ``, "released"},
		{"the first rule counts, the other way", "confirm 201\nrelease 2xx", 201, plain, ``, "confirmed"},
		{"a later rule without JSON waits for an earlier one with it", "@refused {\n json code 500\n}\nrelease @refused\nconfirm 2xx", 200, plain, `{"code":500}`, "released"},
		{"and counts if that one does not match", "@refused {\n json code 500\n}\nrelease @refused\nconfirm 2xx", 200, plain, `{"code":0}`, "confirmed"},
		{"a confirm rule replaces the default", "confirm 201", 200, plain, ``, "in_doubt"},
		{"a release rule replaces the default", "release 422", 400, plain, ``, "in_doubt"},
	}
	shops, sites := make([]recorder, len(tests)), make([]site, len(tests))
	for i, test := range tests {
		shops[i].answer = func(w http.ResponseWriter, r *http.Request) {
			for name, values := range test.header {
				w.Header()[name] = values
			}
			w.WriteHeader(test.status)
			io.WriteString(w, test.body)
		}
		sites[i] = site{shop: serve(t, &shops[i]), gate: test.gate}
	}
	counters := startCounters(t, sites)
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := counters[i].of(t)
			e.sell(e.sale, oneUnit)
			r := e.buy(order{buyer: "a", body: `{"sku":"7"}`, header: http.Header{"Accept-Encoding": {"gzip, br"}}})
			e.mustState(r.reservation, test.state, "")
			if r.status != test.status || r.body != test.body {
				t.Errorf("the buyer sees %d and %d bytes, the shop said %d and %d", r.status, len(r.body), test.status, len(test.body))
			}
			got := shops[i].requests()[0].header.Get("Accept-Encoding")
			if reads := strings.Contains(test.gate, "json"); reads != (got == "identity") {
				t.Errorf("Accept-Encoding is %q", got)
			}
		})
	}
}

// The buyer hears yes after the unit is confirmed, not before: no byte of the
// answer leaves while Redis has not been told.
func TestConfirmedBeforeTheBuyerKnows(t *testing.T) {
	t.Parallel()
	gates := []string{"", "@sold {\n json code 0\n}\nconfirm @sold"}
	more, sites := make([]chan struct{}, len(gates)), make([]site, len(gates))
	for i, gate := range gates {
		more[i] = make(chan struct{})
		addr := rawShop(t, func(_ int, _ net.Listener, conn net.Conn, in *bufio.Reader) {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			io.Copy(io.Discard, r.Body)
			io.WriteString(conn, "HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\n")
			<-more[i]
			io.WriteString(conn, `{"code":0}`)
		})
		sites[i] = site{shop: addr, gate: gate}
	}
	counters := startCounters(t, sites)
	for i, gate := range gates {
		t.Run(gate, func(t *testing.T) {
			t.Parallel()
			e := counters[i].of(t)
			e.sell(e.sale, oneUnit)
			done := e.goBuy(one("a", "7", 1, ""))
			if gate == "" {
				// the head decides, the body may take its time
				e.untilExpected(e.sale, 0, 0, 0, 1)
			} else {
				e.untilExpected(e.sale, 0, 1, 0, 0)
			}
			close(more[i])
			r := await(t, "the answer", done)
			if r.status != http.StatusCreated || r.body != `{"code":0}` {
				t.Errorf("the buyer sees %v", r)
			}
			e.expect(e.sale, 0, 0, 0, 1)
		})
	}
}

// Interim answers decide nothing, and stay at the gate.
func TestEarlyHints(t *testing.T) {
	t.Parallel()
	addr := rawShop(t, func(_ int, _ net.Listener, conn net.Conn, in *bufio.Reader) {
		if r, err := http.ReadRequest(in); err == nil {
			io.Copy(io.Discard, r.Body)
			io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno")
		}
	})
	e := startEdge(t, site{shop: addr})
	e.sell("flash", oneUnit)
	r := e.buy(one("a", "7", 1, ""))
	if r.status != http.StatusBadRequest || r.body != "no" {
		t.Errorf("the buyer sees %v", r)
	}
	e.mustState(r.reservation, "released", fmt.Sprintf("status_%d", r.status))
}
