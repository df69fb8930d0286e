package fastpath

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unsafe"
)

// maxFields bounds the header fields of a request that is answered here.
const maxFields = 64

// state is how far a head has been read.
type headState uint8

const (
	headPartial headState = iota // incomplete
	headWhole                    // complete and unambiguous
	headOdd                      // other parsers could read it differently: net/http decides
)

// span is a part of the head, by offsets from its first byte.
type span struct{ from, to int32 }

// head is the head of one request (RFC 9112, sections 2 to 6), read line by line as
// it arrives. It is stricter than net/http: net/http accepts everything that it
// accepts, with the same meaning and the same end.
type head struct {
	line int // start of the first unread line
	seen int // how far that line was searched for its end

	method, target span
	fields         [maxFields]field
	count          int

	host     int // number of the field in fields, -1: none
	length   int64
	measured bool // there is a Content-Length
	// plain: nothing in it asks for more than a plain answer.
	plain bool
	end   int // how long it is
}

// field is one header field.
type field struct{ name, value span }

func (h *head) reset() {
	h.line, h.seen, h.count, h.end = 0, 0, 0, 0
	h.host, h.length, h.measured, h.plain = -1, 0, false, true
}

// read continues where it stopped. b begins with the head's first byte.
func (h *head) read(b []byte) headState {
	for {
		i := bytes.IndexByte(b[h.seen:], '\n')
		if i < 0 {
			if h.seen = len(b); h.line == 0 && len(b) > 0 && !isToken[b[0]] {
				return headOdd // another protocol, which may wait for an answer
			}
			return headPartial
		}
		end := h.seen + i - 1
		if end < h.line || b[end] != '\r' {
			return headOdd
		}
		from := h.line
		h.line = end + 2
		h.seen = h.line
		switch {
		case from == 0:
			if !h.requestLine(b[:end]) {
				return headOdd
			}
		case from == end:
			h.end = h.line
			if h.host < 0 {
				return headOdd
			}
			return headWhole
		case !h.field(b, from, end):
			return headOdd
		}
	}
}

// requestLine reads `METHOD target HTTP/1.1`.
func (h *head) requestLine(line []byte) bool {
	const version = " HTTP/1.1"
	end := len(line) - len(version)
	if end < 3 || string(line[end:]) != version {
		return false
	}
	space := bytes.IndexByte(line[:end], ' ')
	if space < 1 || space+1 == end {
		return false
	}
	for _, c := range line[:space] {
		if !isToken[c] {
			return false
		}
		if c < 'A' || c > 'Z' {
			h.plain = false
		}
	}
	target := line[space+1 : end]
	if !isGraphic(target) {
		for _, c := range target {
			if c <= ' ' || c >= 0x7f {
				return false
			}
			if c == '#' {
				h.plain = false
			}
		}
	}
	switch {
	case target[0] != '/':
		h.plain = false // absolute, or *
	case !isEscaped(target):
		return false
	}
	h.method, h.target = span{0, int32(space)}, span{int32(space + 1), int32(end)}
	return string(line[:space]) != "CONNECT"
}

// field reads one field line, from where it begins to its line end.
func (h *head) field(b []byte, from, end int) bool {
	line := b[from:end]
	colon := 0
	for ; colon < len(line); colon++ {
		switch nameBytes[line[colon]] {
		case 0:
			continue
		case 1:
			h.plain = false // Caddy drops those names, unless told otherwise
			continue
		}
		break
	}
	if colon == 0 || colon == len(line) || line[colon] != ':' || h.count == maxFields {
		return false
	}
	if value := line[colon+1:]; !isText(value) {
		for _, c := range value {
			if c < ' ' && c != '\t' || c == 0x7f {
				return false
			}
		}
	}
	begin := from + colon + 1
	for begin < end && (b[begin] == ' ' || b[begin] == '\t') {
		begin++
	}
	for end > begin && (b[end-1] == ' ' || b[end-1] == '\t') {
		end--
	}
	h.fields[h.count] = field{span{int32(from), int32(from + colon)}, span{int32(begin), int32(end)}}
	h.count++
	return h.meaning(line[:colon], b[begin:end])
}

// meaning interprets the fields that say how to read the request.
func (h *head) meaning(name, value []byte) bool {
	switch len(name) {
	case len("Host"):
		if is(name, "host") {
			if h.host >= 0 || !isHost(value) {
				return false
			}
			h.host = h.count - 1
		}
	case len("Expect"): // and Pragma
		if is(name, "expect") {
			return false
		}
		if is(name, "pragma") {
			h.plain = false // net/http makes a Cache-Control of it
		}
	case len("Upgrade"): // and Trailer
		return !is(name, "upgrade") && !is(name, "trailer")
	case len("Connection"):
		if is(name, "connection") && !is(value, "keep-alive") {
			h.plain = false
			return is(value, "close")
		}
	case len("Content-Length"): // and HTTP2-Settings
		if is(name, "http2-settings") {
			return false
		}
		if is(name, "content-length") {
			return h.contentLength(value)
		}
	case len("Transfer-Encoding"):
		return !is(name, "transfer-encoding")
	}
	return true
}

// contentLength reads the only Content-Length: digits and nothing else.
func (h *head) contentLength(value []byte) bool {
	if h.measured || len(value) == 0 || len(value) > 15 {
		return false
	}
	h.measured = true
	for _, c := range value {
		if c < '0' || c > '9' {
			return false
		}
		h.length = h.length*10 + int64(c-'0')
	}
	return true
}

// is compares without regard to case; word is in lower case.
func is(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range len(word) {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// isHost reports whether it is a name or an address, with or without a port. More than
// that is valid (RFC 3986, section 3.2.2), and left to net/http.
func isHost(b []byte) bool {
	for _, c := range b {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == ':', c == '[', c == ']':
		default:
			return false
		}
	}
	return len(b) > 0
}

// IsPlainRequest reports whether method, target and host are such that all servers read them
// alike.
func IsPlainRequest(method, target, host string) bool {
	for _, c := range []byte(method) {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return method != "" && method != "CONNECT" && strings.HasPrefix(target, "/") && isGraphic(bytesOf(target)) && isEscaped(bytesOf(target)) && isHost(bytesOf(host))
}

// isEscaped reports whether each % in the path of a target begins an escape (RFC 3986, section 2.1).
// net/http answers 400 to others. It does not look at those of the query.
func isEscaped(target []byte) bool {
	for {
		i := bytes.IndexByte(target, '%')
		if i < 0 || bytes.IndexByte(target[:i], '?') >= 0 {
			return true
		}
		if len(target) < i+3 || !isHex(target[i+1]) || !isHex(target[i+2]) {
			return false
		}
		target = target[i+3:]
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// IsText reports whether a field's value has no control character.
func IsText(value string) bool { return isText(bytesOf(value)) }

func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// isToken has the characters of a token (RFC 9110, section 5.6.2).
var isToken = func() (is [256]bool) {
	for _, c := range "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		is[c] = true
	}
	return is
}()

// nameBytes says for each byte whether it may be part of a field name: 0 no, 1 only for
// some parsers, 2 yes.
var nameBytes = func() (kinds [256]uint8) {
	for c := range kinds {
		switch {
		case !isToken[c]:
			kinds[c] = 2
		case c == '_' || c == '.':
			kinds[c] = 1
		}
	}
	return kinds
}()

// Eight bytes at a time (Warren, Hacker's Delight, section 6-1): each has its highest bit
// set where it is below a number, or is a number. After the first such byte, others may
// be marked wrongly.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

func below(x uint64, n uint64) uint64 { return (x - n*ones) & ^x & highs }

func equal(x uint64, n uint64) uint64 { return below(x^n*ones, 1) }

// isText reports whether there is certainly no control character.
func isText(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if x := binary.LittleEndian.Uint64(b); below(x, ' ')|equal(x, 0x7f) != 0 {
			return false
		}
	}
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// isGraphic reports whether there are certainly only visible ASCII characters, and no #.
func isGraphic(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if x := binary.LittleEndian.Uint64(b); below(x, '!')|equal(x, 0x7f)|equal(x, '#')|x&highs != 0 {
			return false
		}
	}
	for _, c := range b {
		if c <= ' ' || c >= 0x7f || c == '#' {
			return false
		}
	}
	return true
}

// text is a part of a head as a string, without a copy: it is good until the buffer is
// used again. A line end is behind it, so that even an empty one begins within b.
func text(b []byte, s span) string {
	return unsafe.String(&b[s.from], int(s.to-s.from))
}
