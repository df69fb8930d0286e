package attempt_test

import (
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
)

func TestRawPathUnsafe(t *testing.T) {
	for path, want := range map[string]string{
		"":                             "",
		"*":                            "",
		"/":                            "",
		"/api/order":                   "",
		"/api/order/":                  "",
		"/a//b":                        "",
		"/.well-known/jwks.json":       "",
		"/..a/.../a../a.b":             "",
		"/%E4%B8%AD%20x":               "",
		"/a;jsessionid=1/b":            "",
		"/a?x=../../%2e\\":             "",
		"/static/..;/api/order":        "a dot segment",
		"/static/..;x=1/api/order":     "a dot segment",
		"/static/.;x/api":              "a dot segment",
		"/static/..%3b/api":            "a dot segment",
		"/static/..%3B":                "a dot segment",
		"/a/./b":                       "a dot segment",
		"/a/../b":                      "a dot segment",
		"/a/..":                        "a dot segment",
		"/a/.":                         "a dot segment",
		"..":                           "a dot segment",
		"/a/..?x":                      "a dot segment",
		"/%2e%2e;/order":               "an encoded dot",
		"/a/%2E":                       "an encoded dot",
		"/a%2fb":                       "an encoded slash",
		"/a%2Fb":                       "an encoded slash",
		`/a\b`:                         "a backslash",
		"/a%5cb":                       "an encoded backslash",
		"/a%252fb":                     "an encoded percent sign",
		"/a%00":                        "an encoded control character",
		"/api/order%0a":                "an encoded control character",
		"/api/order%7F":                "an encoded control character",
		"/a\x00":                       "a control character",
		"/a%":                          "a broken percent-encoding",
		"/a%2":                         "a broken percent-encoding",
		"/a%zz":                        "a broken percent-encoding",
		"/a%u002e":                     "a broken percent-encoding",
		"http://shop.example/a/../b":   "a dot segment",
		"http://shop.example/a/order?": "",
	} {
		why, bad := attempt.RawPathUnsafe(path)
		if why != want || bad != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", path, why, bad, want)
		}
	}
}

func TestOrdinaryRequestsAllocateLittle(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { attempt.RawPathUnsafe("/api/v1/%E4%B8%AD/orders?x=1") }); n != 0 {
		t.Errorf("a path: %v allocations", n)
	}
	body := []byte(`{"sku":"20002001","quantity":2,"note":"a \"note\"","more":[{"x":1.5e3},null]}`)
	if n := testing.AllocsPerRun(100, func() { attempt.ScanJSON(body) }); n > 1 {
		t.Errorf("a document: %v allocations", n) // the scratch that the reader reuses
	}
}
