package waiting

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/internal/store/queue"
)

// OrderOf returns what is needed to make the request again as the client has sent it. The
// handlers before the gate see it once more then.
func OrderOf(r *http.Request, body []byte) *queue.Order {
	o := &queue.Order{Method: r.Method, URI: r.RequestURI, Host: r.Host, Proto: r.Proto, Remote: r.RemoteAddr, Header: r.Header, Body: body}
	if orig, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		o.Method, o.URI = orig.Method, orig.RequestURI // Caddy keeps no more of it
	}
	if t := r.TLS; t != nil {
		o.TLS = &queue.TLS{Version: t.Version, Cipher: t.CipherSuite, ServerName: t.ServerName, ALPN: t.NegotiatedProtocol, Resumed: t.DidResume}
		for _, c := range t.PeerCertificates {
			o.TLS.Peer = append(o.TLS.Peer, c.Raw)
		}
	}
	return o
}

// Dispatch is a request that was made again because the turn of its order has come.
type Dispatch struct {
	Turn  queue.Turn
	Order *queue.Order
	// Arrived is set when the gate has the request.
	Arrived bool
}

type dispatchKey struct{}

// DispatchOf returns the dispatch of a request; nil: it came over a connection.
func DispatchOf(r *http.Request) *Dispatch {
	p, _ := r.Context().Value(dispatchKey{}).(*Dispatch)
	return p
}

// Request makes the request of an order again.
func (p *Dispatch) Request(ctx context.Context) (*http.Request, error) {
	o := p.Order
	u, err := url.ParseRequestURI(o.URI)
	if err != nil {
		return nil, err
	}
	r := (&http.Request{
		Method: o.Method, URL: u, RequestURI: o.URI, Host: o.Host, Proto: o.Proto, RemoteAddr: o.Remote, Header: o.Header.Clone(),
		Body: io.NopCloser(bytes.NewReader(o.Body)), ContentLength: int64(len(o.Body)),
	}).WithContext(context.WithValue(ctx, dispatchKey{}, p))
	r.ProtoMajor, r.ProtoMinor, _ = http.ParseHTTPVersion(o.Proto)
	if strings.HasPrefix(o.Proto, "HTTP/2") {
		r.ProtoMajor, r.ProtoMinor = 2, 0
	}
	if t := o.TLS; t != nil {
		r.TLS = &tls.ConnectionState{Version: t.Version, CipherSuite: t.Cipher, ServerName: t.ServerName, NegotiatedProtocol: t.ALPN, DidResume: t.Resumed, HandshakeComplete: true}
		for _, raw := range t.Peer {
			if c, err := x509.ParseCertificate(raw); err == nil {
				r.TLS.PeerCertificates = append(r.TLS.PeerCertificates, c)
			}
		}
	}
	return r, nil
}

// Recorder takes an answer for which there is no client. Its body is bounded: a longer one is
// dropped.
type Recorder struct {
	header http.Header
	answer queue.Answer
	long   bool
}

// NewRecorder returns an empty recorder.
func NewRecorder() *Recorder { return &Recorder{header: make(http.Header)} }

// Header returns the header of the answer.
func (w *Recorder) Header() http.Header { return w.header }

// WriteHeader takes the status.
func (w *Recorder) WriteHeader(status int) {
	if status >= 200 && w.answer.Status == 0 {
		w.answer.Status, w.answer.Header = status, w.header.Clone()
	}
}

// Write takes a part of the body.
func (w *Recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.long = w.long || len(w.answer.Body)+len(b) > queue.MaxAnswer; w.long {
		w.answer.Body = nil
	} else {
		w.answer.Body = append(w.answer.Body, b...)
	}
	return len(b), nil
}

// Flush does nothing: there is no client.
func (w *Recorder) Flush() {}
