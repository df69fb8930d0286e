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

// readCookies takes the cookies that are sources. Their values are
// percent-decoded, as most servers do: else one session could be written in
// many ways and count as many buyers. Quotes, which some servers strip, are
// malformed.
func (rd *Reader) readCookies(headers []string, got []found) fault {
	if len(rd.cookies) == 0 {
		return fault{}
	}
	for _, rest := range headers {
		for rest != "" {
			var pair string
			pair, rest, _ = strings.Cut(rest, ";")
			name, value, _ := strings.Cut(pair, "=")
			name, value = strings.Trim(name, " \t"), strings.Trim(value, " \t")
			for i := range rd.cookies {
				if f := rd.cookies[i].cookie(name, value, got); f.bad() {
					return f
				}
			}
		}
	}
	return fault{}
}

// cookie takes one cookie, if it is the source's.
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
	if strings.ContainsAny(value, `"\`) {
		return fault{src.label, "the value holds a quote or a backslash"}
	}
	if strings.IndexByte(value, '%') >= 0 {
		decoded, err := url.PathUnescape(value)
		if err != nil {
			return fault{src.label, badPercent}
		}
		value = decoded
	}
	got[src.slot] = found{present, value}
	return fault{}
}

// readPath takes the segments that are sources. Where there are any, the whole
// path must be one that every server splits the same way.
func (rd *Reader) readPath(r *http.Request, got []found) fault {
	if len(rd.paths) == 0 {
		return fault{}
	}
	path := r.URL.EscapedPath()
	if why, bad := RawPathUnsafe(path); bad {
		return fault{"the path", "it holds " + why}
	}
	rest, more := strings.TrimPrefix(path, "/"), true
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
