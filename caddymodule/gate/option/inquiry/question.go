package inquiry

import (
	"hash/maphash"
	"net/http"
)

// perRequest are fields that are sent on and have another value in each request of one client:
// they name the request, and not what it is about. One that is missing here costs the shop a question.
var perRequest = map[string]bool{
	"X-Request-Id": true, "X-Correlation-Id": true, "Traceparent": true, "Tracestate": true, "Baggage": true, "B3": true,
	"X-B3-Traceid": true, "X-B3-Spanid": true, "X-B3-Parentspanid": true, "Sentry-Trace": true,
	"X-Amzn-Trace-Id": true, "X-Cloud-Trace-Context": true, "Cf-Ray": true, "X-Request-Start": true,
	"X-Datadog-Trace-Id": true, "X-Datadog-Parent-Id": true, "X-Datadog-Sampling-Priority": true, "X-Varnish": true,
	"X-Azure-Ref": true, "Fly-Request-Id": true, "Uber-Trace-Id": true,
	// of cookies, those count that name the session; balancers renew others with each answer
	"Cookie": true,
}

// seed makes the numbers of questions such that no client can choose two that are the same.
var seed = maphash.MakeSeed()

// Question stands for what a question in the name of the sender of a request depends on, besides its
// session: the ref, the claims of the buyer's token, the query, the host and the header without
// cookies. Two questions of one session and one process with the same number have the same answer, if
// nothing has changed in the shop. It allocates nothing.
func Question(r *http.Request, ref string, claims []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, text := range [...]string{ref, r.URL.RawQuery, r.Host} {
		add(&h, text)
	}
	_, _ = h.Write(claims)
	sum := h.Sum64()
	for name, values := range r.Header {
		if perRequest[name] || isDropped(name) {
			continue
		}
		h.Reset()
		add(&h, name)
		for _, value := range values {
			add(&h, value)
		}
		sum += h.Sum64() // a map has no order
	}
	return sum
}

// add hashes a text so that it cannot run into the next one: none that HTTP or a name has holds a
// zero byte.
func add(h *maphash.Hash, text string) {
	_, _ = h.WriteString(text)
	_ = h.WriteByte(0)
}
