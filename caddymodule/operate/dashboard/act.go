package dashboard

import (
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/operate/operator"
)

// actsPath begins the path of what users do. What follows is a path of the admin API.
const actsPath = "acts/"

// actPaths say what a path of the admin API does.
var actPaths = []struct {
	path *regexp.Regexp
	act  string
}{
	{regexp.MustCompile(`^sales/[^/]+/open$`), "open"},
	{regexp.MustCompile(`^sales/[^/]+/pause$`), "pause"},
	{regexp.MustCompile(`^sales/[^/]+/close$`), "close"},
	{regexp.MustCompile(`^sales/[^/]+/waitlist/(pause|resume)$`), "offers"},
	{regexp.MustCompile(`^sales/[^/]+/items/[^/]+/stock$`), "stock"},
	{regexp.MustCompile(`^sales/[^/]+/holds/(confirm|release|names)$`), "resolve"},
	{regexp.MustCompile(`^reservations/[^/]+/(confirm|release)$`), "resolve"},
}

// actOf returns what follows acts/ in the path, as the page escaped it: what strips the prefix
// of the page takes %2E%2E for a step up.
func actOf(r *http.Request) string {
	path := r.URL.EscapedPath()
	if asked, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		path = asked.URL.EscapedPath()
	}
	_, act, _ := strings.Cut(path, "/"+actsPath)
	return act
}

// act does what a user asks for, as the admin API does it.
func (s *Dashboard) act(w http.ResponseWriter, r *http.Request, escaped, user string) error {
	if len(s.Acts) == 0 && len(s.Roles) == 0 {
		return notAllowed(w, "GET, HEAD") // read-only: there is nothing to do
	}
	if r.Method != http.MethodPost {
		return notAllowed(w, "POST")
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case !s.fromPage(r):
		return answerError(w, http.StatusForbidden, "the request does not come from the page: its Origin is another one; behind a gateway that ends TLS, write `origins` in its block")
	case media != "application/json":
		return answerError(w, http.StatusUnsupportedMediaType, "the body must be application/json")
	}
	for _, known := range actPaths {
		if !known.path.MatchString(escaped) {
			continue
		}
		if !slices.Contains(s.actsOf(r), known.act) {
			return answerError(w, http.StatusForbidden, "this user may not do that: `acts` in the page's block does not give them "+known.act)
		}
		path, err := url.PathUnescape(escaped)
		if err != nil {
			break
		}
		ask := operator.WithUser(r, user)
		ask.URL = &url.URL{Path: "/stockgate/" + path, RawPath: "/stockgate/" + escaped, RawQuery: r.URL.RawQuery}
		s.changes.ServeHTTP(w, ask)
		return nil
	}
	return answerError(w, http.StatusNotFound, "there is no such act")
}
