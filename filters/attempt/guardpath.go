package attempt

import "strings"

// RawPathUnsafe reports whether another server could split a raw path into other segments, and
// why. A segment that is a value must be the same for every server. The path may be a whole
// request target; its query is not looked at.
//
// These are unsafe: a backslash and control characters; an encoded slash, backslash, dot or
// percent sign, which a second decoding would reveal; encoded control characters, at which
// some servers cut the path or see the end of a line; segments "." and ".."; and dot
// segments with parameters, such as "/..;/", which Java servers take for dot segments.
func RawPathUnsafe(rawPath string) (why string, bad bool) {
	path := rawPath
	if i := strings.IndexByte(path, '?'); i >= 0 {
		path = path[:i]
	}
	start := 0 // of the segment
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '/':
			if dotSegment(path[start:i]) {
				return "a dot segment", true
			}
			start = i + 1
		case c == '\\':
			return "a backslash", true
		case c < ' ' || c == 0x7f:
			return "a control character", true
		case c == '%':
			if why := unsafeEscape(path[i:]); why != "" {
				return why, true
			}
			i += 2
		}
	}
	if dotSegment(path[start:]) {
		return "a dot segment", true
	}
	return "", false
}

// unsafeEscape says why the escape at the start of s is unsafe; empty: it is not.
func unsafeEscape(s string) string {
	if len(s) < 3 {
		return "a broken percent-encoding"
	}
	high, ok1 := unhex(s[1])
	low, ok2 := unhex(s[2])
	if !ok1 || !ok2 {
		return "a broken percent-encoding"
	}
	switch c := high<<4 | low; {
	case c == '/':
		return "an encoded slash"
	case c == '\\':
		return "an encoded backslash"
	case c == '.':
		return "an encoded dot"
	case c == '%':
		return "an encoded percent sign"
	case c < ' ' || c == 0x7f:
		return "an encoded control character"
	}
	return ""
}

// dotSegment tells whether a segment is "." or "..", alone or before a
// semicolon, encoded or not.
func dotSegment(seg string) bool {
	if seg == "" || seg[0] != '.' {
		return false
	}
	rest := seg[1:]
	if rest != "" && rest[0] == '.' {
		rest = rest[1:]
	}
	return rest == "" || rest[0] == ';' || strings.HasPrefix(rest, "%3b") || strings.HasPrefix(rest, "%3B")
}
