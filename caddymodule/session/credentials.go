package session

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/attempt"
)

// Options say by what a session is known.
type Options struct {
	// Credentials are where a request has the credentials of its session, such as
	// {header.Authorization} and {cookie.session}, or {path.2} where the path names the cart.
	// Each counts by itself: two requests that share one of them wait for each other.
	Credentials []string `json:"credentials"`
	// Except are paths, each as in a path matcher, whose requests do not wait: those that the
	// shop sends to itself while it serves another one. Default: none.
	Except []string `json:"except,omitempty"`
	// ExceptMatch are matchers of more requests that do not wait; one of the sets suffices.
	// Default: none.
	ExceptMatch caddyhttp.RawMatcherSets `json:"except_match,omitempty" caddy:"namespace=http.matchers"`
	// Shared: requests at all edges wait for each other, by a lease in Redis. Where Redis does not
	// answer, only those at one edge do. Default: false.
	Shared bool `json:"shared,omitempty"`

	named []caddyfile.Token // matchers of the Caddyfile that are to be resolved
}

// Credentials reads the credentials of requests.
type Credentials struct {
	values []attempt.Value
	except except
}

// Compile checks the options; nil: there are none.
func (o *Options) Compile() (*Credentials, error) {
	if o == nil {
		return nil, nil
	}
	if len(o.Credentials) == 0 {
		return nil, errors.New("one_at_a_time: say by what a session is known, such as {header.Authorization} {cookie.session}")
	}
	c := &Credentials{except: except{paths: caddyhttp.MatchPath(slices.Clone(o.Except))}}
	for _, expr := range o.Credentials {
		v, err := attempt.Compile(expr)
		switch {
		case err != nil:
			return nil, fmt.Errorf("one_at_a_time: %w", err)
		case !slices.Contains([]attempt.Kind{attempt.Header, attempt.Cookie, attempt.Path, attempt.Text}, v.Kind()):
			return nil, fmt.Errorf("one_at_a_time: %s is no credential that a request has before its body is read: write {header.…}, {cookie.…} or {path.…}", expr)
		}
		c.values = append(c.values, v)
	}
	if err := c.except.paths.Provision(caddy.Context{}); err != nil {
		return nil, fmt.Errorf("one_at_a_time: except: %w", err)
	}
	return c, o.checkExcept()
}

// MayChange says whether a request may change something by its method.
func (c *Credentials) MayChange(r *http.Request) bool {
	return c != nil && r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

// Keys returns the credentials of a request, sorted and each once; none: it has no session.
func (c *Credentials) Keys(r *http.Request, repl *caddy.Replacer) []Key {
	var keys []Key
	add := func(v *attempt.Value, text string) {
		if text = normal(text); text != "" {
			sum := sha256.Sum256([]byte(v.Name() + "\x00" + text))
			keys = append(keys, Key(sum[:len(Key{})]))
		}
	}
	for i := range c.values {
		switch v := &c.values[i]; v.Kind() {
		case attempt.Header:
			for _, value := range r.Header[v.Name()] {
				add(v, value)
			}
		case attempt.Cookie:
			for _, cookie := range r.CookiesNamed(v.Name()) {
				add(v, cookie.Value)
			}
		case attempt.Path:
			segments := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
			if v.Index() < len(segments) {
				add(v, segments[v.Index()])
			}
		default:
			add(v, repl.ReplaceAll(v.Asked(), ""))
		}
	}
	slices.SortFunc(keys, func(a, b Key) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(keys)
}

// normal returns a credential as servers read it: a cookie may be quoted and escaped, and the
// name of an authentication scheme has no case (RFC 9110, section 11.1).
func normal(text string) string {
	text = strings.Trim(text, " \t\"")
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	if scheme, rest, found := strings.Cut(text, " "); found {
		text = strings.ToLower(scheme) + " " + strings.TrimLeft(rest, " ")
	}
	return text
}
