package learn

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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

	shown  string // the path as it may be written
	issued issued // by the shop; nil until all recordings are read
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
