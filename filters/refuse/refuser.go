package refuse

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"unsafe"

	"github.com/stockgate/stockgate/filters/language"
	"github.com/stockgate/stockgate/internal/sale"
)

// Appearance changes how some refusals look.
type Appearance struct {
	// Reasons are the reasons that this style applies to; `*` is all of them.
	Reasons []string `json:"reasons"`
	// Style is problem (RFC 9457, the default), body (Status and Body) or error
	// (handed to handle_errors: slow).
	Style string `json:"style,omitempty"`
	// Status is the status of the answer. Default: the reason's own.
	Status int `json:"status,omitempty"`
	// Body of the answer. It may contain {reason}, {title} and {language} (of the title), {status}, {sku}, {retry_after}, {reservation},
	// {challenge} and {waitlist}, the path at which clients enter.
	Body string `json:"body,omitempty"`
	// ContentType of the body. Default: application/json, text/html or text/plain, by the
	// body's first character.
	ContentType string `json:"content_type,omitempty"`
}

// Refuser answers refusals. Answers are compiled in advance. A refusal writes bytes and
// returns no error, because Caddy encodes the whole request into each error.
type Refuser struct {
	answers map[sale.Reason]*ReasonAnswer
	texts   *Texts
	// Doubt has the title of in_doubt for a problem document that no style changes.
	Doubt *ReasonAnswer
	// AsksToken makes a 401 ask for a bearer token.
	AsksToken bool
}

// ReasonAnswer is the answer to one reason.
type ReasonAnswer struct {
	Kind    sale.Kind
	Status  int
	asError bool
	problem bool
	body    string // template, or the whole body where nothing is to be filled in
	// offered are the languages of a wording each; of a body without a title there is one wording, of no language.
	offered  *language.Offered
	wordings []wording
	Index    int // of kind in sale.Kinds
	// waitlist is the path at which clients may enter the waiting list; empty: none is known, or another reason.
	waitlist string

	// header values, made once: net/http only reads them
	reason, contentType []string
}

var (
	NoStore     = []string{"no-store"}
	closeConn   = []string{"close"}
	problemType = "urn:stockgate:refusal:"
	ProblemJSON = "application/problem+json"
	Header      = "Stockgate-Refusal"
	// ChallengeHeader carries the task of a refusal that asks for proof of work.
	ChallengeHeader = "Stockgate-Challenge"
)

// Refusals that are made once, because many requests get them. Callers must not change them.
var (
	// Unavailable refuses an attempt that cannot be decided now.
	Unavailable = sale.Refuse(sale.Unavailable)
	// Duplicate refuses an attempt that equals one in flight.
	Duplicate = sale.Refuse(sale.Duplicate)
	// Pending refuses an attempt while another order of its buyer, or another request of its session, is under way.
	Pending = sale.Refuse(sale.Pending)
	// Busy refuses an attempt that finds no in-flight slot.
	Busy = sale.Refuse(sale.Busy)
	// NotSent refuses an order that waited for the shop and did not get there.
	NotSent = sale.Refuse(sale.NotSent)
	// ClosedDoor refuses a request to a way to the shop that is closed.
	ClosedDoor = sale.Refuse(sale.ClosedDoor)
)

// New compiles the styles, with these texts; nil: the built-in ones. A style that names a reason takes
// precedence over `*`; of two styles that name the same reason the last one applies.
func New(styles []Appearance, texts *Texts) (*Refuser, error) {
	if texts == nil {
		texts = builtIn
	}
	f := &Refuser{answers: make(map[sale.Reason]*ReasonAnswer, len(sale.Kinds)), texts: texts}
	for i, k := range sale.Kinds {
		f.answers[k.Reason] = &ReasonAnswer{Kind: k, Index: i, Status: k.Status, problem: true, contentType: []string{ProblemJSON}}
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
	kind, _ := sale.KindOf(sale.InDoubt)
	f.Doubt = &ReasonAnswer{Kind: kind, Status: kind.Status, problem: true, contentType: []string{ProblemJSON}}
	f.Doubt.compile(texts)
	for _, a := range f.answers {
		a.compile(texts)
	}
	return f, nil
}

func (f *Refuser) apply(s Appearance) error {
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

func (a *ReasonAnswer) style(style string, s Appearance) {
	*a = ReasonAnswer{Kind: a.Kind, Index: a.Index, Status: a.Kind.Status, asError: style == "error", problem: style == "problem", body: s.Body}
	if s.Status != 0 {
		a.Status = s.Status
	}
	contentType := s.ContentType
	switch first := strings.TrimSpace(s.Body); {
	case contentType != "":
	case a.problem:
		contentType = ProblemJSON
	case strings.HasPrefix(first, "{") || strings.HasPrefix(first, "["):
		contentType = "application/json"
	case strings.HasPrefix(first, "<"):
		contentType = "text/html; charset=utf-8"
	default:
		contentType = "text/plain; charset=utf-8"
	}
	a.contentType = []string{contentType}
}

// NameWaitlist makes refusals of clients whose turn it is not say at which path they may enter; empty: they do not. It
// must come before the first refusal.
func (f *Refuser) NameWaitlist(path string) {
	a := f.answers[sale.NotYourTurn]
	if a.waitlist == path {
		return
	}
	a.waitlist = path
	a.compile(f.texts)
}

// For returns the answer to a reason; to an unknown reason it returns that of unavailable.
func (f *Refuser) For(reason sale.Reason) *ReasonAnswer {
	if a, ok := f.answers[reason]; ok {
		return a
	}
	return f.answers[sale.Unavailable]
}

// Write answers the refusal no with a, the answer to its reason. It returns false where it
// has set the header only, because the status is handed to handle_errors.
func (f *Refuser) Write(a *ReasonAnswer, w http.ResponseWriter, r *http.Request, no *sale.Refusal) bool {
	wait := retryAfter(a.Kind, no)
	h := w.Header()
	h[Header] = a.reason
	h["Cache-Control"] = NoStore
	if wait > 0 {
		h["Retry-After"] = number(wait)
	}
	if a.Kind.Status == http.StatusRequestEntityTooLarge && r.ProtoMajor == 1 {
		h["Connection"] = closeConn // the rest of the body is not read
	}
	if no.Challenge != "" {
		h[ChallengeHeader] = unsafe.Slice(&no.Challenge, 1)
	}
	if f.AsksToken && a.Status == http.StatusUnauthorized {
		h["Www-Authenticate"] = authenticate(no)
	}
	if a.asError {
		return false
	}
	said := a.wordingFor(r.Header)
	said.announce(h)
	body, reused := said.bodyOf(no, wait)
	if reused != nil {
		defer giveBody(reused)
	}
	h["Content-Type"] = a.contentType
	h["Content-Length"] = number(int64(len(body)))
	w.WriteHeader(a.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that has disconnected needs no answer
	}
	return true
}

// Response returns the refusal of a request as the answer of an upstream. Its status is an error to every
// proxy, whatever the operator's style is.
func (f *Refuser) Response(r *http.Request, no *sale.Refusal) (status int, h http.Header, body []byte) {
	a := f.For(no.Reason)
	said := a.wordingFor(r.Header)
	status, body = a.Status, said.appendBody(nil, no, 0)
	if a.asError || status < 400 { // a style applies only if every proxy takes its status for an error
		status, body = http.StatusBadRequest, nil
	}
	h = http.Header{Header: a.reason, "Cache-Control": NoStore, "Content-Type": a.contentType}
	if len(body) == 0 {
		delete(h, "Content-Type")
		return status, h, nil
	}
	said.announce(h)
	return status, h, body
}

// Problem returns the problem document for the refusal of a request, without the spread of its Retry-After.
func (f *Refuser) Problem(r *http.Request, no *sale.Refusal) *ProblemDocument {
	a := f.For(no.Reason)
	return &ProblemDocument{
		Type: problemType + string(a.Kind.Reason), Title: a.Title(r.Header), Status: a.Status, Detail: no.Detail,
		Reason: a.Kind.Reason, RetryAfter: no.RetryAfter, SKU: no.SKU, Limit: no.Limit, Reservation: no.Reservation, Waitlist: a.waitlist,
	}
}

// Spread returns a random number, less than n, by which the waits of clients differ.
func Spread(n int64) int64 { return rand.Int64N(n) }

// retryAfter returns how many seconds the client should wait; 0: no Retry-After. The wait is
// spread: clients that all return in the same second are the next stampede.
func retryAfter(k sale.Kind, no *sale.Refusal) int64 {
	wait, spread := no.RetryAfter, int64(2)
	if wait == 0 {
		switch {
		case !k.Wait || k.Reason == sale.NotStarted: // the start is not known
			return 0
		case k.Reason == sale.PausedSale:
			wait, spread = 10, 10
		default:
			wait = 1
		}
	}
	return wait + Spread(spread+1)
}
