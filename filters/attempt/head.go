package attempt

import (
	"net/http"
	"net/url"
	"strings"
)

// readHeaders takes the headers that are sources.
func (rd *Reader) readHeaders(h http.Header, got []found) fault {
	for i := range rd.headers {
		src := &rd.headers[i]
		switch values := h[src.name]; len(values) {
		case 0:
		case 1:
			got[src.slot] = found{present, values[0]}
		default:
			return fault{src.label, "the header appears twice"}
		}
	}
	return fault{}
}

// readCookies takes the cookies that are sources. Servers disagree on what quotes, commas
// and encodings mean (RFC 6265 leaves values to the server), so a header is malformed
// where another server could find another value for a source's cookie in it.
func (rd *Reader) readCookies(headers []string, got []found) fault {
	if len(rd.cookies) == 0 {
		return fault{}
	}
	if len(headers) > 1 { // HTTP/1.1 forbids it (RFC 6265, section 5.4), and CGI joins them by a comma
		return fault{"Cookie", "the header appears twice"}
	}
	for _, rest := range headers {
		for count := 1; rest != ""; count++ {
			if count > maxPairs {
				return fault{"Cookie", "it has more than 1000 cookies"}
			}
			var pair string
			pair, rest, _ = strings.Cut(rest, ";")
			name, value, _ := strings.Cut(strings.TrimLeft(pair, " \t"), "=")
			for i := range rd.cookies {
				src := &rd.cookies[i]
				if f := src.cookie(name, value, got); f.bad() {
					return f
				}
				if strings.ContainsAny(pair, `",`) && src.hides(value) {
					return fault{src.label, "a cookie before or after it holds a quote or a comma that ends a cookie for some servers"}
				}
			}
		}
	}
	return fault{}
}

// hides reports whether any cookie's value could be read as several cookies, among them the
// source's: RFC 2109 lets a comma separate cookies, and a quoted string may hold a
// semicolon.
func (src *source) hides(value string) bool {
	if strings.Count(value, `"`)%2 != 0 {
		return true // the string goes on behind the semicolon
	}
	for more := true; more; {
		var name string
		_, value, more = strings.Cut(value, ",")
		name, _, _ = strings.Cut(value, "=")
		if sameParam(strings.Trim(name, " \t"), src.folded) {
			return true
		}
	}
	return false
}

// cookie takes one cookie, if it is the source's. Some servers decode the value and some
// do not, some take a plus sign for a space, and some decode twice. So only bytes that
// must be encoded may be encoded, once, and a space may not: then all servers compare
// the same sessions.
func (src *source) cookie(name, value string, got []found) fault {
	if name != src.name {
		if sameParam(name, src.folded) || strings.IndexByte(name, '%') >= 0 && sameParam(decode(name), src.folded) {
			return fault{src.label, "the name appears in another spelling"}
		}
		return fault{}
	}
	if got[src.slot].state != absent {
		return fault{src.label, "the cookie appears twice"}
	}
	if strings.ContainsAny(value, "\"\\, \t") {
		return fault{src.label, "the value holds a quote, a backslash, a comma or a space"}
	}
	if !isASCII(value) { // UTF-8 for some servers, Latin-1 for others
		return fault{src.label, "the value holds a byte beyond ASCII: percent-encode it"}
	}
	if strings.IndexByte(value, '%') >= 0 {
		decoded, err := url.PathUnescape(value)
		if err != nil {
			return fault{src.label, badPercent}
		}
		if !encodedOnce(value) {
			return fault{src.label, "the percent-encoding has another spelling: encode once, only what encodeURIComponent encodes, and no space"}
		}
		value = decoded
	}
	if strings.HasPrefix(value, "j:") {
		return fault{src.label, "j: begins JSON for Express"}
	}
	got[src.slot] = found{present, value}
	return fault{}
}

// encodedOnce reports whether each escape of a value stands for a byte that needs one, is
// no space, and does not begin another escape; and whether a plus sign, which Rack takes for
// a space, is encoded as well.
func encodedOnce(value string) bool {
	if strings.IndexByte(value, '+') >= 0 {
		return false
	}
	for i := 0; i < len(value); i++ {
		if value[i] != '%' {
			continue
		}
		high, _ := unhex(value[i+1])
		low, _ := unhex(value[i+2])
		i += 2
		switch c := high<<4 | low; {
		case c == ' ' || isUnreserved(c):
			return false
		case c == '%':
			if _, err := url.PathUnescape("%" + value[i+1:min(i+3, len(value))]); err == nil {
				return false
			}
		}
	}
	return true
}

// isUnreserved reports whether encodeURIComponent leaves a byte as it is.
func isUnreserved(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("-_.!~*'()", c) >= 0
}

// readPath takes the segments that are sources. Check has found that every server splits the path the same
// way.
func (rd *Reader) readPath(r *http.Request, got []found) fault {
	if len(rd.paths) == 0 {
		return fault{}
	}
	rest, more := strings.TrimPrefix(r.URL.EscapedPath(), "/"), true
	for n := 0; more; n++ {
		var seg string
		seg, rest, more = strings.Cut(rest, "/")
		if seg == "" && more {
			return fault{"the path", "it has an empty segment"}
		}
		for i := range rd.paths {
			src := &rd.paths[i]
			if src.index != n || seg == "" {
				continue
			}
			if strings.IndexByte(seg, ';') >= 0 {
				return fault{src.label, "a semicolon begins parameters for some servers"}
			}
			text, err := url.PathUnescape(seg)
			if err != nil {
				return fault{src.label, badPercent}
			}
			got[src.slot] = found{present, text}
		}
	}
	return fault{}
}

// lookedAt are the headers that Check and the reading of a body look at.
var alwaysRead = []string{"Upgrade", "Connection", "Content-Encoding", contentType, "Trailer"}

// nameSet is a set of header names by length and first letter. It may report a name
// that was never added, but never misses one that was.
type nameSet [64]uint32

func (n *nameSet) add(name string) { n[len(name)%len(n)] |= 1 << (name[0] % 32) }

func (n *nameSet) may(name string) bool { return n[len(name)%len(n)]&(1<<(name[0]%32)) != 0 }

// noteHeaders records the headers that the reader looks at.
func (rd *Reader) noteHeaders() {
	for _, name := range alwaysRead {
		rd.headersRead.add(name)
	}
	for i := range rd.headers {
		rd.headersRead.add(rd.headers[i].name)
	}
	if len(rd.cookies) > 0 {
		rd.headersRead.add("Cookie")
	}
}

// ReadsHeader reports whether a header may affect Check and Read, in any case of letters:
// removing any other header does not change what is read. Text with placeholders may
// read any header.
func (rd *Reader) ReadsHeader(name string) bool {
	return rd.headersRead.may(name) || rd.needs.Has(NeedReplace)
}
