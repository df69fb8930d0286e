package route

import "strings"

// Check splits a request's target, as it was sent, into path and query, and scans the
// path once. why says what is wrong with the method or the target, independent of
// routes; empty: nothing.
//
// These are wrong: targets that do not have the form of RFC 9112, section 3.2, for the
// method: opaque ones ("x:http://h/p", which a proxy would forward as an absolute target),
// an authority of another scheme or with a user, "*" without OPTIONS; a raw "#" and control
// characters; and known methods that are not in capitals, because CGI servers capitalise
// them.
func Check(method, target string) (path, query string, shape Shape, why string) {
	if lower(method) && Known(strings.ToUpper(method)) {
		return "", "", 0, "the method is not in capitals"
	}
	path, query, _ = strings.Cut(target, "?")
	if path == "" || path[0] != '/' {
		if path, why = absolute(method, path); why != "" {
			return "", "", 0, why
		}
	}
	shape = ShapeOf(path)
	if shape&broken != 0 || fragmented(query) {
		return "", "", 0, "the target has a fragment or a control character"
	}
	return path, query, shape, ""
}

// fragmented reports whether a query has characters that no target may have.
func fragmented(query string) bool {
	for i := range len(query) {
		if class[query[i]] == classBroken {
			return true
		}
	}
	return false
}

// absolute is the path of a target that does not begin with a slash.
func absolute(method, target string) (path, why string) {
	switch {
	case method == "CONNECT":
		return "/", "" // an authority, and no path
	case target == "*" && method == "OPTIONS":
		return "*", ""
	}
	scheme, rest, _ := strings.Cut(target, "://")
	if !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", "the target is neither a path nor an http URL"
	}
	authority, _, _ := strings.Cut(rest, "/")
	if authority == "" || strings.ContainsAny(authority, `@\`) {
		return "", "the target has a foreign authority"
	}
	if path = rest[len(authority):]; path == "" {
		path = "/"
	}
	return path, ""
}

// lower reports whether a method has lower-case letters.
func lower(method string) bool {
	for i := range len(method) {
		if c := method[i]; 'a' <= c && c <= 'z' {
			return true
		}
	}
	return false
}

// Known reports whether a method, in capitals, is one of IANA's registry.
func Known(method string) bool { return known[method] }

// known is the HTTP Method Registry of IANA (RFC 9110, section 16.1).
var known = func() map[string]bool {
	m := make(map[string]bool)
	for _, name := range strings.Fields(`ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT CONNECT COPY DELETE GET HEAD LABEL LINK LOCK
		MERGE MKACTIVITY MKCALENDAR MKCOL MKREDIRECTREF MKWORKSPACE MOVE OPTIONS ORDERPATCH PATCH POST PRI PROPFIND PROPPATCH PUT
		QUERY REBIND REPORT SEARCH TRACE UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL`) {
		m[name] = true
	}
	return m
}()
