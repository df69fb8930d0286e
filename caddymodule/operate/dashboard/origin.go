package dashboard

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// isOrigin reports whether text is an origin as browsers send it.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && text == u.Scheme+"://"+strings.ToLower(u.Host)
}

// originsOf returns the origins that the page may have that a request reaches. Of Origins these are
// those with the request's host: the scheme of the request is another one where a gateway ends TLS.
func (s *Dashboard) originsOf(r *http.Request) []string {
	host := "://" + strings.ToLower(r.Host)
	if len(s.Origins) == 0 {
		if r.TLS != nil {
			return []string{"https" + host}
		}
		return []string{"http" + host}
	}
	return slices.DeleteFunc(slices.Clone(s.Origins), func(origin string) bool { return !strings.HasSuffix(origin, host) })
}

// hostAllowed reports whether the request names a host under which the page may be reached: a
// page elsewhere whose name leads here has another one (DNS rebinding).
func (s *Dashboard) hostAllowed(r *http.Request) bool {
	if len(s.Origins) > 0 {
		return len(s.originsOf(r)) > 0
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

// fromPage reports whether the page itself has sent a request: browsers name the origin of each
// POST.
func (s *Dashboard) fromPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return slices.Contains(s.originsOf(r), r.Header.Get("Origin")) && (site == "" || site == "same-origin")
}
