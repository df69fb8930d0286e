package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/sale"
)

// RefusalStyle changes how some refusals look.
type RefusalStyle struct {
	// Reasons are those it is about; `*` is all.
	Reasons []string `json:"reasons"`
	// Style is problem (RFC 9457, the default), body (Status and Body) or error
	// (handed to handle_errors: slow).
	Style string `json:"style,omitempty"`
	// Status is the status of the answer. Default: the reason's own.
	Status int `json:"status,omitempty"`
	// Body may contain {reason}, {title}, {status}, {sku}, {retry_after}, {reservation} and {challenge}.
	Body string `json:"body,omitempty"`
	// ContentType of the body. Default: by its first character: application/json, text/html or text/plain.
	ContentType string `json:"content_type,omitempty"`
}

// refuser answers refusals. What can be prepared is prepared: a refusal writes
// bytes, it returns no error, because Caddy encodes the whole request for each.
type refuser struct {
	answers map[sale.Reason]*answerNo
	// asksToken: a 401 asks for a bearer token.
	asksToken bool
}

// answerNo is the answer to one reason.
type answerNo struct {
	kind    sale.Kind
	status  int
	asError bool
	problem bool
	body    string // template, or the whole body where nothing is to be filled in
	pieces  []piece
	plain   []byte                   // the body of a refusal without particulars, if it does not wait
	parts   *answerParts             // the whole answer; nil: only net/http writes it
	counter atomic.Pointer[refusals] // of the sale that was first refused with it; nil: none was

	// header values, made once: net/http only reads them
	reason, contentType []string
}

var (
	noStore       = []string{"no-store"}
	closeConn     = []string{"close"}
	problemType   = "urn:stockgate:refusal:"
	jsonProblem   = "application/problem+json"
	refusalHeader = "Stockgate-Refusal"
)

// newRefuser compiles the styles. One that names a reason counts more than `*`; of
// two alike the last one counts.
func newRefuser(styles []RefusalStyle) (*refuser, error) {
	f := &refuser{answers: make(map[sale.Reason]*answerNo, len(sale.Kinds))}
	for _, k := range sale.Kinds {
		f.answers[k.Reason] = &answerNo{kind: k, status: k.Status, problem: true, contentType: []string{jsonProblem}}
	}
	for _, all := range []bool{true, false} {
		for i, s := range styles {
			if slices.Contains(s.Reasons, "*") != all {
				continue
			}
			if err := f.apply(s); err != nil {
				return nil, fmt.Errorf("refuse, number %d: %w", i+1, err)
			}
		}
	}
	for _, a := range f.answers {
		a.compile()
	}
	return f, nil
}

func (f *refuser) apply(s RefusalStyle) error {
	if len(s.Reasons) == 0 {
		return errors.New("no reason is named; write * for all")
	}
	style := s.Style
	if style == "" {
		style = "problem"
		if s.Body != "" {
			style = "body"
		}
	}
	switch {
	case style != "problem" && style != "body" && style != "error":
		return fmt.Errorf("style %q: there are problem, body and error", s.Style)
	case s.Body != "" && style != "body":
		return fmt.Errorf("style %s has no body of yours", style)
	case s.Status != 0 && (s.Status < 200 || s.Status > 599):
		return fmt.Errorf("status %d is outside 200 to 599", s.Status)
	}
	for _, name := range s.Reasons {
		if name == "*" {
			for _, a := range f.answers {
				a.style(style, s)
			}
			continue
		}
		a, ok := f.answers[sale.Reason(name)]
		if !ok {
			return fmt.Errorf("there is no reason %q", name)
		}
		a.style(style, s)
	}
	return nil
}

func (a *answerNo) style(style string, s RefusalStyle) {
	*a = answerNo{kind: a.kind, status: a.kind.Status, asError: style == "error", problem: style == "problem", body: s.Body}
	if s.Status != 0 {
		a.status = s.Status
	}
	contentType := s.ContentType
	switch first := strings.TrimSpace(s.Body); {
	case contentType != "":
	case a.problem:
		contentType = jsonProblem
	case strings.HasPrefix(first, "{") || strings.HasPrefix(first, "["):
		contentType = "application/json"
	case strings.HasPrefix(first, "<"):
		contentType = "text/html; charset=utf-8"
	default:
		contentType = "text/plain; charset=utf-8"
	}
	a.contentType = []string{contentType}
}

func (a *answerNo) compile() {
	a.reason = []string{string(a.kind.Reason)}
	if a.asError {
		return
	}
	if a.problem {
		a.pieces = problemPieces(a.kind, a.status)
	} else {
		a.pieces = bodyPieces(a.body, a.contentType[0], a.kind, a.status)
	}
	if !a.kind.Wait || !a.fills() {
		a.plain = a.appendBody(nil, &sale.Refusal{Reason: a.kind.Reason}, 0)
	}
	a.parts = a.compileParts()
}

// refuse answers a refusal.
func (f *refuser) refuse(w http.ResponseWriter, r *http.Request, no *sale.Refusal) error {
	a, ok := f.answers[no.Reason]
	if !ok {
		a = f.answers[sale.Unavailable]
	}
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		publish(r, repl, published{verdict: "refused", reason: a.kind.Reason})
	}
	wait := retryAfter(a.kind, no)
	h := w.Header()
	h[refusalHeader] = a.reason
	h["Cache-Control"] = noStore
	if wait > 0 {
		h["Retry-After"] = number(wait)
	}
	if a.kind.Status == http.StatusRequestEntityTooLarge && r.ProtoMajor == 1 {
		h["Connection"] = closeConn // the rest of the body is not read
	}
	if no.Challenge != "" {
		h[challengeHeader] = unsafe.Slice(&no.Challenge, 1)
	}
	if f.asksToken && a.status == http.StatusUnauthorized {
		h["Www-Authenticate"] = authenticate(no)
	}
	if a.asError {
		dropPayload(r)
		return caddyhttp.Error(a.status, fmt.Errorf("stockgate refused the attempt: %s", a.kind.Reason))
	}
	body, reused := a.bodyOf(no, wait)
	if reused != nil {
		defer giveBody(reused)
	}
	h["Content-Type"] = a.contentType
	h["Content-Length"] = number(int64(len(body)))
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // who has left needs no answer
	}
	return nil
}

// dropPayload makes a bodiless GET without a query of a request before Caddy's
// error routes see it: they may proxy, and no order may reach the shop past the gate.
func dropPayload(r *http.Request) {
	// Caddy gives the request its original method and URL back for error routes.
	if orig, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		orig.Method = http.MethodGet
		if orig.URL != nil {
			orig.URL.RawQuery, orig.URL.ForceQuery = "", false
		}
		*r = *r.WithContext(context.WithValue(r.Context(), caddyhttp.OriginalRequestCtxKey, orig))
	}
	r.Method = http.MethodGet
	r.URL.RawQuery, r.URL.ForceQuery = "", false
	if r.Body != nil {
		_ = r.Body.Close() // a handler around this one may have a copy of the request
	}
	r.Body = http.NoBody
	r.GetBody = nil
	r.ContentLength = 0
	r.TransferEncoding = nil
	r.Trailer = nil
	attempt.StripMethodOverride(r.Header)
	for _, name := range []string{"Content-Type", "Content-Length", "Transfer-Encoding", "Trailer"} {
		r.Header.Del(name)
	}
}

// jitter is a variable for tests that compare answers.
var jitter = rand.Int64N

// retryAfter is in seconds, 0: none. It is spread, because everybody coming back
// in the same second is the next stampede.
func retryAfter(k sale.Kind, no *sale.Refusal) int64 {
	wait, spread := no.RetryAfter, int64(2)
	if wait == 0 {
		switch {
		case !k.Wait || k.Reason == sale.NotStarted: // nobody knows when
			return 0
		case k.Reason == sale.PausedSale:
			wait, spread = 10, 10
		default:
			wait = 1
		}
	}
	return wait + jitter(spread+1)
}
