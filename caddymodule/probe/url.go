package probe

import (
	"errors"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// probeURL makes the URL at which the shop is asked about one reservation.
type probeURL struct {
	parts []urlPart
	// host is the host of the URL, for the log.
	host string
}

// urlPart is literal text or a value.
type urlPart struct {
	text  string
	value string // "{id}", "{ref}", or "": text
	query bool   // it stands behind the question mark
}

// compileProbeURL reads a URL with {id}, {ref} or both in its path or query. It fills in
// other placeholders at once.
func compileProbeURL(text string) (*probeURL, error) {
	text = caddy.NewReplacer().ReplaceKnown(text, "")
	u, query := new(probeURL), false
	for rest := text; rest != ""; {
		at, value := strings.IndexByte(rest, '{'), ""
		switch {
		case at < 0:
			at = len(rest)
		case strings.HasPrefix(rest[at:], "{id}"):
			value = "{id}"
		case strings.HasPrefix(rest[at:], "{ref}"):
			value = "{ref}"
		default:
			return nil, errors.New("the URL of the probe has a brace that is no placeholder: there are {id}, {ref} and those that are known when the configuration loads, such as {env.SHOP}")
		}
		if at > 0 {
			u.parts = append(u.parts, urlPart{text: rest[:at]})
		}
		query = query || strings.Contains(rest[:at], "?")
		if value != "" {
			u.parts = append(u.parts, urlPart{value: value, query: query})
		}
		rest = rest[at+len(value):]
	}
	return u, u.check()
}

// check checks the URL for all possible values. Its errors do not repeat the URL, which may
// contain a secret.
func (u *probeURL) check() error {
	text, ok := u.fill("a", "a")
	other, _ := u.fill("b", "b")
	one, err := url.Parse(text)
	if err != nil || !ok {
		return errors.New("the URL of the probe cannot be read: give a whole http or https URL")
	}
	two, err := url.Parse(other)
	switch {
	case text == other:
		return errors.New("the URL of the probe names no order: put {id} (the reservation) or {ref} (the shop's own name of the order) into its path or query")
	case one.Scheme != "http" && one.Scheme != "https" || one.Host == "" || one.Opaque != "":
		return errors.New("the URL of the probe must be a whole http or https URL")
	case err != nil || two.Scheme != one.Scheme || two.Host != one.Host:
		return errors.New("the URL of the probe has {id} or {ref} outside of its path and query: who is asked must not depend on the order")
	case one.User != nil:
		return errors.New("the URL of the probe has a user in it: send the credentials with `header Authorization …`")
	case one.Fragment != "" || strings.Contains(text, "#"):
		return errors.New("the URL of the probe has a fragment, which is never sent: leave out # and what follows")
	}
	u.host = one.Host
	return nil
}

// byRef says whether the URL needs the shop's own name of the order.
func (u *probeURL) byRef() bool { return u.has("{ref}") }

// byRefAlone says whether the URL names the order by ref only, without the reservation.
func (u *probeURL) byRefAlone() bool { return u.has("{ref}") && !u.has("{id}") }

func (u *probeURL) has(value string) bool {
	for _, p := range u.parts {
		if p.value == value {
			return true
		}
	}
	return false
}

// fill makes the URL for one reservation; false: there is none for it. A value in the path
// must be one segment for every server that may read it, escaped or not, so that a buyer
// who chooses a ref does not choose the route that is asked.
func (u *probeURL) fill(id, ref string) (string, bool) {
	values := map[string]string{"{id}": id, "{ref}": ref}
	var b strings.Builder
	for _, p := range u.parts {
		value, named := values[p.value]
		switch {
		case !named:
			b.WriteString(p.text)
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

// isSegment says whether a value is one segment of a path, and no dot segment.
func isSegment(value string) bool {
	return strings.Trim(value, ".") != "" && !strings.ContainsAny(value, `/\%;?#`) &&
		!strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}
