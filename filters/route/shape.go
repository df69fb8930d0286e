package route

import "strings"

// Shape says how servers may differ in reading a path.
type Shape uint8

// What a scan finds. Servers read a path without any of these alike.
const (
	// Odd: some servers read another path in it; Readings has them.
	Odd Shape = 1 << iota
	// Upper: it has capitals, which some servers ignore.
	Upper
	// Slash: it ends in a slash, which some servers ignore.
	Slash
	// broken: it has a byte that no target may have.
	broken
)

// classes of bytes in a path.
const (
	classPlain = iota
	classUpper
	classSlash
	classEscape
	classOdd
	classBroken
)

var class = func() (t [256]uint8) {
	for c := range t {
		switch {
		case control(byte(c)) || c == '#':
			t[c] = classBroken
		case c == '\\' || c == ';' || c == '?':
			t[c] = classOdd
		case 'A' <= c && c <= 'Z':
			t[c] = classUpper
		case c == '/':
			t[c] = classSlash
		case c == '%':
			t[c] = classEscape
		}
	}
	return t
}()

func control(c byte) bool { return c < ' ' || c == 0x7f }

// ShapeOf scans a path as it was sent, without its query.
//
// These are odd: backslashes, semicolons; escapes of these, of slashes, dots, percent
// signs, question marks, hashes and control characters, which a second decoding reveals,
// and of letters and digits, which can hide a name; empty segments and dot segments; and a
// script in the middle, such as /index.php/x. Escapes of anything else (spaces, other
// alphabets) are ordinary.
func ShapeOf(path string) (s Shape) {
	start := 0 // of the segment
	for i := 0; i < len(path); i++ {
		switch class[path[i]] {
		case classUpper:
			s |= Upper
		case classSlash:
			if i > 0 && oddSegment(path[start:i]) {
				s |= Odd
			}
			start = i + 1
		case classEscape:
			c, ok := unescape(path[i:])
			if !ok || hides(c) {
				s |= Odd
			}
			if ok {
				i += 2
			}
		case classOdd:
			s |= Odd
		case classBroken:
			s |= Odd | broken
		}
	}
	switch last := path[start:]; {
	case last == "." || last == "..":
		s |= Odd
	case last == "" && len(path) > 1:
		s |= Slash
	}
	return s
}

// oddSegment tells whether a segment that a slash follows makes a path odd.
func oddSegment(seg string) bool {
	return seg == "" || seg == "." || seg == ".." || isScript(seg)
}

// isScript reports whether a segment is a PHP script: what follows it is PATH_INFO.
func isScript(seg string) bool {
	return len(seg) >= 4 && strings.EqualFold(seg[len(seg)-4:], ".php")
}

// hides reports whether an escape of c makes a path odd.
func hides(c byte) bool {
	return class[c] != classPlain || c == '.' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
}

// unescape reads the escape at the start of s.
func unescape(s string) (c byte, ok bool) {
	if len(s) < 3 {
		return 0, false
	}
	high, ok1 := unhex(s[1])
	low, ok2 := unhex(s[2])
	return high<<4 | low, ok1 && ok2
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
