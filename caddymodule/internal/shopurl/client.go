package shopurl

import (
	"net"
	"net/http"
	"time"
)

// idleTimeout is shorter than that of servers: Node's is 5s, and a connection that the server
// closes as a question is sent fails it.
const idleTimeout = 4 * time.Second

// Repeatable lets net/http ask again where the server closes an idle connection just when the question
// arrives: a question changes nothing. The entry that says so is not sent.
func Repeatable(question *http.Request) {
	if question.Header["Idempotency-Key"] == nil {
		question.Header["Idempotency-Key"] = []string{}
	}
}

// NewClient returns a client with connections of its own, one for each concurrent question: a
// shop that hangs takes no connections from others. It follows no redirect: only the
// configured URL is trusted. maxHeader bounds the header of an answer, in bytes.
func NewClient(atOnce int, maxHeader int64) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout:    5 * time.Second,
			MaxConnsPerHost:        atOnce,
			MaxIdleConnsPerHost:    atOnce,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeader,
			DisableCompression:     true,
			ForceAttemptHTTP2:      true,
		},
	}
}
