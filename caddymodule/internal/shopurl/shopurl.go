// Package shopurl makes the URLs and bodies with which a shop is asked about one order, and the client
// that asks.
package shopurl

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// URL is a URL with placeholders in its path or query.
type URL struct {
	parts []piece
	// Host is the host of the URL, for the log.
	Host string
}

// piece is literal text or a placeholder.
type piece struct {
	text  string
	name  string // "ref"; "": text
	query bool   // it stands behind the question mark
}

// Lookup returns the value of a placeholder; empty: there is none.
type Lookup func(name string) string

// NeedsEnvironment reports whether a URL or a body is known only where the configuration loads.
func NeedsEnvironment(text string) bool {
	return strings.Contains(text, "{env.") || strings.Contains(text, "{file.") || strings.Contains(text, "{system.")
}

// Compile reads a URL of what, such as "the probe". The placeholders that has says yes to are
// filled in for each order, others at once: {env.SHOP}. All other braces are errors. Its
// errors do not repeat the URL, which may contain a secret.
func Compile(what, text string, has func(name string) bool, there string) (*URL, error) {
	text = caddy.NewReplacer().ReplaceKnown(text, "")
	u, query := new(URL), false
	for rest := text; rest != ""; {
		at, name := strings.IndexByte(rest, '{'), ""
		switch end := strings.IndexByte(rest, '}'); {
		case at < 0:
			at = len(rest)
		case end > at && has(rest[at+1:end]):
			name = rest[at+1 : end]
		default:
			return nil, fmt.Errorf("the URL of %s has a brace that is no placeholder: there are %s and those that are known when the configuration loads, such as {env.SHOP}", what, there)
		}
		if at > 0 {
			u.parts = append(u.parts, piece{text: rest[:at]})
		}
		query = query || strings.Contains(rest[:at], "?")
		if name != "" {
			u.parts = append(u.parts, piece{name: name, query: query})
			at += len(name) + len("{}")
		}
		rest = rest[at:]
	}
	return u, u.check(what)
}

// check checks the URL for all possible values.
func (u *URL) check(what string) error {
	text, ok := u.Fill(func(string) string { return "a" })
	other, _ := u.Fill(func(string) string { return "b" })
	one, err := url.Parse(text)
	if err != nil || !ok {
		return fmt.Errorf("the URL of %s cannot be read: give a whole http or https URL", what)
	}
	two, err := url.Parse(other)
	switch {
	case one.Scheme != "http" && one.Scheme != "https" || one.Host == "" || one.Opaque != "":
		return fmt.Errorf("the URL of %s must be a whole http or https URL", what)
	case err != nil || two.Scheme != one.Scheme || two.Host != one.Host:
		return fmt.Errorf("the URL of %s has a placeholder outside of its path and query: who is asked must not depend on the order", what)
	case one.User != nil:
		return fmt.Errorf("the URL of %s has a user in it: send the credentials with `header Authorization …`", what)
	case one.Fragment != "" || strings.Contains(text, "#"):
		return fmt.Errorf("the URL of %s has a fragment, which is never sent: leave out # and what follows", what)
	}
	u.Host = one.Host
	return nil
}

// Has reports whether the URL has a placeholder.
func (u *URL) Has(name string) bool {
	return slices.ContainsFunc(u.parts, func(p piece) bool { return p.name == name })
}

// Names calls yield for each placeholder in the URL.
func (u *URL) Names(yield func(string) bool) {
	for _, p := range u.parts {
		if p.name != "" && !yield(p.name) {
			return
		}
	}
}

// HasAny reports whether the URL has any placeholder.
func (u *URL) HasAny() bool {
	return slices.ContainsFunc(u.parts, func(p piece) bool { return p.name != "" })
}

// Fill makes the URL for one order; false: there is none for it. A value in the path must be
// one segment for every server that may read it, escaped or not, so that a buyer who chooses
// a ref does not choose the route that is asked.
func (u *URL) Fill(values Lookup) (string, bool) {
	var b strings.Builder
	for _, p := range u.parts {
		if p.name == "" {
			b.WriteString(p.text)
			continue
		}
		switch value := values(p.name); {
		case value == "" || !p.query && !isSegment(value):
			return "", false
		case p.query:
			b.WriteString(url.QueryEscape(value))
		default:
			b.WriteString(url.PathEscape(value))
		}
	}
	return b.String(), true
}

// isSegment reports whether a value is one segment of a path, and no dot segment.
func isSegment(value string) bool {
	return strings.Trim(value, ".") != "" && !strings.ContainsAny(value, `/\%;?#`) &&
		!strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}
