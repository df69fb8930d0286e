package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// A dashboard without authentication before it is not provisioned, unless it says that it is
// unprotected.
func TestProvisionNeedsAuthentication(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	sub := func(routes ...any) object { return object{"handler": "subroute", "routes": routes} }
	route := func(handlers ...any) object { return object{"handle": handlers} }
	for name, c := range map[string]struct {
		handlers []any
		fails    string
	}{
		"none":                         {[]any{page(nil)}, "no authentication stands before it"},
		"unprotected":                  {[]any{page(object{"unprotected": true})}, ""},
		"before it":                    {[]any{basic, page(nil)}, ""},
		"behind it":                    {[]any{page(nil), basic}, "no authentication stands before it"},
		"around it":                    {[]any{basic, sub(route(page(nil)))}, ""},
		"in an earlier route":          {[]any{sub(route(basic), route(page(nil)))}, ""},
		"in a later route":             {[]any{sub(route(page(nil)), route(basic))}, "no authentication stands before it"},
		"beside it":                    {[]any{sub(route(basic)), page(nil)}, "no authentication stands before it"},
		"another one is protected":     {[]any{sub(route(basic, page(nil))), sub(route(page(nil)))}, "no authentication stands before it"},
		"another one is not protected": {[]any{page(object{"unprotected": true}), sub(route(basic, page(nil)))}, ""},
		"an unknown act":               {[]any{basic, page(object{"acts": []string{"opne"}})}, `there is no act "opne"`},
		"no origin":                    {[]any{basic, page(object{"origins": []string{"https://ops.example.com/"}})}, "is no origin"},
	} {
		s.Gates = c.handlers
		err := s.TryLoad(app)
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v, want %q", name, err, c.fails)
		}
	}
}

// Every request must have passed the authentication: a matcher may have led it around.
func TestRequestsNeedAuthentication(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	narrow := object{"handler": "subroute", "routes": []any{
		object{"match": []any{object{"path": []string{"/other"}}}, "handle": []any{basic}}, object{"handle": []any{page(nil)}},
	}}
	s.Gates = []any{at("/narrow", narrow), at("/ops", basic, page(nil))}
	s.Load(app)
	for _, path := range []string{"/", "/app.js", "/events", "/items", "/report", "/acts/sales/x/open"} {
		if a := s.Get("/narrow" + path); a.Status != http.StatusForbidden {
			t.Errorf("around the authentication, %s: %d %s", path, a.Status, a.Body)
		}
		if a := s.Get("/ops" + path); a.Status != http.StatusUnauthorized {
			t.Errorf("without a password, %s: %d", path, a.Status)
		}
	}
	if a := s.AskWith("http", "GET", "/ops/", "", map[string]string{"Authorization": ann}); a.Status != http.StatusOK || !strings.Contains(a.Body, "<main") {
		t.Errorf("with the password: %d %s", a.Status, a.Body)
	}
}

// The page has the policy that lets it load its own files only, and no inline script or style
// that the policy would block. It finds its files under any prefix.
func TestPage(t *testing.T) {
	s, _ := open(t)
	a := s.Get("/open/")
	if a.Status != http.StatusOK || a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %v", a.Status, a.Header)
	}
	policy := a.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %s: %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("the policy: %s", policy)
	}
	for _, inline := range []string{"<style", "style=", "onclick", "://", "<script>"} {
		if strings.Contains(a.Body, inline) {
			t.Errorf("the page has %s", inline)
		}
	}
	size := len(a.Body)
	for _, file := range []string{"app.js", "style.css"} {
		f := s.Get("/open/" + file)
		size += len(f.Body)
		if f.Status != http.StatusOK || !strings.Contains(a.Body, `"`+file+`"`) || f.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", file, f.Status, f.Header)
		}
		again := s.AskWith("http", "GET", "/open/"+file, "", map[string]string{"If-None-Match": f.Header.Get("Etag")})
		if again.Status != http.StatusNotModified || again.Body != "" {
			t.Errorf("%s again: %d", file, again.Status)
		}
	}
	if size > 200_000 {
		t.Errorf("the page takes %d bytes, and may take 200,000", size)
	}
	if a := s.Get("/open/other"); a.Status != http.StatusTeapot {
		t.Errorf("another path is not passed on: %d", a.Status)
	}
}

// Only GET and HEAD are allowed where no act is, whatever the request claims to be.
func TestReadOnly(t *testing.T) {
	s, _ := open(t)
	for _, path := range []string{"/", "/events", "/items", "/report", "/acts/sales/double11/pause", "/acts/sales/double11/items/plain/stock"} {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			a := s.AskWith("http", method, "/open"+path, "{}", map[string]string{"Origin": "http://127.0.0.1", "Content-Type": "application/json"})
			if a.Status != http.StatusMethodNotAllowed || a.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, path, a.Status, a.Header.Get("Allow"))
			}
		}
	}
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Status != "open" {
		t.Errorf("the sale is %s", b.Status)
	}
}

// A host name that leads here, and is not the page's own, gets nothing where no password is
// asked for; nor where origins are pinned.
func TestHosts(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	s.Gates = []any{at("/open", page(object{"unprotected": true})), at("/pinned", basic, page(object{"origins": []string{"http://ops.example.com", "https://tls.example.com:8443"}}))}
	s.Load(app)
	for _, c := range []struct {
		host, path string
		status     int
	}{
		{"127.0.0.1:80", "/open/", 200},
		{"[::1]:8445", "/open/", 200},
		{"localhost", "/open/", 200},
		{"rebound.example.net", "/open/", 421},
		{"ops.example.com", "/pinned/", 200},
		{"OPS.example.com", "/pinned/", 200},
		{"tls.example.com:8443", "/pinned/", 200}, // a gateway has ended TLS
		{"tls.example.com", "/pinned/", 421},
		{"m:8443", "/pinned/", 421},
		{"", "/pinned/", 421},
		{"127.0.0.1", "/pinned/", 421},
	} {
		a := s.AskWith("http", "GET", c.path, "", map[string]string{"Host": c.host, "Authorization": ann})
		if a.Status != c.status {
			t.Errorf("%s%s: %d, want %d", c.host, c.path, a.Status, c.status)
		}
	}
}
