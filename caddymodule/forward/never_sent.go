package forward

import (
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// neverSent reports whether the shop certainly did not get the request: no attempt to send it
// wrote any of its headers, and the last one found no server. A dial error alone proves
// nothing: net/http resends a request without a body, and reports the second error.
func (f *Forwarding) neverSent(err error) bool {
	if err == nil || f.wire.wrote.Load() {
		return false
	}
	var dial reverseproxy.DialError
	if !errors.As(err, &dial) && !noUpstream(err) {
		return false
	}
	if f.wire.seen.Load() {
		return true
	}
	// A transport that does not report to httptrace (FastCGI): certain only if the request
	// was sent once.
	retries, _ := f.Repl.Get(proxyRetriesKey)
	n, _ := retries.(int)
	return n == 0
}

// noUpstream reports whether reverse_proxy found no server for a request, and so sent nothing. Caddy
// does not export its error, and no placeholder tells: only its text does.
func noUpstream(err error) bool {
	var handler caddyhttp.HandlerError
	return errors.As(err, &handler) && handler.StatusCode == http.StatusServiceUnavailable &&
		handler.Err != nil && handler.Err.Error() == "no upstreams available"
}

// sendTrace records what is written to the shop.
type sendTrace struct {
	repl        *caddy.Replacer
	seen, wrote atomic.Bool
	sent        atomic.Int32 // requests whose headers were written
}

// watch reports each request to a trace. It drops the status of an earlier answer before
// the next request.
func (w *sendTrace) watch(t *httptrace.ClientTrace, repl *caddy.Replacer) {
	w.repl = repl
	t.GetConn, t.WroteHeaderField, t.WroteHeaders = w.begins, w.writes, w.has
}

func (w *sendTrace) begins(string) {
	w.seen.Store(true)
	Forget(w.repl)
}

// writes is called for each header before any of it can be sent. In HTTP/2, the request has
// already been sent when has is called; a caller that gives up in between must not take it
// for unsent.
func (w *sendTrace) writes(string, []string) { w.wrote.Store(true) }

// has is called when all headers of a request have been written.
func (w *sendTrace) has() {
	w.wrote.Store(true)
	w.sent.Add(1)
}
