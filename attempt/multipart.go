package attempt

import (
	"bytes"
	"net/url"
	"strings"
)

// multipartName looks for a field of a multipart body whose name the given
// function takes for a forbidden one. No source reads such a body, but
// frameworks merge its fields with the query's. Multipart parsers differ in
// almost everything (boundaries, folding, quoting), so this does not parse: it
// looks at every "name=" of the whole body, wherever it stands.
func multipartName(body []byte, forbidden func(string) bool) bool {
	for rest := body; ; {
		i := indexFold(rest, "name")
		if i < 0 {
			return false
		}
		inWord := i > 0 && (isLetter(rest[i-1]) || rest[i-1] == '_') // filename=
		rest = rest[i+len("name"):]
		if !inWord {
			if name, ok := dispositionName(rest); ok && forbidden(name) {
				return true
			}
		}
	}
}

// dispositionName reads the value behind "name": = "…", = '…', = token or
// *= charset'language'encoded (RFC 7578 forbids the last, some accept it).
func dispositionName(b []byte) (string, bool) {
	b = bytes.TrimLeft(b, " \t\r\n")
	starred := false
	// name*= and the continuations name*0= and name*0*= of RFC 2231
	for len(b) > 0 && (b[0] == '*' || b[0] >= '0' && b[0] <= '9') {
		starred = true
		b = b[1:]
	}
	b = bytes.TrimLeft(b, " \t\r\n")
	if len(b) == 0 || b[0] != '=' {
		return "", false
	}
	b = bytes.TrimLeft(b[1:], " \t\r\n")
	if len(b) == 0 {
		return "", false
	}
	var end int
	if q := b[0]; q == '"' || q == '\'' {
		b = b[1:]
		end = bytes.IndexByte(b, q)
	} else {
		end = bytes.IndexAny(b, "; \t\r\n")
	}
	if end < 0 {
		end = len(b)
	}
	name := strings.ReplaceAll(string(b[:end]), `\`, "")
	if i := strings.LastIndexByte(name, '\''); starred && i >= 0 {
		name = name[i+1:]
	}
	if d, err := url.PathUnescape(name); err == nil {
		name = d
	}
	return name, true
}

// indexFold finds a lower-case ASCII word in any case.
func indexFold(b []byte, word string) int {
	for i := 0; i+len(word) <= len(b); i++ {
		if b[i]|0x20 == word[0] && strings.EqualFold(string(b[i:i+len(word)]), word) {
			return i
		}
	}
	return -1
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
