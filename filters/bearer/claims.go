package bearer

import (
	"bytes"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4/json"
)

// lastDate is the last second of the year 9999: a NumericDate beyond it is a
// mistake, usually milliseconds.
const lastDate = 253_402_300_799

// claims are the registered claims (RFC 7519, section 4.1) that decide whether a token is valid.
type claims struct {
	issuer    string
	audience  []string
	expires   time.Time // zero: it does not
	notBefore time.Time // zero: there is no such time
	all       map[string]any
}

// readClaims reads a payload. A name that appears twice, at any depth, is a
// fault, and so is a registered claim that is not of its type.
func readClaims(payload []byte) (claims, error) {
	var c claims
	var all map[string]any
	if !utf8.Valid(payload) || !bytes.HasPrefix(bytes.TrimLeft(payload, " \t\r\n"), []byte("{")) || json.Unmarshal(payload, &all) != nil {
		return c, ErrMalformed
	}
	c.all = all
	ok := true
	if iss, there := all["iss"]; there {
		c.issuer, ok = iss.(string)
	}
	if ok {
		c.audience, ok = readAudience(all["aud"])
	}
	if !ok {
		return c, ErrMalformed
	}
	if c.expires, ok = readDate(all["exp"]); ok {
		c.notBefore, ok = readDate(all["nbf"])
	}
	if !ok {
		return c, ErrDate
	}
	return c, nil
}

func (c *claims) isFor(audience string) bool { return slices.Contains(c.audience, audience) }

// readAudience reads one audience or an array of them; nil is none.
func readAudience(v any) ([]string, bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case string:
		return []string{v}, true
	case []any:
		out := make([]string, 0, len(v))
		for _, one := range v {
			text, ok := one.(string)
			if !ok {
				return nil, false
			}
			out = append(out, text)
		}
		return out, true
	}
	return nil, false
}

// readDate reads a NumericDate, which may have a fraction; nil is none.
func readDate(v any) (time.Time, bool) {
	if v == nil {
		return time.Time{}, true
	}
	seconds, ok := v.(float64)
	if !ok || seconds < 0 || seconds > lastDate {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(seconds * 1000)), true
}
