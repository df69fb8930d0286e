package session

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/uuid"

	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/route"
)

// Options say by what a session is known.
type Options struct {
	// Credentials are where a request has the credentials of its session, such as
	// {header.Authorization} and {cookie.session}, or {path.2} where the path names the cart.
	// {lookup.PATH} is the id of the cart in the shop's answer to Lookup: the cart is looked up
	// before its turn, and again when the request has it. Each counts by itself: two requests
	// that share one of them wait for each other.
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
	looked []string // paths in the shop's answer to a lookup
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
	for _, path := range o.Except {
		if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "*") {
			return nil, fmt.Errorf("one_at_a_time: except %q is no path and no matcher, so it excepts no request: write a path such as /callbacks/*, or @name", path)
		}
	}
	c := &Credentials{except: except{paths: caddyhttp.MatchPath(slices.Clone(o.Except))}}
	for _, expr := range o.Credentials {
		v, err := attempt.Compile(expr)
		switch {
		case err != nil:
			return nil, fmt.Errorf("one_at_a_time: %w", err)
		case v.Kind() == attempt.Lookup:
			c.looked = append(c.looked, v.Name())
			continue
		case !slices.Contains([]attempt.ValueKind{attempt.Header, attempt.Cookie, attempt.Path, attempt.Text}, v.Kind()):
			return nil, fmt.Errorf("one_at_a_time: %s is no credential that a request has before its body is read: write {header.…}, {cookie.…} or {path.…}, or {lookup.…} for the id of a cart that is looked up", expr)
		}
		c.values = append(c.values, v)
	}
	if err := c.except.paths.Provision(caddy.Context{}); err != nil {
		return nil, fmt.Errorf("one_at_a_time: except: %w", err)
	}
	return c, o.checkExcept()
}

// MayChange reports whether a request may change something by its method.
func (c *Credentials) MayChange(r *http.Request) bool {
	return c != nil && r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

// InPathOnly reports whether each credential is a part of the path.
func (o *Options) InPathOnly() bool {
	return !slices.ContainsFunc(o.Credentials, func(expr string) bool {
		v, err := attempt.Compile(expr)
		return err != nil || v.Kind() != attempt.Path
	})
}

// What a request with a credential may not have: servers would differ on which session it is of.
var (
	errOddPath   = errors.New("path: servers may read too many others in it")
	errBackslash = errors.New("cookie: the value holds a backslash, which some servers take for an escape")
	errMostKeys  = fmt.Errorf("the request has more than %d credentials of sessions", mostKeys)
)

// mostKeys bounds the credentials of a request: browsers send a cookie of one name once for each
// path and domain that it was set for.
const mostKeys = 32

// Keys returns the credentials of a request, sorted and each once; none: it has no session. What
// servers may read as the same credential is the same, so that no spelling passes by a request
// that is at the shop; two sessions whose credentials are taken for one wait for each other. An
// error says what servers would read differently.
func (c *Credentials) Keys(r *http.Request, repl *caddy.Replacer) ([]Key, error) {
	var keys []Key
	add := func(v *attempt.Value, text string) { keys = appendKey(keys, v.Name(), text) }
	for i := range c.values {
		switch v := &c.values[i]; v.Kind() {
		case attempt.Header:
			for _, value := range r.Header[v.Name()] {
				add(v, value)
			}
		case attempt.Cookie:
			wanted, odd := cookieName(v.Name()), false
			eachCookie(r.Header["Cookie"], func(name, value string) {
				if cookieName(name) == wanted {
					odd = odd || strings.Contains(value, `\`)
					add(v, value)
				}
			})
			if odd {
				return nil, errBackslash
			}
		case attempt.Path:
			paths, complete := []string{r.URL.Path}, true
			if escaped := r.URL.EscapedPath(); route.ShapeOf(escaped)&route.Odd != 0 {
				paths, complete = route.Readings(escaped)
			}
			if !complete {
				return nil, errOddPath
			}
			for _, path := range paths {
				segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
				if v.Index() < len(segments) {
					add(v, segments[v.Index()])
				}
			}
		default:
			add(v, repl.ReplaceAll(v.Asked(), ""))
		}
	}
	if keys = sorted(keys); len(keys) > mostKeys {
		return nil, errMostKeys
	}
	return keys, nil
}

// Looked returns the paths of the credentials in the shop's answer to a lookup.
func (c *Credentials) Looked() []string {
	if c == nil {
		return nil
	}
	return c.looked
}

// InRequest reports whether a request has credentials by itself, and not in its cart only.
func (c *Credentials) InRequest() bool { return c != nil && len(c.values) > 0 }

// CartKeys returns the credentials of a cart, sorted and each once. ids are its ids by their paths. None of them
// is a key of Keys.
func (c *Credentials) CartKeys(ids map[string]string) (keys []Key) {
	for path, id := range ids {
		keys = appendKey(keys, "lookup "+path, id) // no header and no cookie has a space in its name
	}
	return sorted(keys)
}

func appendKey(keys []Key, name, text string) []Key {
	if text = normal(text); text == "" {
		return keys
	}
	sum := sha256.Sum256([]byte(name + "\x00" + text))
	return append(keys, Key(sum[:len(Key{})]))
}

// sorted returns keys in the one order in which all requests wait for them.
func sorted(keys []Key) []Key {
	slices.SortFunc(keys, func(a, b Key) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(keys)
}

// eachCookie yields every cookie that some server finds in the header: commas separate cookies for
// some (RFC 2109), and belong to values for others.
func eachCookie(headers []string, yield func(name, value string)) {
	for _, header := range headers {
		for whole := range strings.SplitSeq(header, ";") {
			name, value, _ := strings.Cut(whole, "=")
			yield(name, value)
			if !strings.Contains(whole, ",") {
				continue
			}
			for part := range strings.SplitSeq(whole, ",") {
				name, value, _ := strings.Cut(part, "=")
				yield(name, value)
			}
		}
	}
}

// cookieName is one name for all that servers may take for the same, as PHP does, which replaces
// what no variable's name may have.
func cookieName(name string) string { return string(route.PHPName(nil, normal(name))) }

// unescapes is how often a credential may be decoded on its way through proxies and frameworks.
const unescapes = 3

// normal returns a credential without that on which servers differ: quotes, escapes, white space, the form of
// an id, and the case, which the name of an authentication scheme has not (RFC 9110, section 11.1), nor a
// credential for some databases.
func normal(text string) string {
	for range unescapes {
		plain, err := url.PathUnescape(text)
		if err != nil || plain == text {
			break
		}
		text = plain
	}
	words := strings.FieldsFunc(strings.ToLower(text), aside)
	for i, word := range words {
		words[i] = sameID(word)
	}
	return strings.Join(words, " ")
}

// sameID returns an id in the one form of those in which servers read it: a UUID has dashes or none, or is in
// braces, or a URN (RFC 9562, section 4); a number may have zeros before it.
func sameID(word string) string {
	if id, err := uuid.Parse(word); err == nil {
		return id.String()
	}
	if number := strings.TrimLeft(word, "0"); strings.Trim(number, "0123456789") == "" && word != "" {
		return cmp.Or(number, "0")
	}
	return word
}

// aside says that servers may leave a character out at the ends of a credential, or read it as a
// space: a byte that is no UTF-8 may be white space of Latin-1.
func aside(r rune) bool {
	return r <= ' ' || r == 0x7f || r == '"' || r == '+' || r == utf8.RuneError || r == '\ufeff' || unicode.IsSpace(r)
}
