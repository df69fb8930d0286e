package attempt

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"

	"github.com/stockgate/stockgate/internal/sale"
)

// MaxKey is how many characters an idempotency key may have.
const MaxKey = 255

// unique compiles a value that tells attempts apart. Constant text, even around a
// placeholder, would be the same for all attempts that lack the rest.
func (c *compiler) unique(role string, vs Values) ([]input, error) {
	for _, v := range vs {
		if _, one := alone(v.text); v.kind == Constant || v.kind == Text && !one {
			return nil, fmt.Errorf("%s: %q has text of its own, which would be the same in all attempts: write placeholders, one for each value", role, v.text)
		}
	}
	return c.values(role, vs, func(string) string { return "" })
}

// repeat adds what identifies a repeated attempt: the shop's ref, and the idempotency
// key with the fingerprint of the request.
func (rd *Reader) repeat(a *sale.Attempt, got []found, env *Env) *sale.Refusal {
	if f, label := first(rd.ref, got, env); f.text != "" {
		if what := checkItemName(f.text); what != "" {
			return malformed(label, what)
		}
		a.Ref, a.RefShared = f.text, rd.refShared
	}
	f, label := first(rd.key, got, env)
	if f.text == "" {
		return nil
	}
	key, what := parseKey(f.text)
	if what != "" {
		return malformed(label, what)
	}
	a.Key = key
	return nil
}

// parseKey reads an idempotency key. The header is defined as a String of RFC 8941,
// section 3.3.3, which has quotes around it (draft-ietf-httpapi-idempotency-key-header,
// section 2.1); most clients send it without. Both forms give the same key. Anything
// that a parser could take for two values, or for a value with parameters, is
// malformed.
func parseKey(s string) (key, what string) {
	key = s
	if s[0] == '"' {
		if key, what = unquote(s[1:]); what != "" {
			return "", what
		}
	} else if strings.ContainsAny(s, `",;\`) {
		return "", "a quote, comma, semicolon or backslash in it needs quotes around it all"
	}
	switch {
	case key == "":
		return "", "it is empty"
	case len(key) > MaxKey:
		return "", "it is longer than 255 characters"
	case strings.Trim(key, " ") != key:
		return "", "there is space around it"
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return "", "it is not printable ASCII"
		}
	}
	return key, ""
}

// unquote reads the rest of an RFC 8941 String behind its first quote.
func unquote(s string) (text, what string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			if i != len(s)-1 {
				return "", "something follows the quoted key"
			}
			return b.String(), ""
		case '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", "a backslash stands before neither a quote nor a backslash"
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "a quote opens it and none closes it"
}

// printOf is the same for requests with the same content: the SHA-256 of method, path,
// query, media type and body. Each part but the last is preceded by its length, so that
// none can run into the next.
func printOf(r *http.Request, body []byte) string {
	mediaType, _, _ := strings.Cut(r.Header.Get(contentType), ";")
	hash := sha256.New()
	var length [8]byte
	for _, part := range [...]string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, strings.ToLower(strings.TrimSpace(mediaType))} {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	if boundary, what := boundaryOf(r.Header.Get(contentType)); what == "" { // each time a browser draws another one
		body = bytes.ReplaceAll(body, []byte("--"+boundary), nil)
	}
	hash.Write(body)
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil))
}
