// Package saved reads HTTP/1.1 messages that operators have saved in files, as `caddy stockgate
// try` and `rehearse` take them: the first line, headers, an empty line, the body. Lines may end
// in a plain line feed, and Content-Length may be left out.
package saved

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// Request reads a request and its body. The body of the *http.Request is not to be read.
func Request(raw []byte) (*http.Request, []byte, error) {
	reader := bufio.NewReader(bytes.NewReader(raw))
	r, err := http.ReadRequest(reader)
	if err != nil {
		return nil, nil, fmt.Errorf("it is not an HTTP/1.1 request (its first line is POST /path HTTP/1.1, then come headers, an empty line and the body): %w", err)
	}
	// The body's own reader would stop at a Content-Length that an editor has made wrong.
	if len(r.TransferEncoding) > 0 {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, nil, fmt.Errorf("the request's body: %w", err)
		}
		return r, body, nil
	}
	body, err := Body(reader, r.Header, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("the request: %w", err)
	}
	return r, body, nil
}

// Body returns what follows the head of a saved message: as many bytes as its
// Content-Length says, without the line end that editors append, or everything.
func Body(rest *bufio.Reader, h http.Header, transfer []string) ([]byte, error) {
	if len(transfer) > 0 {
		return nil, errors.New("it is chunked: save it with its body as it is and a Content-Length, or none")
	}
	body, err := io.ReadAll(rest)
	if err != nil {
		return nil, err
	}
	trimmed := bytes.TrimSuffix(bytes.TrimSuffix(body, []byte("\n")), []byte("\r"))
	length := h.Get("Content-Length")
	switch {
	case length == "" || length == strconv.Itoa(len(trimmed)):
		return trimmed, nil
	case length == strconv.Itoa(len(body)):
		return body, nil
	}
	return nil, fmt.Errorf("its body has %d bytes, and its Content-Length says %.20q: correct it or leave it out", len(body), length)
}
