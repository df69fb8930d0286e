package route_test

import (
	"net/url"
	"path"
	"regexp"
	"strings"
)

// gated is the route that the servers below protect.
const gated = "/api/order"

var script = regexp.MustCompile(`(?i)\.php/`)

// servers say, each in its own words, whether a request with this raw path is an order.
// They are written after the servers that they are named after, and share nothing with
// the code they check.
var servers = map[string]func(raw string) bool{
	// PHP-FPM behind php_fastcgi: the script's PATH_INFO, or REQUEST_URI decoded once.
	"php": func(raw string) bool {
		p, err := url.PathUnescape(raw)
		if err != nil {
			return false
		}
		if at := script.FindStringIndex(p); at != nil && strings.TrimRight(p[at[1]-1:], "/") == gated {
			return true
		}
		p, _, _ = strings.Cut(p, "\x00")
		return strings.TrimRight(p, "/") == gated || strings.TrimPrefix(strings.TrimRight(p, "/"), "/index.php") == gated
	},
	// Express: the raw path up to ? or #, in any case, with or without a slash.
	"express": func(raw string) bool {
		p := raw
		if i := strings.IndexAny(p, "?#"); i >= 0 {
			p = p[:i]
		}
		return strings.EqualFold(strings.TrimSuffix(p, "/"), gated)
	},
	// Fastify 4: a semicolon begins the query, then one decoding.
	"fastify": func(raw string) bool {
		if i := strings.IndexAny(raw, "?;#"); i >= 0 {
			raw = raw[:i]
		}
		p, err := url.PathUnescape(raw)
		return err == nil && strings.TrimSuffix(p, "/") == gated
	},
	// Tomcat: parameters go, one decoding, slashes merge, dots are resolved.
	"tomcat": func(raw string) bool {
		segs := strings.Split(raw, "/")
		for i := range segs {
			segs[i], _, _ = strings.Cut(segs[i], ";")
		}
		p, err := url.PathUnescape(strings.Join(segs, "/"))
		return err == nil && path.Clean("/"+p) == gated
	},
	// IIS with double escaping: two decodings, backslashes, any case.
	"iis": func(raw string) bool {
		p := raw
		for range 2 {
			once, err := url.PathUnescape(p)
			if err != nil {
				return false
			}
			p = once
		}
		return strings.EqualFold(path.Clean("/"+strings.ReplaceAll(p, `\`, "/")), gated)
	},
	// A proxy, a server and a framework that each decode and clean.
	"thrice": func(raw string) bool {
		p := raw
		for range 3 {
			once, err := url.PathUnescape(p)
			if err != nil {
				return false
			}
			p = path.Clean("/" + once)
		}
		return p == gated
	},
	// new URL(req.url, "http://localhost").pathname of Node.
	"whatwg": func(raw string) bool {
		p, _, _ := strings.Cut(raw, "#")
		p = strings.ReplaceAll(p, `\`, "/")
		if strings.HasPrefix(p, "//") {
			_, rest, _ := strings.Cut(strings.TrimLeft(p, "/"), "/")
			p = "/" + rest
		}
		var out []string
		for _, seg := range strings.Split(strings.TrimPrefix(p, "/"), "/") {
			switch strings.ReplaceAll(strings.ToLower(seg), "%2e", ".") {
			case ".":
			case "..":
				if len(out) > 0 {
					out = out[:len(out)-1]
				}
			default:
				out = append(out, seg)
			}
		}
		return "/"+strings.Join(out, "/") == gated
	},
	// Werkzeug: one decoding, slashes merge, and a line feed may end the match.
	"werkzeug": func(raw string) bool {
		p, err := url.PathUnescape(raw)
		if err != nil {
			return false
		}
		for strings.Contains(p, "//") {
			p = strings.ReplaceAll(p, "//", "/")
		}
		return strings.TrimSuffix(p, "\n") == gated
	},
}
