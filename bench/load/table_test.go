package load_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/bench/load"
)

// TestRequests: what is sent is what the case says, to Go's parser.
func TestRequests(t *testing.T) {
	o := load.Orders{
		Host: "shop", Keyed: true,
		SKU:   func(i int) string { return "sku-" + strconv.Itoa(i) },
		Buyer: func(int) string { return "b" + load.Mark },
	}
	for _, c := range []struct {
		method        string
		inQuery       bool
		target, buyer string
		body          string
	}{
		{"GET", false, "/api/order?sku=sku-3&quantity=1", "b0000000042", ""},
		{"POST", false, "/api/order", "b0000000042", `{"sku":"sku-3","quantity":1}`},
		{"POST", true, "/api/order?buyer=b0000000042", "", `{"sku":"sku-3","quantity":1}`},
	} {
		o.Method, o.InQuery = c.method, c.inQuery
		in := bufio.NewReader(strings.NewReader(load.Numbered(o.Request(3), 42)))
		r, err := http.ReadRequest(in)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if r.Method != c.method || r.RequestURI != c.target || r.Header.Get("X-User-Id") != c.buyer || string(body) != c.body {
			t.Errorf("%+v: got %s %s, %v, %s", c, r.Method, r.RequestURI, r.Header, body)
		}
		if got := r.Header.Get("Idempotency-Key"); got != "order-0000000042" {
			t.Errorf("the key is %q", got)
		}
		if in.Buffered() > 0 {
			t.Errorf("%+v: there is more than one request", c)
		}
	}
}

// TestFile: wrk.lua reads a line with a length, then so many bytes, until the end.
func TestFile(t *testing.T) {
	o := load.Orders{Method: "POST", Host: "shop", SKU: func(i int) string { return strconv.Itoa(i) }, Buyer: func(int) string { return "b" }}
	name := filepath.Join(t.TempDir(), "requests")
	if err := o.Write(name, 12); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rest := string(text)
	for i := range 12 {
		line, after, _ := strings.Cut(rest, "\n")
		n, err := strconv.Atoi(line)
		if err != nil || n > len(after) || after[:n] != o.Request(i) {
			t.Fatalf("request %d: %q", i, rest)
		}
		rest = after[n:]
	}
	if rest != "" {
		t.Errorf("left over: %q", rest)
	}
}
