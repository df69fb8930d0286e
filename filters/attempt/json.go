package attempt

import (
	"bytes"
	"unicode/utf8"
)

// maxDepth is how deep objects and arrays of a JSON body may nest.
const maxDepth = 32

// byteOrderMark at the start of a body is part of the first name for some parsers and
// is dropped by others.
var byteOrderMark = []byte("\xef\xbb\xbf")

const markWhat = "it begins with a byte order mark: send plain UTF-8"

// scanner checks one JSON document (RFC 8259) in one pass and takes from it
// what the nodes ask for. It accepts exactly what encoding/json accepts, with
// four exceptions: invalid UTF-8, a byte order mark, nesting deeper than
// maxDepth, and what the nodes forbid.
type scanner struct {
	data     []byte
	pos      int
	*scratch // receives the values
	// root has a bit for each child of the root node that was seen.
	root  uint64
	fault fault
}

// document scans the whole body. Where a source reads the body, it must be an
// object, or the array that the lines are; otherwise only an object has names to look at.
func (s *scanner) document(root *node, object bool) bool {
	if bytes.HasPrefix(s.data, byteOrderMark) {
		return s.fail("the body", markWhat)
	}
	if !utf8.Valid(s.data) {
		return s.fail("the body", "it is not UTF-8")
	}
	s.space()
	list := root != nil && root.want == wantArray
	switch c := s.next(); {
	case c == '{' && !list, c == '[' && list:
	case object && list:
		return s.fail("the body", "it is not a JSON array")
	case object:
		return s.fail("the body", "it is not a JSON object")
	default:
		root = nil
	}
	if !s.value(root, 0) {
		return false
	}
	s.space()
	if s.pos != len(s.data) {
		return s.fail("the body", "there is more after the JSON document")
	}
	return true
}

// value scans any value. n is the node that it belongs to, or nil; depth is how
// many objects and arrays are open around it.
func (s *scanner) value(n *node, depth int) bool {
	switch c := s.next(); {
	case c == '{':
		if n != nil && n.want != wantObject {
			return s.mistyped(n)
		}
		return s.object(n, depth+1)
	case c == '[':
		if n != nil && n.want != wantArray {
			return s.mistyped(n)
		}
		s.listed = s.listed || n != nil && n.each != nil
		return s.array(n, depth+1)
	case c == '"':
		start, escaped, ok := s.str()
		if !ok {
			return false
		}
		return n == nil || s.keepString(n, s.data[start:s.pos-1], escaped)
	case c == '-' || c >= '0' && c <= '9':
		start := s.pos
		integer, ok := s.number()
		if !ok {
			return false
		}
		return n == nil || s.keepNumber(n, s.data[start:s.pos], integer)
	case c == 'n':
		return s.word("null") && (n == nil || s.keepNull(n))
	case c == 't':
		return s.word("true") && (n == nil || s.mistyped(n))
	case c == 'f':
		return s.word("false") && (n == nil || s.mistyped(n))
	}
	return s.invalid()
}

// object scans an object. Below a node, each name is compared with those that
// are sources: the same name twice, or in another case, is a fault.
func (s *scanner) object(n *node, depth int) bool {
	if depth > maxDepth {
		return s.fail("the body", "it nests deeper than 32 levels")
	}
	s.pos++
	s.space()
	if s.next() == '}' {
		s.pos++
		return true
	}
	var seen uint64
	for {
		if s.next() != '"' {
			return s.invalid()
		}
		start, escaped, ok := s.str()
		if !ok {
			return false
		}
		var kid *node
		if n != nil {
			i, what := n.member(s.data[start:s.pos-1], escaped)
			if i >= 0 && what == "" && seen&(1<<i) != 0 {
				what = "the name appears twice"
			}
			if what != "" {
				return s.fail(n.blame(i), what)
			}
			if i >= 0 {
				seen |= 1 << i
				kid = n.kids[i]
			}
		}
		s.space()
		if s.next() != ':' {
			return s.invalid()
		}
		s.pos++
		s.space()
		if !s.value(kid, depth) {
			return false
		}
		s.space()
		switch s.next() {
		case ',':
			s.pos++
			s.space()
		case '}':
			s.pos++
			if depth == 1 {
				s.root = seen
			}
			return true
		default:
			return s.invalid()
		}
	}
}

// array scans an array. Below a node, elements belong to the node of their
// index, or all to one node where the array holds the lines. An element that no value
// reads is a fault: the shop would sell what it says too.
func (s *scanner) array(n *node, depth int) bool {
	if depth > maxDepth {
		return s.fail("the body", "it nests deeper than 32 levels")
	}
	s.pos++
	s.space()
	if s.next() == ']' {
		s.pos++
		return true
	}
	for i := 0; ; i++ {
		var kid *node
		if n != nil {
			if kid = n.element(i); kid == nil {
				return s.fail(n.label, "it has more elements than are read here")
			}
			if n.each != nil && !s.addRow(n) {
				return false
			}
		}
		if !s.value(kid, depth) {
			return false
		}
		s.space()
		switch s.next() {
		case ',':
			s.pos++
			s.space()
		case ']':
			s.pos++
			return true
		default:
			return s.invalid()
		}
	}
}

// next is the byte at the position; 0, which no document may hold outside of a
// string's escapes, stands for the end.
func (s *scanner) next() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) fail(input, what string) bool {
	s.fault = fault{input, what}
	return false
}

func (s *scanner) invalid() bool {
	if s.pos >= len(s.data) {
		return s.fail("the body", "the JSON document ends early")
	}
	return s.fail("the body", "it is not valid JSON")
}
