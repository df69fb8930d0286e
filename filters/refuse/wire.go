package refuse

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

// answerParts are the fixed pieces of the answer to one reason, as net/http would write it.
// What is between them differs from one refusal to the next.
type answerParts struct {
	first  []byte // to the value of Content-Length
	second []byte // from there on, with Content-Type
	third  []byte // Server
	last   []byte // from Stockgate-Refusal on
}

// compileParts makes the pieces in a wording. It returns nil where net/http has to write the answer,
// because it is not a plain answer with a body.
func (a *ReasonAnswer) compileParts(said *wording) *answerParts {
	if a.Kind.Status == http.StatusRequestEntityTooLarge || a.Status == http.StatusNoContent || a.Status == http.StatusNotModified {
		return nil
	}
	text := http.StatusText(a.Status)
	if text == "" {
		text = fmt.Sprintf("status code %d", a.Status)
	}
	w := &answerParts{first: fmt.Appendf(nil, "HTTP/1.1 %03d %s\r\n", a.Status, text), second: []byte("\r\n")}
	w.first = append(appendFields(w.first, http.Header{"Cache-Control": NoStore, "Content-Language": said.language}), "Content-Length: "...)
	w.second = appendFields(w.second, http.Header{"Content-Type": a.contentType})
	w.third = appendFields(w.third, http.Header{"Server": {"Caddy"}})
	w.last = appendFields(w.last, http.Header{Header: a.reason, "Vary": said.vary})
	return w
}

// appendFields appends header fields as net/http writes them.
func appendFields(b []byte, h http.Header) []byte {
	var buf bytes.Buffer
	_ = h.Write(&buf) // a buffer takes everything
	return append(b, buf.Bytes()...)
}

// AppendAnswer appends the bytes that net/http would write for this refusal of a request, and returns the
// answer that it used. over is the rate that refuses and wait its
// wait; nil: no rate refuses. It returns a nil answer where net/http has to write.
func (f *Refuser) AppendAnswer(b []byte, no *sale.Refusal, over *RateAnswers, wait time.Duration, r *http.Request, now time.Time) ([]byte, *ReasonAnswer) {
	a := f.answers[no.Reason]
	if a == nil {
		return b, nil
	}
	said := a.wordingFor(r.Header)
	parts := said.parts
	if parts == nil {
		return b, nil
	}
	after := retryAfter(a.Kind, no)
	body, reused := said.bodyOf(no, after)
	b = strconv.AppendInt(append(b, parts.first...), int64(len(body)), 10)
	b = append(b, parts.second...)
	if over != nil {
		b = append(append(b, RateLimitHeader+": "...), over.name...)
		b = strconv.AppendInt(append(b, ";r=0;t="...), WaitSeconds(wait), 10)
		b = append(append(append(b, "\r\n"+RatePolicyHeader+": "...), over.policy[0]...), "\r\n"...)
	}
	if after > 0 {
		b = append(strconv.AppendInt(append(b, "Retry-After: "...), after, 10), "\r\n"...)
	}
	b = append(b, parts.third...)
	if no.Challenge != "" {
		b = append(append(append(b, ChallengeHeader+": "...), no.Challenge...), "\r\n"...)
	}
	b = append(b, parts.last...)
	if f.AsksToken && a.Status == http.StatusUnauthorized {
		b = appendFields(b, http.Header{"Www-Authenticate": authenticate(no)})
	}
	b = append(AppendDate(append(b, "Date: "...), now), "\r\n\r\n"...)
	if r.Method != http.MethodHead {
		b = append(b, body...)
	}
	if reused != nil {
		giveBody(reused)
	}
	return b, a
}

// date is the value of the header Date in one second.
type date struct {
	second int64
	text   string
}

var dates atomic.Pointer[date]

// AppendDate appends the value of the header Date.
func AppendDate(b []byte, now time.Time) []byte {
	d := dates.Load()
	if d == nil || d.second != now.Unix() {
		d = &date{now.Unix(), now.UTC().Format(http.TimeFormat)}
		dates.Store(d)
	}
	return append(b, d.text...)
}
