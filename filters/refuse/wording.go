package refuse

import (
	"net/http"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/filters/language"
	"github.com/stockgate/stockgate/internal/sale"
)

// wording is an answer in one language.
type wording struct {
	title  string
	pieces []piece
	plain  []byte       // the body of a refusal without particulars, if it does not wait
	parts  *answerParts // the whole answer; nil: only net/http writes it

	// header values, made once; nil: the answer does not have the header
	language, vary []string
}

// AcceptLanguage is the header by which clients say what they read.
const AcceptLanguage = "Accept-Language"

// varies is the header Vary of what depends on the client's languages. It is shared.
var varies = []string{AcceptLanguage}

// compile makes the answer in each language.
func (a *ReasonAnswer) compile(texts *Texts) {
	a.reason = []string{string(a.Kind.Reason)}
	tags, titles := texts.of(a.Kind.Reason)
	said := a.problem || strings.Contains(a.body, "{title}") || strings.Contains(a.body, "{language}")
	if !said && !a.asError { // what the body says is the same for every client
		tags, titles = tags[:1], titles[:1]
	}
	a.offered, a.wordings = language.Offer(tags...), nil
	for i, tag := range tags {
		w := wording{title: titles[i]}
		if said {
			w.language = []string{tag}
		}
		if said && len(tags) > 1 {
			w.vary = varies
		}
		if !a.asError {
			a.compileBody(&w, tag)
		}
		a.wordings = append(a.wordings, w)
	}
}

func (a *ReasonAnswer) compileBody(w *wording, tag string) {
	if a.problem {
		w.pieces = problemPieces(a.Kind.Reason, w.title, a.Status, a.waitlist)
	} else {
		w.pieces = bodyPieces(a.body, a.contentType[0], a.Kind.Reason, w.title, tag, a.Status, a.waitlist)
	}
	if !a.Kind.Wait || !w.fills() {
		w.plain = w.appendBody(nil, &sale.Refusal{Reason: a.Kind.Reason}, 0)
	}
	w.parts = a.compileParts(w)
}

// wordingFor returns the answer in the language that a client prefers.
func (a *ReasonAnswer) wordingFor(h http.Header) *wording {
	return &a.wordings[a.offered.Choose(h[AcceptLanguage])]
}

// Title returns the sentence for a buyer whose client sent this header.
func (a *ReasonAnswer) Title(h http.Header) string { return a.wordingFor(h).title }

// Announce sets the headers that say in which language the title of an answer is.
func (a *ReasonAnswer) Announce(request, answer http.Header) { a.wordingFor(request).announce(answer) }

// announce sets the headers about the language of an answer.
func (w *wording) announce(h http.Header) {
	if w.language != nil {
		h["Content-Language"] = w.language
	}
	switch {
	case w.vary == nil || slices.Contains(h["Vary"], AcceptLanguage):
	case len(h["Vary"]) == 0:
		h["Vary"] = w.vary
	default: // it varies for another handler too
		h["Vary"] = slices.Concat(h["Vary"], w.vary)
	}
}

// appendBody appends the body of a refusal.
func (w *wording) appendBody(b []byte, no *sale.Refusal, wait int64) []byte {
	for i := range w.pieces {
		if p := &w.pieces[i]; p.fill != nil {
			b = p.fill(b, no, wait)
		} else {
			b = append(b, p.text...)
		}
	}
	return b
}

// bodyOf returns the body of a refusal. The caller passes reused to giveBody after use,
// unless it is nil.
func (w *wording) bodyOf(no *sale.Refusal, wait int64) (body []byte, reused *[]byte) {
	if w.plain != nil && no.Detail == "" && no.SKU == "" && no.Limit == nil && no.Reservation == "" && no.Challenge == "" {
		return w.plain, nil
	}
	reused = bodies.Get().(*[]byte)
	*reused = w.appendBody((*reused)[:0], no, wait)
	return *reused, reused
}
