package caddymodule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"unsafe"

	"github.com/stockgate/stockgate/refuse"
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
	plain   []byte       // the body of a refusal without particulars, if it does not wait
	parts   *answerParts // the whole answer; nil: only net/http writes it
	index   int          // of kind in sale.Kinds

	// header values, made once: net/http only reads them
	reason, contentType []string
}

var (
	noStore       = []string{"no-store"}
	closeConn     = []string{"close"}
	problemType   = "urn:stockgate:refusal:"
	jsonProblem   = "application/problem+json"
	refusalHeader = "Stockgate-Refusal"
	// challengeHeader has the task of a refusal that asks for work.
	challengeHeader = "Stockgate-Challenge"
)

// Refusals that are made once, because many requests get them. Nobody may change them.
var (
	// refuseUnavailable refuses what cannot be decided now.
	refuseUnavailable = sale.Refuse(sale.Unavailable)
	// refuseDuplicate refuses an attempt like one that is under way.
	refuseDuplicate = sale.Refuse(sale.Duplicate)
	// refuseBusy refuses where as many attempts are under way as may be.
	refuseBusy = sale.Refuse(sale.Busy)
)

// newRefuser compiles the styles. One that names a reason counts more than `*`; of
// two alike the last one counts.
func newRefuser(styles []RefusalStyle) (*refuser, error) {
	f := &refuser{answers: make(map[sale.Reason]*answerNo, len(sale.Kinds))}
	for i, k := range sale.Kinds {
		f.answers[k.Reason] = &answerNo{kind: k, index: i, status: k.Status, problem: true, contentType: []string{jsonProblem}}
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
	*a = answerNo{kind: a.kind, index: a.index, status: a.kind.Status, asError: style == "error", problem: style == "problem", body: s.Body}
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

// answer is the one to a reason; unavailable for one that is not known.
func (f *refuser) answer(reason sale.Reason) *answerNo {
	if a, ok := f.answers[reason]; ok {
		return a
	}
	return f.answers[sale.Unavailable]
}

// write answers a refusal with a, which is its answer. false: only the header is set,
// because the status is handed to handle_errors.
func (f *refuser) write(a *answerNo, w http.ResponseWriter, r *http.Request, no *sale.Refusal) bool {
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
		return false
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
	return true
}

// response is the refusal as the answer of an upstream: an error to every proxy, whatever
// the operator's own style says.
func (f *refuser) response(no *sale.Refusal) (status int, h http.Header, body []byte) {
	a := f.answer(no.Reason)
	status, body = a.status, a.appendBody(nil, no, 0)
	if a.asError || status < 400 { // of the gate's own style only what is an error to every proxy
		status, body = http.StatusBadRequest, nil
	}
	h = http.Header{refusalHeader: a.reason, "Cache-Control": noStore, "Content-Type": a.contentType}
	if len(body) == 0 {
		delete(h, "Content-Type")
	}
	return status, h, body
}

// problem is what a refusal would say, without the spread of its Retry-After.
func (f *refuser) problem(no *sale.Refusal) *refuse.Problem {
	a := f.answer(no.Reason)
	return &refuse.Problem{
		Type: problemType + string(a.kind.Reason), Title: a.kind.Title, Status: a.status, Detail: no.Detail,
		Reason: a.kind.Reason, RetryAfter: no.RetryAfter, SKU: no.SKU, Limit: no.Limit, Reservation: no.Reservation,
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
