package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Kinds of parts.
const (
	literal = iota
	inHeader
	inField
	ofURI
	ofBody
)

// part is one part of what is signed, or where a signature or a time is.
type part struct {
	kind int
	text string // of a literal; the name of a header or a field
	// apart is the text that keeps this part from the body's side: it must not be in the part, or the same
	// signature would be good for another division. Empty: nothing is checked.
	apart string
	after bool // the part stands behind the body, and apart before the part
}

// clear reports whether what is signed can be divided at the end of a part in one way only. The text that
// keeps it apart may not begin in the part either.
func (p part) clear(value string) bool {
	switch {
	case p.apart == "":
		return true
	case p.after:
		return strings.LastIndex(p.apart+value, p.apart) == 0
	}
	return strings.Index(value+p.apart, p.apart) == len(value)
}

const thereAre = "there are {header.NAME}, {field.NAME}, {uri}, {body} and {newline}"

// readParts reads what is signed, such as "{header.X-Time}.{body}".
func readParts(text string) (parts []part, err error) {
	for text != "" {
		at := strings.IndexByte(text, '{')
		if at != 0 {
			if at < 0 {
				at = len(text)
			}
			parts = appendLiteral(parts, text[:at])
			text = text[at:]
			continue
		}
		name, rest, closed := strings.Cut(text[1:], "}")
		if !closed {
			return nil, fmt.Errorf("a brace is not closed: %s", thereAre)
		}
		if text = rest; name == "newline" {
			parts = appendLiteral(parts, "\n")
			continue
		}
		p, err := readPart(name)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// appendLiteral makes one part of texts that stand side by side.
func appendLiteral(parts []part, text string) []part {
	if n := len(parts); n > 0 && parts[n-1].kind == literal {
		parts[n-1].text += text
		return parts
	}
	return append(parts, part{kind: literal, text: text})
}

// readPart reads a placeholder, also as Caddyfiles write it out.
func readPart(name string) (part, error) {
	name = strings.TrimPrefix(name, "http.request.")
	switch kind, of, _ := strings.Cut(name, "."); {
	case name == "body":
		return part{kind: ofBody}, nil
	case name == "uri":
		return part{kind: ofURI}, nil
	case kind == "header":
		return part{kind: inHeader, text: http.CanonicalHeaderKey(of)}, checkHeader(of)
	case kind == "field" && of != "":
		return part{kind: inField, text: of}, nil
	}
	return part{}, fmt.Errorf("{%.40s} is no placeholder here: %s", name, thereAre)
}

// readPlace reads where a signature or a time is.
func readPlace(what, text string) (part, error) {
	parts, err := readParts(text)
	if err != nil {
		return part{}, fmt.Errorf("%s: %w", what, err)
	}
	if len(parts) != 1 || parts[0].kind != inHeader && parts[0].kind != inField {
		return part{}, fmt.Errorf("%s %s: write {header.NAME}, or {field.NAME} with fields", what, text)
	}
	return parts[0], nil
}

// checkHeader checks the name of a header. Caddy drops those with another sign.
func checkHeader(name string) error {
	bad := strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	switch {
	case name == "":
		return errors.New("the header is not named")
	case bad:
		return fmt.Errorf("the header %.40q never comes: its name may have letters, digits and hyphens", name)
	}
	return nil
}

// keepApart checks that what is signed can be divided in one way only, and has the body.
func keepApart(parts []part, time part) error {
	body := -1
	for i, p := range parts {
		switch {
		case p.kind == ofBody && body >= 0:
			return errors.New("over has {body} twice")
		case p.kind == ofBody:
			body = i
		}
	}
	if body < 0 {
		return errors.New("over has no {body}: the signature would be good for any other body")
	}
	for i := range parts {
		p, beside := &parts[i], i+1
		if i > body {
			beside, p.after = i-1, true
		}
		if i == body || p.kind == literal {
			continue
		}
		if parts[beside].kind == literal {
			p.apart = parts[beside].text
		} else if p.kind != time.kind || p.text != time.text { // a time is digits of one length
			return fmt.Errorf("over has {%s} and {%s} side by side, so that a client could move text from one to the other: put a text between them, and write a fixed URL as it is",
				parts[min(i, beside)].name(), parts[max(i, beside)].name())
		}
	}
	return nil
}

// name names a part as it is written.
func (p part) name() string {
	return [...]string{literal: "", inHeader: "header." + p.text, inField: "field." + p.text, ofURI: "uri", ofBody: "body"}[p.kind]
}
