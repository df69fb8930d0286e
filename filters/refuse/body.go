package refuse

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stockgate/stockgate/internal/sale"
)

// piece is one piece of a body: fixed text, or what fill appends from a refusal. In a
// rush nearly every answer is a refusal, so bodies are appended, not rendered.
type piece struct {
	text string
	fill func(b []byte, no *sale.Refusal, wait int64) []byte
}

// problemPieces returns the pieces of a problem document. Together they are the bytes that
// encoding/json would write. waitlist is the path at which the client may enter the waiting list; empty: none is known.
func problemPieces(reason sale.Reason, title string, status int, waitlist string) []piece {
	head, _ := json.Marshal(ProblemDocument{Type: problemType + string(reason), Title: title, Status: status}) // strings and numbers always encode
	before, _, _ := strings.Cut(string(head), `,"reason":`)
	return []piece{
		{text: before},
		{fill: func(b []byte, no *sale.Refusal, _ int64) []byte { return appendMember(b, `,"detail":`, no.Detail) }},
		{text: `,"reason":"` + string(reason) + `"`},
		{fill: func(b []byte, no *sale.Refusal, wait int64) []byte {
			if wait != 0 {
				b = strconv.AppendInt(append(b, `,"retry_after":`...), wait, 10)
			}
			b = appendMember(b, `,"sku":`, no.SKU)
			if no.Limit != nil {
				b = appendLimit(append(b, `,"limit":`...), no.Limit)
			}
			b = appendMember(b, `,"reservation":`, no.Reservation)
			return appendMember(b, `,"challenge":`, no.Challenge)
		}},
		{text: string(appendMember(nil, `,"waitlist":`, waitlist)) + "}\n"},
	}
}

// bodyPieces returns the pieces of a body that the operator wrote, with a title in a language. A placeholder in a
// filled-in value is not replaced again.
func bodyPieces(body, contentType string, reason sale.Reason, title, tag string, status int, waitlist string) []piece {
	escape := func(b []byte, s string) []byte { return append(b, s...) }
	switch {
	case strings.Contains(contentType, "json"):
		escape = AppendJSON
	case strings.Contains(contentType, "html"):
		escape = func(b []byte, s string) []byte { return append(b, htmlEscape.Replace(s)...) }
	}
	known := map[string]piece{
		"{reason}": {text: string(reason)}, "{title}": {text: string(escape(nil, title))}, "{language}": {text: tag}, "{status}": {text: strconv.Itoa(status)},
		"{waitlist}":    {text: string(escape(nil, waitlist))},
		"{sku}":         {fill: func(b []byte, no *sale.Refusal, _ int64) []byte { return escape(b, no.SKU) }},
		"{reservation}": {fill: func(b []byte, no *sale.Refusal, _ int64) []byte { return append(b, no.Reservation...) }},
		"{challenge}":   {fill: func(b []byte, no *sale.Refusal, _ int64) []byte { return append(b, no.Challenge...) }},
		"{retry_after}": {fill: func(b []byte, _ *sale.Refusal, wait int64) []byte { return strconv.AppendInt(b, wait, 10) }},
	}
	var pieces []piece
	for body != "" {
		at, next := len(body), ""
		for name := range known {
			if i := strings.Index(body, name); i >= 0 && i < at {
				at, next = i, name
			}
		}
		if at > 0 {
			pieces = append(pieces, piece{text: body[:at]})
		}
		if next != "" {
			pieces = append(pieces, known[next])
		}
		body = body[at+len(next):]
	}
	return pieces
}

var htmlEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

// fills reports whether the body depends on the refusal.
func (w *wording) fills() bool {
	return slices.ContainsFunc(w.pieces, func(p piece) bool { return p.fill != nil })
}

// appendMember appends a member of an object, unless its value is empty.
func appendMember(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return append(AppendJSON(append(append(b, name...), '"'), value), '"')
}

// AppendJSON appends a string as encoding/json writes it, without the quotes.
func AppendJSON(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s)
			return append(b, quoted[1:len(quoted)-1]...)
		}
	}
	return append(b, s...)
}

// appendLimit appends a limit as encoding/json writes it.
func appendLimit(b []byte, l *sale.Limit) []byte {
	b = append(b, `{"per":`...)
	if l.Per.IsUnion() {
		b = append(b, '[')
		for kind := range l.Per.All { // sorted: Union makes it so
			b = append(AppendJSON(append(b, '"'), kind), `",`...)
		}
		b[len(b)-1] = ']'
	} else {
		b = append(AppendJSON(append(b, '"'), string(l.Per)), '"')
	}
	b = append(AppendJSON(append(b, `,"every":"`...), l.Every), '"')
	b = strconv.AppendInt(append(b, `,"max":`...), l.Max, 10)
	b = append(AppendJSON(append(b, `,"count":"`...), l.Count), '"')
	return append(appendMember(b, `,"sku":`, l.SKU), '}')
}

// bodies are reused: a writer does not retain the bytes it is given.
var bodies = sync.Pool{New: func() any { b := make([]byte, 0, 512); return &b }}

// mostReused bounds the capacity, in bytes, of a body that is kept for reuse.
const mostReused = 16 << 10

func giveBody(b *[]byte) {
	if cap(*b) <= mostReused {
		bodies.Put(b)
	}
}

// mostNumber bounds the numbers whose header values are made once: waits up to an hour,
// and bodies up to a few KiB.
const mostNumber = 4096

var numbers = sync.OnceValue(func() []string {
	all := make([]string, mostNumber)
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return all
})

// number returns the header value of n. The value is shared: callers must not change it.
func number(n int64) []string {
	if n < 0 || n >= mostNumber {
		return []string{strconv.FormatInt(n, 10)}
	}
	return numbers()[n : n+1 : n+1]
}
