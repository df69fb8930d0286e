package learn

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// Bounds of what is kept of a recording.
const (
	maxEntry     = 8 << 20   // bytes of one entry, after strings are shortened
	maxBody      = 256 << 10 // bytes of one body
	maxKept      = 32 << 20  // bytes of all bodies of one recording
	maxExchanges = 5000
)

// Exchange is a recorded request with its answer.
type Exchange struct {
	File  string // base name of the recording
	Entry int    // place in the recording, from 1

	Method string
	URL    *url.URL
	Header http.Header
	Body   []byte
	// LacksBody reports that the request had a body which the recording lacks, or which is too long.
	LacksBody bool

	Status       int
	AnswerHeader http.Header
	Answer       []byte
	LacksAnswer  bool // like LacksBody

	shown string // the path as it may be written
}

// Recording is what one file has, without images, styles, scripts and the like.
type Recording struct {
	File      string // base name
	Exchanges []*Exchange
	Notes     []string // what was left out
}

// harEntry is an entry of HAR 1.2, as far as it is read.
type harEntry struct {
	Request struct {
		Method   string    `json:"method"`
		URL      string    `json:"url"`
		Headers  []harPair `json:"headers"`
		Cookies  []harPair `json:"cookies"`
		BodySize int64     `json:"bodySize"`
		PostData *struct {
			MimeType string    `json:"mimeType"`
			Text     string    `json:"text"`
			Params   []harPair `json:"params"`
		} `json:"postData"`
	} `json:"request"`
	Response struct {
		Status      int       `json:"status"`
		Headers     []harPair `json:"headers"`
		RedirectURL string    `json:"redirectURL"`
		Content     struct {
			Size     int64  `json:"size"`
			MimeType string `json:"mimeType"`
			Text     string `json:"text"`
			Encoding string `json:"encoding"`
		} `json:"content"`
	} `json:"response"`
}

type harPair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Read reads a recording, one entry at a time. Its memory is bounded however long the file is.
// The errors say what is wrong with the file, and repeat none of its values.
func Read(file string, r io.Reader) (*Recording, error) {
	bounded := &entryReader{r: newShortener(r)}
	h := &harReader{dec: json.NewDecoder(bounded), bound: bounded, rec: &Recording{File: file}}
	if err := h.read(); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("%s ends in the middle, after %d entries: export the recording again", file, h.entries)
		}
		return nil, fmt.Errorf("%s, after %d entries: %w", file, h.entries, plain(err))
	}
	return h.rec, nil
}

// plain drops what an error of encoding/json quotes.
func plain(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s of an entry is not what HAR 1.2 has there", e.Field)
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return errors.New("it is not JSON: export the recording from the network tab of the browser's developer tools, as HAR")
	}
	return err
}

type harReader struct {
	dec     *json.Decoder
	bound   *entryReader
	rec     *Recording
	entries int
	kept    int // bytes of bodies
	heads   int // bytes of URLs and headers
}

var errNoHAR = errors.New("it is not a HAR file, which is an object with log.entries: export the recording from the network tab of the browser's developer tools")

// read finds log.entries. Entries may be the only member that is not skipped.
func (h *harReader) read() error {
	found := false
	err := h.members(func(name string) (bool, error) {
		if name != "log" {
			return false, nil
		}
		return true, h.members(func(name string) (bool, error) {
			if name != "entries" || found {
				return false, nil
			}
			found = true
			return true, h.list()
		})
	})
	if err == nil && !found {
		return errNoHAR
	}
	return err
}

// members reads an object; read returns false for a member that is skipped.
func (h *harReader) members(read func(name string) (bool, error)) error {
	if t, err := h.token(); err != nil {
		return err
	} else if t != json.Delim('{') {
		return errNoHAR
	}
	for h.dec.More() {
		t, err := h.token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		done, err := read(name)
		if err == nil && !done {
			err = h.skip()
		}
		if err != nil {
			return err
		}
	}
	_, err := h.token()
	return err
}

func (h *harReader) token() (json.Token, error) {
	h.bound.reset()
	return h.dec.Token()
}

// skip reads over a value.
func (h *harReader) skip() error {
	for depth := 0; ; {
		t, err := h.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

func (h *harReader) list() error {
	if t, err := h.token(); err != nil {
		return err
	} else if t != json.Delim('[') {
		return errNoHAR
	}
	for h.dec.More() {
		h.bound.reset()
		var e harEntry
		if err := h.dec.Decode(&e); err != nil {
			return err
		}
		h.entries++
		if err := h.keep(&e); err != nil {
			return err
		}
	}
	_, err := h.token()
	return err
}

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
