package dashboard

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// isOrigin says whether text is an origin as browsers send it.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && text == u.Scheme+"://"+strings.ToLower(u.Host)
}

// originOf returns the origin of the page that a request reaches.
func originOf(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + strings.ToLower(r.Host)
}

// hostAllowed says whether the request names a host under which the page may be reached: a
// page elsewhere whose name leads here has another one (DNS rebinding).
func (s *Dashboard) hostAllowed(r *http.Request) bool {
	if len(s.Origins) > 0 {
		return slices.Contains(s.Origins, originOf(r))
	}
	if !s.Unprotected {
		return true // a page elsewhere has no credentials for this name
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return strings.EqualFold(host, "localhost") || net.ParseIP(strings.Trim(host, "[]")) != nil
}

// fromPage says whether the page itself has sent a request: browsers name the origin of each
// POST.
func fromPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return r.Header.Get("Origin") == originOf(r) && (site == "" || site == "same-origin")
}
