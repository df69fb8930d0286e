// Package strictjson reads JSON in the one way in which every other reader of the same
// bytes sees the same values (RFC 7493, I-JSON): the text is UTF-8, the names of an object
// come once and match exactly, escapes name whole characters, and nothing follows the value.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep a value that no caller describes may nest.
const maxDepth = 16

const noObject = "it must be one JSON object"

// Reader stands before a value of a JSON text.
type Reader struct {
	raw []byte
	dec *json.Decoder
}

// Member reads a value. The error it returns is completed with the value's place: it goes
// on where the name of the value ends, as in "must be text".
type Member func(*Reader) error

// Members are the fields of an object, by name.
type Members map[string]Member

// Read reads one value that is all of raw. Errors are for the sender of the text: they say
// which field is wrong and why, and repeat nothing of it but names.
func Read(raw []byte, value Member) error {
	if !utf8.Valid(raw) {
		return sentence("the JSON is not UTF-8")
	}
	r := &Reader{raw: raw, dec: json.NewDecoder(bytes.NewReader(raw))}
	r.dec.UseNumber()
	if err := value(r); err != nil {
		return err
	}
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return sentence("something follows: give no more than one JSON value")
	}
	return nil
}

// Object reads an object that has these members and no others; the required ones must be
// there.
func (r *Reader) Object(known Members, required ...string) error {
	return r.object(known, required, func(name string) error { return unknown(name, keys(known)) })
}

// OpenObject is Object, but members that are not known are passed over. They are read as
// strictly as all others.
func (r *Reader) OpenObject(known Members, required ...string) error {
	return r.object(known, required, func(name string) error { return within(name, r.skip(nil, maxDepth)) })
}

func (r *Reader) object(known Members, required []string, other func(name string) error) error {
	first := r.dec.InputOffset() == 0
	tok, err := r.next()
	switch {
	case err != nil && first: // what is no JSON at all is no object above all
		return sentence(noObject)
	case err != nil:
		return err
	case tok != json.Delim('{'):
		return orNull(tok, sentence(noObject))
	}
	return r.members(required, func(name string) error {
		if member, ok := known[name]; ok {
			return within(name, member(r))
		}
		return other(name)
	})
}

// members reads an object whose brace has been read.
func (r *Reader) members(required []string, member func(name string) error) error {
	seen := make(map[string]bool)
	for r.dec.More() {
		var name string
		if err := Text(&name)(r); err != nil {
			return err
		}
		if seen[name] {
			return within(name, predicate("is given twice"))
		}
		seen[name] = true
		if err := member(name); err != nil {
			return err
		}
	}
	if _, err := r.next(); err != nil { // the closing brace
		return err
	}
	for _, name := range required {
		if !seen[name] {
			return within(name, predicate("is missing"))
		}
	}
	return nil
}

// Array reads a list; element reads the value number n, from 1.
func (r *Reader) Array(element func(n int) error) error {
	tok, err := r.next()
	if err != nil {
		return err
	}
	if tok != json.Delim('[') {
		return orNull(tok, predicate("must be a list"))
	}
	return r.elements(element)
}

// elements reads a list whose bracket has been read.
func (r *Reader) elements(element func(n int) error) error {
	for n := 1; r.dec.More(); n++ {
		if err := element(n); err != nil {
			return at(n, err)
		}
	}
	_, err := r.next() // the closing bracket
	return err
}

// next returns the next token. A text has no half of a surrogate pair: readers differ in
// what they make of one.
func (r *Reader) next() (json.Token, error) {
	begin := r.dec.InputOffset()
	tok, err := r.dec.Token()
	if err != nil {
		return nil, syntax(err)
	}
	if _, text := tok.(string); text && halfPair(r.raw[begin:r.dec.InputOffset()]) {
		return nil, predicate("has half of a surrogate pair")
	}
	return tok, nil
}

// orNull is what is wrong with a value of another kind than expected.
func orNull(tok json.Token, otherwise error) error {
	if tok == nil {
		return predicate("is null: give a value or leave the field out")
	}
	return otherwise
}

// halfPair says that a JSON string has an escape for a surrogate without its other half.
// The decoder has checked the syntax of the escapes.
func halfPair(quoted []byte) bool {
	for {
		i := bytes.IndexByte(quoted, '\\')
		if i < 0 {
			return false
		}
		quoted = quoted[i:]
		switch {
		case quoted[1] != 'u':
			quoted = quoted[2:]
		case !isSurrogate(quoted, "89abAB"):
			if isSurrogate(quoted, "cdefCDEF") {
				return true
			}
			quoted = quoted[6:]
		case !isSurrogate(quoted[6:], "cdefCDEF"):
			return true
		default:
			quoted = quoted[12:]
		}
	}
}

// isSurrogate says that the text begins with \uD and one of these digits.
func isSurrogate(text []byte, digits string) bool {
	return len(text) >= 6 && text[0] == '\\' && text[1] == 'u' && (text[2] == 'd' || text[2] == 'D') && strings.IndexByte(digits, text[3]) >= 0
}
