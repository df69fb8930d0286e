package inquiry_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
)

// A question is another one if anything differs that the shop is told, and not if only the number
// of the request does.
func TestQuestion(t *testing.T) {
	request := func(change func(*http.Request)) *http.Request {
		r := httptest.NewRequest("POST", "http://shop.example.com/pay?cart=a", nil)
		r.Header = http.Header{"Authorization": {"Bearer x"}, "Cookie": {"a=1"}, "Channel": {"a=1", "b=2"}, "Accept": {"*/*"}, "X-Request-Id": {"1"}, "Content-Length": {"3"}}
		change(r)
		return r
	}
	same := func(*http.Request) {}
	first := inquiry.Question(request(same), "ref", []byte(`{"sub":"u"}`))
	for name, c := range map[string]struct {
		change func(*http.Request)
		ref    string
		claims string
		same   bool
	}{
		"nothing":             {same, "ref", `{"sub":"u"}`, true},
		"the request's name":  {func(r *http.Request) { r.Header.Set("X-Request-Id", "2"); r.Header.Set("Traceparent", "x") }, "ref", `{"sub":"u"}`, true},
		"what is not sent":    {func(r *http.Request) { r.Header.Set("Idempotency-Key", "2"); r.Header.Set("Content-Length", "4") }, "ref", `{"sub":"u"}`, true},
		"a balancer's cookie": {func(r *http.Request) { r.Header.Add("Cookie", "AWSALB=2") }, "ref", `{"sub":"u"}`, true},
		"the ref":             {same, "other", `{"sub":"u"}`, false},
		"a claim":             {same, "ref", `{"sub":"v"}`, false},
		"the query":           {func(r *http.Request) { r.URL.RawQuery = "cart=b" }, "ref", `{"sub":"u"}`, false},
		"the host":            {func(r *http.Request) { r.Host = "other.example.com" }, "ref", `{"sub":"u"}`, false},
		"a field":             {func(r *http.Request) { r.Header.Set("Cart", "b") }, "ref", `{"sub":"u"}`, false},
		"a field less":        {func(r *http.Request) { r.Header.Del("Accept") }, "ref", `{"sub":"u"}`, false},
		"a value more":        {func(r *http.Request) { r.Header.Add("Channel", "c=3") }, "ref", `{"sub":"u"}`, false},
		"two values in one":   {func(r *http.Request) { r.Header["Channel"] = []string{"a=1b=2"} }, "ref", `{"sub":"u"}`, false},
		"two fields changed": {func(r *http.Request) {
			r.Header["Accept"], r.Header["Channel"] = r.Header["Channel"], r.Header["Accept"]
		}, "ref", `{"sub":"u"}`, false},
		"ref and query": {func(r *http.Request) { r.URL.RawQuery = "" }, "refcart=a", `{"sub":"u"}`, false},
	} {
		if got := inquiry.Question(request(c.change), c.ref, []byte(c.claims)) == first; got != c.same {
			t.Errorf("%s differs: the question is the same: %v", name, got)
		}
	}
	r, claims := request(same), []byte(`{"sub":"u"}`)
	if n := testing.AllocsPerRun(100, func() { inquiry.Question(r, "ref", claims) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
