package route

import "strings"

// steps are what servers do to a path besides decoding it. Each leaves a path alone
// that it does not apply to.
var steps = []func(string) string{
	cutAt("?"), // an encoded one: the path is reassembled and parsed again
	cutAt("#"),
	cutControl,     // C strings end at NUL, and lines at a line feed
	cutAt(";"),     // find-my-way of Fastify 4: the query begins there
	dropParams,     // Java: ;jsessionid=1 in any segment
	backslashes,    // IIS, WHATWG URL
	dropAuthority,  // //host/path is a reference with an authority (RFC 3986, section 4.2)
	mergeSlashes,   // nginx, Apache
	resolveDots,    // all servers, before or after decoding
	resolveEscaped, // WHATWG URL: %2e is a dot there, and nothing else is decoded
	pathInfo,       // PHP routers take what follows the script
	scriptAlone,    // and PHP runs the script, whatever follows it
	dropScript,     // or the path without it
	leadingSlash,   // what decoding or cutting has left without one
}

func cutAt(mark string) func(string) string {
	return func(path string) string {
		before, _, _ := strings.Cut(path, mark)
		return before
	}
}

func cutControl(path string) string {
	for i := range len(path) {
		if control(path[i]) {
			return path[:i]
		}
	}
	return path
}

// dropParams removes what follows a semicolon in each segment.
func dropParams(path string) string {
	if strings.IndexByte(path, ';') < 0 {
		return path
	}
	var b strings.Builder
	b.Grow(len(path))
	in := false
	for i := range len(path) {
		switch path[i] {
		case ';':
			in = true
		case '/':
			in = false
		}
		if !in {
			b.WriteByte(path[i])
		}
	}
	return b.String()
}

func backslashes(path string) string { return strings.ReplaceAll(path, `\`, "/") }

// dropAuthority removes the host of //host/path.
func dropAuthority(path string) string {
	if !strings.HasPrefix(path, "//") {
		return path
	}
	rest := strings.TrimLeft(path, "/")
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[i:]
	}
	return "/"
}

func mergeSlashes(path string) string {
	if !strings.Contains(path, "//") {
		return path
	}
	var b strings.Builder
	b.Grow(len(path))
	for i := range len(path) {
		if i == 0 || path[i] != '/' || path[i-1] != '/' {
			b.WriteByte(path[i])
		}
	}
	return b.String()
}

// resolveDots is RFC 3986, section 5.2.4. Empty segments count as segments.
func resolveDots(path string) string {
	if !strings.Contains(path, "/.") {
		return path
	}
	return resolve(path, func(seg string) string { return seg })
}

// resolveEscaped treats escaped dots as dots.
func resolveEscaped(path string) string {
	if !strings.Contains(path, "%2e") && !strings.Contains(path, "%2E") {
		return path
	}
	return resolve(path, func(seg string) string {
		if len(seg) > len("%2e%2e") {
			return seg
		}
		return strings.ReplaceAll(strings.ReplaceAll(seg, "%2e", "."), "%2E", ".")
	})
}

// resolve removes the segments that dots finds to be "." or "..".
func resolve(path string, dots func(seg string) string) string {
	segs := strings.Split(path, "/")
	out := segs[:1]
	for i, seg := range segs[1:] {
		switch dots(seg) {
		case "..":
			if len(out) > 1 {
				out = out[:len(out)-1]
			}
		case ".":
		default:
			out = append(out, seg)
			continue
		}
		if i == len(segs)-2 { // a directory remains
			out = append(out, "")
		}
	}
	return strings.Join(out, "/")
}

// script finds the first script that a slash follows: it is path[start:end].
func script(path string) (start, end int, ok bool) {
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		if isScript(path[start:i]) {
			return start, i, true
		}
		start = i + 1
	}
	return 0, 0, false
}

func pathInfo(path string) string {
	if _, end, ok := script(path); ok {
		return path[end:]
	}
	return path
}

func scriptAlone(path string) string {
	if _, end, ok := script(path); ok {
		return path[:end]
	}
	return path
}

func dropScript(path string) string {
	if start, end, ok := script(path); ok {
		return path[:start] + path[end+1:]
	}
	return path
}

// leadingSlash restores a leading slash that decoding or cutting has removed.
func leadingSlash(path string) string {
	if path != "" && path[0] != '/' && path != "*" {
		return "/" + path
	}
	return path
}

// decode decodes escapes once. Invalid escapes stay.
func decode(path string) string {
	i := strings.IndexByte(path, '%')
	if i < 0 {
		return path
	}
	var b strings.Builder
	b.Grow(len(path))
	b.WriteString(path[:i])
	for ; i < len(path); i++ {
		if path[i] == '%' {
			if c, ok := unescape(path[i:]); ok {
				b.WriteByte(c)
				i += 2
				continue
			}
		}
		b.WriteByte(path[i])
	}
	return b.String()
}
