package h2

import (
	"bytes"

	"golang.org/x/net/http2"
)

// appendAnswer appends the frames of an answer, which is given as HTTP/1.1. It returns the length
// of its body, and false if it is not as it must be, or too long.
func appendAnswer(out []byte, id uint32, answer []byte) ([]byte, int, bool) {
	const status = "HTTP/1.1 "
	if len(answer) < len(status)+3 || string(answer[:len(status)]) != status {
		return out, 0, false
	}
	begin := len(out)
	out = append(out, "123456789"...) // the frame's header
	out = appendText(append(out, neverIndexed|8), answer[len(status):len(status)+3])
	_, rest, ok := bytes.Cut(answer, []byte("\r\n"))
	for ok {
		var line []byte
		if line, rest, ok = bytes.Cut(rest, []byte("\r\n")); !ok {
			return out[:begin], 0, false
		}
		if len(line) == 0 {
			break
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 1 || colon+2 > len(line) {
			return out[:begin], 0, false
		}
		out = appendText(appendName(out, line[:colon]), line[colon+2:])
	}
	length := len(out) - begin - headerSize
	if !ok || length > maxFrameSize || len(rest) > maxFrameSize {
		return out[:begin], 0, false
	}
	flags := http2.FlagHeadersEndHeaders
	if len(rest) == 0 {
		flags |= http2.FlagHeadersEndStream
	}
	appendHeader(out[:begin], length, http2.FrameHeaders, flags, id)
	if len(rest) == 0 {
		return out, 0, true
	}
	return append(appendHeader(out, len(rest), http2.FrameData, http2.FlagDataEndStream, id), rest...), len(rest), true
}

// neverIndexed begins a field that is in no table (RFC 7541, section 6.2.3).
const neverIndexed = 0x10

// appendName appends a field's name: its number in the static table, or the text in lower case.
func appendName(b, name []byte) []byte {
	if n := staticName(name); n >= 15 {
		return append(b, neverIndexed|15, n-15)
	}
	b = appendLength(append(b, neverIndexed), len(name))
	for _, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return b
}

// staticName is the number of a name in the static table (RFC 7541, appendix A), 0 if it is not
// one that refusals have.
func staticName(name []byte) byte {
	switch string(name) {
	case "Cache-Control":
		return 24
	case "Content-Language":
		return 27
	case "Content-Length":
		return 28
	case "Content-Type":
		return 31
	case "Date":
		return 33
	case "Retry-After":
		return 53
	case "Server":
		return 54
	case "Vary":
		return 59
	case "Www-Authenticate":
		return 61
	}
	return 0
}

func appendText(b, text []byte) []byte { return append(appendLength(b, len(text)), text...) }

// appendLength appends a length with a prefix of 7 bits (RFC 7541, section 5.1).
func appendLength(b []byte, n int) []byte {
	if n < 127 {
		return append(b, byte(n))
	}
	b = append(b, 127)
	for n -= 127; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(b, byte(n))
}
