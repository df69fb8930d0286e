package waitlist

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/filters/refuse"
)

// AsksMore reports whether by a header field a client waits for news, or names what it knows: AppendPlace does not answer
// it.
func AsksMore(name, value string) bool {
	switch {
	case len(name) == len("Prefer") && strings.EqualFold(name, "Prefer"):
		return true
	case len(name) == len("Accept") && strings.EqualFold(name, "Accept"):
		return namesEvents(value)
	}
	return len(name) == len("If-None-Match") && strings.EqualFold(name, "If-None-Match")
}

// AppendPlace appends the answer to a request for a place, byte for byte as net/http writes the handler's. False:
// the handler has to answer. It allocates nothing.
func (l *WaitlistHandler) AppendPlace(b []byte, r *http.Request, now time.Time) ([]byte, bool) {
	d := l.App.Runtime()
	if d == nil || d.ReadyAt(now) != nil || d.IsLocal() && !judge.FromThisMachine(r) {
		return b, false
	}
	a, ok := askerAt(d.Edge, r.URL.Path)
	if !ok {
		return b, false
	}
	s := a.look()
	if !s.known || s.unsure {
		return b, false
	}
	var room [mostTold]byte
	body := append(s.append(room[:0]), '\n')
	b = append(b, "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\nContent-Type: application/json\r\nEtag: W/\""...)
	b = append(s.appendTag(b), "\"\r\n"...)
	if s.people > 0 {
		b = append(strconv.AppendInt(append(b, "Retry-After: "...), pollIn(s.people), 10), "\r\n"...)
	}
	b = append(refuse.AppendDate(append(b, "Server: Caddy\r\nDate: "...), now), "\r\n\r\n"...)
	if r.Method != http.MethodHead {
		b = append(b, body...)
	}
	return b, true
}
