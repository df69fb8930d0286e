package inquiry

import (
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/filters/route"
)

// Buyer is in whose name the shop is asked.
type Buyer struct {
	header      http.Header
	query, host string
}

// BuyerOf returns the sender of a request: the end-to-end fields of its header, without those
// that are about its body, its cache or its repetition, and its query.
func BuyerOf(r *http.Request) *Buyer {
	return &Buyer{header: headerOf(r), query: r.URL.RawQuery, host: r.Host}
}

// WithoutQuery is the same buyer without the query: what says how an order ended must not be
// chosen by a parameter.
func (b *Buyer) WithoutQuery() *Buyer { return &Buyer{header: b.header, host: b.host} }

func headerOf(r *http.Request) http.Header {
	h := make(http.Header, len(r.Header)+4)
	for name, values := range r.Header {
		if !isDropped(name) {
			h[name] = values
		}
	}
	for _, value := range r.Header["Connection"] { // RFC 9110, section 7.6.1
		for name := range strings.SplitSeq(value, ",") {
			delete(h, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	if ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string); ip != "" {
		h["X-Forwarded-For"] = []string{ip}
	}
	h["X-Forwarded-Host"] = []string{r.Host}
	h["X-Forwarded-Proto"] = []string{"http"}
	if r.TLS != nil {
		h["X-Forwarded-Proto"] = []string{"https"}
	}
	h["Accept"] = []string{"application/json"}
	h["Accept-Encoding"] = []string{"identity"}
	return h
}

// droppedFields are not sent on. X-Forwarded-* are set again.
var droppedFields = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true, "Proxy-Connection": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Http2-Settings": true,
	"Host": true, "Range": true, "Expect": true, "Idempotency-Key": true, "Forwarded": true,
}

func isDropped(name string) bool {
	if droppedFields[name] {
		return true
	}
	for _, prefix := range []string{"Content-", "If-", "Stockgate-", "X-Forwarded-", "X-Http-Method", "X-Method-Override"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// addQuery adds the buyer's query to that of a URL. Names that the URL has itself are left
// out, in any case and in any form that a framework takes for the same name.
func addQuery(at, raw string) string {
	if raw == "" {
		return at
	}
	own, err := url.Parse(at)
	if err != nil {
		return at
	}
	taken := make(map[string]bool)
	for name := range own.Query() {
		for _, one := range spellings(name) {
			taken[one] = true
		}
	}
	var b strings.Builder
	b.WriteString(at)
	separator := byte('?')
	if own.RawQuery != "" || own.ForceQuery {
		separator = '&'
	}
	for pair := range strings.SplitSeq(raw, "&") {
		name, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil || name == "" || strings.Contains(pair, ";") || strings.ContainsFunc(name, unicode.IsControl) ||
			slices.ContainsFunc(spellings(name), func(one string) bool { return taken[one] }) {
			continue
		}
		b.WriteByte(separator)
		b.WriteString(pair)
		separator = '&'
	}
	return b.String()
}

// spellings are the names under which frameworks file a parameter: fields[] and Fields.a are
// fields for some, and PHP replaces what no variable's name may have, so that cart.id is cart_id.
func spellings(name string) []string {
	name = strings.ToLower(strings.TrimSpace(name))
	base := name
	if at := strings.IndexAny(name, "[."); at >= 0 {
		base = name[:at]
	}
	return []string{string(route.PHPName(nil, name)), string(route.PHPName(nil, base))}
}
