package fast

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/internal/accesslog"
	"github.com/stockgate/stockgate/internal/fastpath"
)

// record writes a refusal to the access log, if its gate wants lines and chance chooses this one.
// answer is given as HTTP/1.1. The request began at that time.
func (p *RoutePlan) record(f *fastpath.Request, j *judge.Judge, answer []byte, status int, began time.Time) {
	share := j.FastLogged()
	if p.access == nil || !share.Draw() {
		return
	}
	header, body := readAnswer(answer)
	p.access.Write(p.whole(f), &accesslog.Response{
		Status: status, Header: header, Size: len(body), Read: len(f.Body), Duration: time.Since(began),
	}, share)
}

// whole is a request as Caddy's server would have prepared it, with all its headers. Nothing of it
// lies in the connection's buffer.
func (p *RoutePlan) whole(f *fastpath.Request) *http.Request {
	target := strings.Clone(f.Target)
	u, err := url.ParseRequestURI(target)
	if err != nil {
		u = new(url.URL) // the plan has parsed its path, and the log takes the target
	}
	r := &http.Request{
		Method: strings.Clone(f.Method), Host: strings.Clone(f.Host), RequestURI: target, URL: u,
		Proto: f.Proto(), Header: make(http.Header), Body: http.NoBody, TLS: f.TLS,
	}
	if addr := f.RemoteAddr(); addr != nil {
		r.RemoteAddr = addr.String()
	}
	for name, value := range f.Fields {
		name = textproto.CanonicalMIMEHeaderKey(strings.Clone(name))
		r.Header[name] = append(r.Header[name], strings.Clone(value))
	}
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, p.server)
}

// readAnswer returns the body of an answer and those of its headers that handlers set: net/http
// adds the others when it writes them.
func readAnswer(answer []byte) (http.Header, []byte) {
	header := make(http.Header)
	head, body, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
	_, lines, _ := bytes.Cut(head, []byte("\r\n"))
	for line := range bytes.SplitSeq(lines, []byte("\r\n")) {
		name, value, _ := strings.Cut(string(line), ": ")
		if name != "Date" {
			header[name] = append(header[name], value)
		}
	}
	return header, body
}
