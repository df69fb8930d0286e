package webhook

import (
	"net/http"
	"strings"
	"time"
)

// head is what the head of a message has of a signature.
type head struct {
	fields     map[string][]string
	signatures [][]byte
}

func (v *described) Look(m *Delivery, now time.Time) error {
	_, err := v.head(m, now)
	return err
}

func (v *described) Verify(m *Delivery, now time.Time) error {
	h, err := v.head(m, now)
	if err != nil {
		return err
	}
	signed := make([][]byte, len(v.parts))
	for i, p := range v.parts {
		if signed[i], err = v.bytes(p, m, h.fields); err != nil {
			return err
		}
	}
	return v.algorithm.verify(signed, h.signatures)
}

// head reads and checks all that is not the body.
func (v *described) head(m *Delivery, now time.Time) (h head, err error) {
	for _, p := range v.parts { // a missing header is named in the order of what is signed
		if p.kind == inHeader {
			if _, err = header(m.Header, p.text); err != nil {
				return h, err
			}
		}
	}
	if v.Fields != nil {
		if h.fields, err = v.Fields.in(m.Header); err != nil {
			return h, err
		}
	}
	var at string
	if v.time.kind != literal {
		if at, err = v.text(v.time, m, h.fields); err != nil {
			return h, err
		}
	}
	if h.signatures, err = v.signatures(m.Header, h.fields); err != nil || v.time.kind == literal {
		return h, err
	}
	return h, inTime(at, v.Unit, v.Tolerance, now)
}

// bytes returns one part of what is signed.
func (v *described) bytes(p part, m *Delivery, fields map[string][]string) ([]byte, error) {
	if p.kind == ofBody {
		return m.Body, nil
	}
	text, err := v.text(p, m, fields)
	if err == nil && !p.clear(text) {
		err = unreadable("the part %s has %q in it, which separates it from what else is signed", p.name(), p.apart)
	}
	return []byte(text), err
}

func (v *described) text(p part, m *Delivery, fields map[string][]string) (string, error) {
	switch p.kind {
	case inHeader:
		return header(m.Header, p.text)
	case ofURI:
		return m.URI, nil
	case literal:
		return p.text, nil
	}
	what := p.text
	if p == v.time || p.text == v.time.text {
		what = "timestamp " + p.text
	}
	switch all := fields[p.text]; len(all) {
	case 0:
		return "", unreadable("%s has no %s", v.Fields.Header, what)
	case 1:
		return all[0], nil
	}
	return "", unreadable("%s has two %s", v.Fields.Header, strings.Replace(what, "timestamp", "timestamps", 1))
}

// signatures returns the decoded signatures.
func (v *described) signatures(h http.Header, fields map[string][]string) ([][]byte, error) {
	if v.signature.kind == inHeader {
		text, err := header(h, v.signature.text)
		if err != nil {
			return nil, err
		}
		raw := v.decode(strings.TrimPrefix(text, v.prefix))
		if raw == nil {
			return nil, unreadable("the header %s is no %s in %s", v.signature.text, strings.TrimPrefix(v.Algorithm, "hmac-"), v.encoding())
		}
		return [][]byte{raw}, nil
	}
	var all [][]byte
	for _, text := range fields[v.signature.text] {
		if raw := v.decode(text); raw != nil {
			all = append(all, raw)
		}
	}
	if len(all) == 0 {
		return nil, unreadable("%s has no signature %s", v.Fields.Header, v.signature.text)
	}
	return all, nil
}

// decode decodes one signature; nil: it is none.
func (v *described) decode(text string) []byte {
	if v.Algorithm == token {
		return []byte(text)
	}
	if !v.either {
		raw, err := encodings[v.Encoding](text)
		if err != nil || len(raw) == 0 {
			return nil
		}
		return raw
	}
	for _, encoding := range []string{"hex", "base64"} { // the length tells them apart
		if raw, err := encodings[encoding](text); err == nil && len(raw) == v.algorithm.size {
			return raw
		}
	}
	return nil
}

func (v *described) encoding() string {
	if v.either {
		return "hex or base64"
	}
	return v.Encoding
}
