package attempt

import (
	"unicode/utf16"
	"unicode/utf8"
)

// word scans one of JSON's literal names.
func (s *scanner) word(w string) bool {
	if end := s.pos + len(w); end <= len(s.data) && string(s.data[s.pos:end]) == w {
		s.pos = end
		return true
	}
	return s.invalid()
}

// number scans a number. integer: it is a whole number without sign, fraction
// and exponent.
func (s *scanner) number() (integer, ok bool) {
	integer = true
	if s.next() == '-' {
		integer = false
		s.pos++
	}
	switch c := s.next(); {
	case c == '0':
		s.pos++
	case c >= '1' && c <= '9':
		s.digits()
	default:
		return false, s.invalid()
	}
	if s.next() == '.' {
		integer = false
		s.pos++
		if !s.digits() {
			return false, s.invalid()
		}
	}
	if c := s.next(); c == 'e' || c == 'E' {
		integer = false
		s.pos++
		if c := s.next(); c == '+' || c == '-' {
			s.pos++
		}
		if !s.digits() {
			return false, s.invalid()
		}
	}
	return integer, true
}

// digits scans digits and tells whether there were any.
func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

// str scans a string from its opening quote to behind its closing one. start is
// where its text begins.
func (s *scanner) str() (start int, escaped, ok bool) {
	start = s.pos + 1
	for i := start; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.pos = i + 1
			return start, escaped, true
		case c == '\\':
			escaped = true
			n := escapeLen(s.data[i:])
			if n == 0 {
				s.pos = i
				return 0, false, s.invalid()
			}
			i += n - 1
		case c < ' ':
			s.pos = i
			return 0, false, s.fail("the body", "a control character stands in a JSON string")
		}
	}
	s.pos = len(s.data)
	return 0, false, s.invalid()
}

// escapeLen is the length of the escape at the start of b; 0: there is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b); ok {
			return 6
		}
	}
	return 0
}

// hex4 reads \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		d, ok := unhex(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

func unhex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// unescape appends the text of a string that was scanned. It fails on NUL, at
// which parsers in C cut a text, and on half of a surrogate pair, which
// parsers drop, replace or keep (RFC 8259, section 8.2).
func unescape(dst, raw []byte) ([]byte, bool) {
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' {
			dst = append(dst, c)
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(raw[i-1:])
			i += 4
			if utf16.IsSurrogate(r) {
				low, _ := hex4(raw[i+1:])
				if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
					return nil, false
				}
				i += 6
			}
			if r == 0 {
				return nil, false
			}
			dst = utf8.AppendRune(dst, r)
		default: // ", \ and /
			dst = append(dst, raw[i])
		}
	}
	return dst, true
}
