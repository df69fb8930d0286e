package attempt_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
)

// TestWhatIsNotHeededDoesNotMatter reads requests with all kinds of headers, each alone
// and with a second value, and again without those that are not heeded.
func TestWhatIsNotHeededDoesNotMatter(t *testing.T) {
	buyer := values(t, "{header.X-User-Id}")
	readers := map[string]*attempt.Reader{
		"headers": mustReader(t, attempt.Spec{Buyer: buyer, Line: []attempt.LineSpec{{SKU: values(t, "{header.X-Sku}"), Quantity: values(t, "{header.X-Quantity}")}}, Key: values(t, "{header.Idempotency-Key}")}),
		"json":    mustReader(t, attempt.Spec{Buyer: buyer, Line: []attempt.LineSpec{{SKU: values(t, "{json.sku}"), Quantity: values(t, "1")}}}),
		"form":    mustReader(t, attempt.Spec{Buyer: buyer, Line: []attempt.LineSpec{{SKU: values(t, "{form.sku}"), Quantity: values(t, "1")}}}),
		"cookies": mustReader(t, attempt.Spec{Buyer: values(t, "{cookie.session}"), Line: []attempt.LineSpec{{SKU: values(t, "{query.sku}"), Quantity: values(t, "1")}}}),
		"bearer": mustReader(t, attempt.Spec{
			Buyer: values(t, "{jwt.sub}"), Line: []attempt.LineSpec{{SKU: values(t, "{query.sku}"), Quantity: values(t, "1")}}, Bearer: &attempt.Bearer{},
		}),
	}
	headers := []string{
		"Upgrade", "Connection", "Content-Encoding", "Content-Type", "Trailer", "Cookie", "Authorization", "X-User-Id", "X-Sku", "X-Quantity",
		"Idempotency-Key", "User-Agent", "Accept", "Referer", "X-Http-Method-Override", "Stockgate-Token", "Transfer-Encoding", "Te", "A",
	}
	texts := []string{"", "websocket", "gzip", "application/json", "application/x-www-form-urlencoded", "text/plain", "session=one", "Bearer x", "3", "a, b"}
	left := 0
	for kind, rd := range readers {
		for _, body := range []string{"", `{"sku":"a"}`, "sku=a"} {
			for _, name := range headers {
				for _, text := range texts {
					for _, twice := range []bool{false, true} {
						r := httptest.NewRequest("POST", "/order?sku=q", strings.NewReader(body))
						r.Header = http.Header{"Content-Type": {"application/json"}, "X-User-Id": {"u"}, "Cookie": {"session=two"}}
						if r.Header[name] = []string{text}; twice {
							r.Header[name] = append(r.Header[name], text)
						}
						rest := r.Clone(r.Context())
						for other := range r.Header {
							if !rd.ReadsHeader(other) || !rd.ReadsHeader(strings.ToLower(other)) {
								delete(rest.Header, other)
								left++
							}
						}
						if got, want := rd.Check(rest), rd.Check(r); !reflect.DeepEqual(got, want) {
							t.Errorf("%s: %s %q: without what is not heeded it is %+v, with it %+v", kind, name, text, got, want)
						}
						a, no := rd.Read(r, []byte(body), attempt.Env{})
						b, other := rd.Read(rest, []byte(body), attempt.Env{})
						if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(no, other) {
							t.Errorf("%s: %s %q: without what is not heeded it is %+v, %+v, with it %+v, %+v", kind, name, text, b, other, a, no)
						}
					}
				}
			}
		}
	}
	if left == 0 {
		t.Error("every header is heeded")
	}
}
