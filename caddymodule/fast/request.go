package fast

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/internal/fastpath"
)

// scratch is a request as net/http would have read it, for as long as it is judged. It is
// reused: no callee may retain any part of it.
type scratch struct {
	request   http.Request
	url       url.URL
	ctx       scratchContext
	values    [64]string
	names     [1 << 10]byte
	foresight judge.Foresight
	out       []byte // answers that were not sent yet
	// strip says that the request has headers that the guard or the gate removes.
	strip bool
}

var scratches = sync.Pool{New: func() any {
	s := new(scratch)
	s.request = *(&http.Request{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header), Body: http.NoBody,
	}).WithContext(&s.ctx)
	s.foresight.Waiter = s
	return s
}}

func takeScratch() *scratch { return scratches.Get().(*scratch) }

// giveBack clears the scratch and returns it to the pool.
func (s *scratch) giveBack() {
	clear(s.request.Header)
	s.foresight.Reset()
	s.out = nil
	s.ctx = scratchContext{}
	s.request.Method, s.request.Host, s.request.RequestURI, s.request.RemoteAddr = "", "", "", ""
	s.url = url.URL{}
	scratches.Put(s)
}

// BeforeWait sends the answers that are buffered.
func (s *scratch) BeforeWait() { s.out = s.ctx.conn.Flush(s.out) }

// AfterWait updates the time.
func (s *scratch) AfterWait(now time.Time) { s.ctx.conn.Now = now }

// lay fills in the request from a frame, without the headers that its gate does not read. It
// shares the frame's strings.
func (s *scratch) lay(f *fastpath.Request, k *cachedRoute) {
	r := &s.request
	r.Method, r.Host, r.RequestURI, r.ContentLength = f.Method, f.Host, f.Target, f.ContentLength
	s.url = k.url
	if _, query, asks := strings.Cut(f.Target, "?"); asks {
		s.url.RawQuery, s.url.ForceQuery = query, query == ""
	}
	r.URL = &s.url
	s.ctx.conn = f
	i, names := 0, s.names[:0]
	s.strip = false
	j := k.destination.judge
	all := j == nil || j.AsksIP() // a trusted proxy may send it in any header
	for name, value := range f.Fields {
		if !all && !j.ReadsHeader(name) {
			continue
		}
		s.strip = s.strip || attempt.Strippable(name)
		name, names = canonicalName(name, names)
		if before, ok := r.Header[name]; ok {
			r.Header[name] = append(before, value)
			continue
		}
		s.values[i] = value
		r.Header[name] = s.values[i : i+1 : i+1]
		i++
	}
}

// canonicalName returns a header's name as net/http writes it. A name in another form is
// rewritten and appended to room.
func canonicalName(name string, room []byte) (string, []byte) {
	upper := true
	for i := range len(name) {
		c := name[i]
		if upper && 'a' <= c && c <= 'z' || !upper && 'A' <= c && c <= 'Z' {
			return recase(name, room)
		}
		upper = c == '-'
	}
	return name, room
}

func recase(name string, room []byte) (string, []byte) {
	if cap(room)-len(room) < len(name) {
		return http.CanonicalHeaderKey(name), room
	}
	start, upper := len(room), true
	for i := range len(name) {
		c := name[i]
		switch {
		case upper && 'a' <= c && c <= 'z':
			c -= 'a' - 'A'
		case !upper && 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		room = append(room, c)
		upper = c == '-'
	}
	return unsafe.String(&room[start], len(name)), room
}

// scratchContext is the context of a scratch's request. It is canceled from the start: a
// handler that would wait for the network gives up at once, and Caddy's server gets the request.
type scratchContext struct {
	conn *fastpath.Request
	vars map[string]any // nil: none are known
}

var (
	isOver = func() <-chan struct{} {
		c := make(chan struct{})
		close(c)
		return c
	}()
	plainReplacer = caddy.NewReplacer()
)

func (*scratchContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*scratchContext) Done() <-chan struct{}       { return isOver }
func (*scratchContext) Err() error                  { return context.Canceled }

// Value returns the values that matchers and filters read.
func (c *scratchContext) Value(key any) any {
	switch key {
	case caddy.ReplacerCtxKey:
		return plainReplacer
	case caddyhttp.VarsCtxKey:
		return c.vars
	case http.LocalAddrContextKey:
		if c.conn != nil {
			return c.conn.LocalAddr()
		}
	}
	return nil
}

// memo caches what is known about one connection.
type memo struct {
	k *cachedRoute // where the current request leads

	remote string
	vars   map[string]any // with the client's IP, while it does not depend on headers
	until  time.Time      // how long vars hold

	began time.Time  // when the current request was judged first
	room  judge.Room // what it has waited for

	waiting judge.Waiting // where the attempts of the connection wait beside each other
}

// waits returns what the attempts of a connection share that wait beside each other; nil: each
// waits alone.
func (m *memo) waits(f *fastpath.Request) *judge.Waiting {
	if m.waiting.Wake = f.Wake(); m.waiting.Wake == nil {
		return nil
	}
	return &m.waiting
}

// varsFor is how long a client's IP is cached: ranges of trusted proxies may change.
const varsFor = time.Second

// client puts the client's IP into the context, as Caddy's server determines it.
func (m *memo) client(s *scratch, server *caddyhttp.Server, now time.Time) {
	if m.remote == "" {
		if addr := s.ctx.conn.RemoteAddr(); addr != nil {
			m.remote = addr.String()
		}
	}
	s.request.RemoteAddr = m.remote
	if now.Before(m.until) {
		s.ctx.vars = m.vars
		return
	}
	vars := clientVars(&http.Request{RemoteAddr: m.remote, Header: http.Header{}, URL: new(url.URL)}, server)
	if trusted, _ := vars[caddyhttp.TrustedProxyVarKey].(bool); !trusted {
		m.vars, m.until = vars, now.Add(varsFor)
	} else {
		vars = clientVars(&s.request, server)
	}
	s.ctx.vars = vars
}

func clientVars(r *http.Request, server *caddyhttp.Server) map[string]any {
	prepared := caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, server)
	vars, _ := prepared.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	return vars
}

// Interface guards
var (
	_ context.Context = (*scratchContext)(nil)
)
