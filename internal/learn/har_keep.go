package learn

import (
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// keep adds an entry, unless it is of a kind that tells nothing about a purchase.
func (h *harReader) keep(e *harEntry) error {
	u, err := url.Parse(e.Request.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || e.Request.Method == http.MethodOptions {
		return nil // data:, blob:, ws:, chrome-extension:, preflights
	}
	if e.Request.Method == http.MethodGet && tellsNothing(e.Response.Content.MimeType) {
		return nil
	}
	if len(h.rec.Exchanges) == maxExchanges {
		return fmt.Errorf("it has more than %d requests beside images and scripts: record one purchase", maxExchanges)
	}
	if h.heads += e.headSize(); h.heads > maxKept {
		return errors.New("the headers of its requests are too long: record one purchase")
	}
	x := &Exchange{File: h.rec.File, Entry: h.entries, Method: strings.ToUpper(e.Request.Method), URL: u, Status: e.Response.Status}
	x.Header, x.AnswerHeader = headerOf(e.Request.Headers), headerOf(e.Response.Headers)
	addCookies(x.Header, e.Request.Cookies)
	if x.AnswerHeader.Get("Location") == "" && e.Response.RedirectURL != "" {
		x.AnswerHeader.Set("Location", e.Response.RedirectURL)
	}
	if x.AnswerHeader.Get("Content-Type") == "" && e.Response.Content.MimeType != "" {
		x.AnswerHeader.Set("Content-Type", e.Response.Content.MimeType)
	}
	h.addBody(x, e)
	h.addAnswer(x, e)
	h.rec.Exchanges = append(h.rec.Exchanges, x)
	return nil
}

// addBody keeps the request's body. Some browsers record a form as a list of its fields only.
func (h *harReader) addBody(x *Exchange, e *harEntry) {
	post := e.Request.PostData
	if post == nil {
		x.LacksBody = e.Request.BodySize > 0
		return
	}
	text := post.Text
	if text == "" && len(post.Params) > 0 {
		text = formOf(x.Header, post.MimeType, post.Params)
	}
	if x.Header.Get("Content-Type") == "" && post.MimeType != "" {
		x.Header.Set("Content-Type", post.MimeType)
	}
	x.Body, x.LacksBody = h.take(text, "", x, "request")
	x.LacksBody = x.LacksBody || text == "" && e.Request.BodySize > 0
}

func (h *harReader) addAnswer(x *Exchange, e *harEntry) {
	c := e.Response.Content
	x.Answer, x.LacksAnswer = h.take(c.Text, c.Encoding, x, "answer")
	x.LacksAnswer = x.LacksAnswer || c.Text == "" && c.Size > 0
}

// take returns a body within the bounds.
func (h *harReader) take(text, encoding string, x *Exchange, of string) (body []byte, dropped bool) {
	if text == "" {
		return nil, false
	}
	if len(text) > maxBody || h.kept+len(text) > maxKept || strings.HasSuffix(text, cutMark) {
		h.note("entry %d: the body of its %s is too long and was not read", x.Entry, of)
		return nil, true
	}
	h.kept += len(text)
	if encoding == "base64" {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			h.note("entry %d: the body of its %s is no base64 and was not read", x.Entry, of)
			return nil, true
		}
		return raw, false
	}
	return []byte(text), false
}

// maxNotes bounds the notes of one recording.
const maxNotes = 20

func (h *harReader) note(format string, args ...any) {
	if len(h.rec.Notes) < maxNotes {
		h.rec.Notes = append(h.rec.Notes, h.rec.File+" "+fmt.Sprintf(format, args...))
	}
}

// headSize returns the bytes of what is kept of an entry beside its bodies.
func (e *harEntry) headSize() int {
	n := len(e.Request.URL) + len(e.Request.Method) + len(e.Response.RedirectURL)
	for _, pairs := range [][]harPair{e.Request.Headers, e.Request.Cookies, e.Response.Headers} {
		for _, p := range pairs {
			n += len(p.Name) + len(p.Value)
		}
	}
	return n
}

// tellsNothing reports whether answers of a media type never tell about a purchase.
func tellsNothing(contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	for _, prefix := range []string{"image/", "font/", "video/", "audio/", "text/css", "text/javascript", "application/javascript", "application/x-javascript", "application/wasm", "application/font"} {
		if strings.HasPrefix(kind, prefix) {
			return true
		}
	}
	return false
}
