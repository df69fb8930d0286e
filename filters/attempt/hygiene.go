package attempt

import (
	"net/http"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/filters/route"
	"github.com/stockgate/stockgate/internal/sale"
)

// Check refuses what the request's head alone shows to be wrong. Call it before the body is read.
//
// TLS early data is too_early: it can be replayed (RFC 8470). These are malformed: an
// upgrade and CONNECT, which are not orders; a path that servers split in different ways; a Connection header that names other headers,
// because a proxy would drop those, the token among them; trailers; and an encoded body,
// which the gate and the shop could decode differently.
func (rd *Reader) Check(r *http.Request) *sale.Refusal {
	if r.TLS != nil && !r.TLS.HandshakeComplete {
		return sale.Refuse(sale.TooEarly)
	}
	if r.Method == http.MethodConnect {
		return malformed("the method", "CONNECT cannot buy")
	}
	if why, bad := RawPathUnsafe(r.URL.EscapedPath()); bad {
		return malformed("the path", "it holds "+why)
	}
	if len(r.Header["Upgrade"]) > 0 {
		return malformed("Upgrade", "an attempt cannot change the protocol")
	}
	for _, v := range r.Header["Connection"] {
		if !tokens(v, "close", "keep-alive", "te") {
			return malformed("Connection", "it may hold close, keep-alive and te only")
		}
	}
	for _, v := range r.Header["Content-Encoding"] {
		if !tokens(v, "identity") {
			return malformed("Content-Encoding", "send the body without encoding")
		}
	}
	if len(r.Header[contentType]) > 1 {
		return malformed(contentType, "the header appears twice")
	}
	if len(r.Header["Trailer"]) > 0 {
		return malformed("Trailer", trailersWhat)
	}
	return trailers(r)
}

const trailersWhat = "trailers are not accepted: they would reach the shop behind the gate's checks"

// trailers refuses announced trailers and, once the body has been read, received ones.
func trailers(r *http.Request) *sale.Refusal {
	if r.Trailer != nil { // empty: the reserved ones have been removed
		return malformed("Trailer", trailersWhat)
	}
	return nil
}

// tokens tells whether a comma-separated list (RFC 9110, section 5.6.1) holds
// nothing but the given tokens, in any case.
func tokens(list string, allowed ...string) bool {
next:
	for list != "" {
		var token string
		token, list, _ = strings.Cut(list, ",")
		token = strings.Trim(token, " \t")
		for _, a := range allowed {
			if token == "" || strings.EqualFold(token, a) {
				continue next
			}
		}
		return false
	}
	return true
}

// methodHeaders change the method in some frameworks: Rack, Symfony, Laravel,
// Express, Spring, OData and others.
var methodHeaders = []string{"x-http-method-override", "x-http-method", "x-method-override"}

// StripMethodOverride removes the headers by which frameworks let a request
// change its method, in every spelling that a CGI environment makes the same.
func StripMethodOverride(h http.Header) {
	for name := range h {
		for _, m := range methodHeaders {
			if len(name) == len(m) && sameHeader(name, m) {
				delete(h, name)
			}
		}
	}
}

// routeHeaders change the path in some frameworks: IIS, old Symfony and Zend.
var routeHeaders = []string{"x-original-url", "x-rewrite-url"}

// StripRouteOverride removes the headers by which frameworks let a request change
// its path, and those that change its method where it is GET, HEAD or OPTIONS. Such a
// request would pass the gate as one route and reach the shop as another.
func StripRouteOverride(r *http.Request) {
	for name := range r.Header {
		for _, m := range routeHeaders {
			if len(name) == len(m) && sameHeader(name, m) {
				delete(r.Header, name)
			}
		}
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		StripMethodOverride(r.Header)
	}
}

// maxOverrides bounds the different methods for which one request may ask. Ordinary requests
// ask for one at most.
const maxOverrides = 4

// OverriddenMethods appends the methods that a request asks frameworks to take instead of its
// own, in capitals and each once: all values of the headers that change it, and of the
// parameter _method in its query, in any spelling. Frameworks differ on which of them counts.
// false: there are too many, and only a part of them is appended.
func OverriddenMethods(methods []string, h http.Header, query string) (all []string, complete bool) {
	most := len(methods) + maxOverrides
	for name, values := range h {
		for _, m := range methodHeaders {
			if len(name) != len(m) || !sameHeader(name, m) {
				continue
			}
			for _, list := range values {
				for method := range strings.SplitSeq(list, ",") {
					methods = addMethod(methods, method)
					if len(methods) > most {
						return methods[:most], false
					}
				}
			}
		}
	}
	for p := route.ParamsOf(query); p.Next(); {
		if !sameParam(p.Name, methodParam) {
			continue
		}
		if methods = addMethod(methods, p.Value); len(methods) > most {
			return methods[:most], false
		}
	}
	return methods, true
}

// addMethod adds a method in capitals, if it is one that is not there yet.
func addMethod(methods []string, method string) []string {
	method = strings.ToUpper(strings.TrimSpace(method))
	if method == "" || slices.Contains(methods, method) {
		return methods
	}
	return append(methods, method)
}

// OverridesMethod reports whether a request with this header and query asks frameworks to take
// another method than its own.
func OverridesMethod(h http.Header, query string) bool {
	methods, _ := OverriddenMethods(nil, h, query)
	return len(methods) > 0
}

// CheckOptions refuses an OPTIONS request that some server could take for another one: with a
// body, or with a query that changes its method. Questions of browsers (CORS) have neither. body
// is what ReadBody returned.
func CheckOptions(r *http.Request, body []byte) *sale.Refusal {
	if OverridesMethod(nil, r.URL.RawQuery) {
		return malformed(methodParam, methodWhat)
	}
	if len(body) > 0 {
		return malformed("the body", "OPTIONS has none")
	}
	return nil
}

// FindsItemElsewhere reports whether the item of a line may stand elsewhere than in the query and
// the body, so that a request with neither may be an attempt.
func (rd *Reader) FindsItemElsewhere() bool {
	return rd.rowsLookedUp || rd.findsItemIn(func(kind ValueKind) bool { return kind != JSON && kind != Form && kind != Param && kind != Query })
}

// FindsItemInQuery reports whether some server may read the item of a line in the query: frameworks merge it
// with the fields of a form.
func (rd *Reader) FindsItemInQuery() bool {
	return rd.findsItemIn(func(kind ValueKind) bool { return kind == Param || kind == Query || kind == Form })
}

func (rd *Reader) findsItemIn(is func(ValueKind) bool) bool {
	return slices.ContainsFunc(rd.lines, func(l lineSource) bool {
		return slices.ContainsFunc(l.sku, func(in input) bool { return is(in.kind) })
	})
}

// Strippable reports whether a header may be one that StripReserved, StripMethodOverride,
// StripRouteOverride, StripH2C or StripNames removes: a request without such names needs
// none of them.
func Strippable(name string) bool {
	if !plainName(name) || Reserved(name) || strings.EqualFold(name, "Upgrade") || strings.EqualFold(name, http2Settings) {
		return true
	}
	return len(name) < 32 && overrideLengths&(1<<len(name)) != 0 && name[0]|0x20 == 'x'
}

// AnyStrippable reports whether a header has a Strippable name: one pass instead of one
// for each Strip function.
func AnyStrippable(h http.Header) bool {
	for name := range h {
		if Strippable(name) {
			return true
		}
	}
	return false
}

// overrideLengths has a bit for each length of a name that overrides a route or method.
var overrideLengths = func() (bits uint32) {
	for _, names := range [][]string{methodHeaders, routeHeaders} {
		for _, name := range names {
			bits |= 1 << len(name)
		}
	}
	return bits
}()

// StripNames removes headers whose names have anything but letters, digits and hyphens:
// CGI servers write an underscore for each other character, and so make one header of
// two. keep says which ones stay.
func StripNames(h http.Header, keep func(name string) bool) {
	for name := range h {
		if !plainName(name) && name != ":protocol" && !keep(name) { // of an extended CONNECT (RFC 8441)
			delete(h, name)
		}
	}
}

// plainName says that a name consists of letters, digits and hyphens.
func plainName(name string) bool {
	for i := range len(name) {
		if !plainNames[name[i]] {
			return false
		}
	}
	return true
}

var plainNames = func() (t [256]bool) {
	for c := range t {
		t[c] = 'a' <= c|0x20 && c|0x20 <= 'z' && c < 0x80 || '0' <= c && c <= '9' || c == '-'
	}
	return t
}()

const http2Settings = "Http2-Settings"

// StripH2C removes requests to upgrade to HTTP/2 without TLS (RFC 7540, section 3.2),
// which some clients send by default. A proxy that forwards one gives the client a
// tunnel past every gate. Other upgrades stay.
func StripH2C(h http.Header) {
	_, asks := h[http2Settings]
	delete(h, http2Settings)
	upgrades, others := without(h["Upgrade"], "h2c")
	if !upgrades && !asks {
		return
	}
	gone := []string{http2Settings}
	if setOrDelete(h, "Upgrade", others); len(others) == 0 {
		gone = append(gone, "Upgrade")
	}
	_, left := without(h["Connection"], gone...)
	setOrDelete(h, "Connection", left)
}

// without removes tokens from a header's lists, and reports whether there were any.
func without(lists []string, tokens ...string) (found bool, left []string) {
	for _, list := range lists {
		for token := range strings.SplitSeq(list, ",") {
			token = strings.Trim(token, " \t")
			if slices.ContainsFunc(tokens, func(t string) bool { return strings.EqualFold(t, token) }) {
				found = true
			} else if token != "" {
				left = append(left, token)
			}
		}
	}
	return found, left
}

func setOrDelete(h http.Header, name string, tokens []string) {
	if len(tokens) == 0 {
		delete(h, name)
		return
	}
	h[name] = []string{strings.Join(tokens, ", ")}
}

// StripReserved removes every Stockgate-* header, in any case and with any character
// that is no letter or digit for the hyphen (CGI and PHP make them the same). Use it
// for headers and for trailers: a client must not be able to speak to the shop in the
// gate's name.
func StripReserved(h http.Header) {
	for name := range h {
		if Reserved(name) {
			delete(h, name)
		}
	}
}

const reserved = "stockgate-"

// Reserved reports whether a header's name is one that StripReserved removes.
func Reserved(name string) bool {
	return len(name) >= len(reserved) && sameHeader(name[:len(reserved)], reserved)
}

// sameHeader compares a header's name with one in lower case of the same
// length, taking all that is no letter or digit for hyphens.
func sameHeader(name, lower string) bool {
	for i := range len(lower) {
		c := name[i]
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case !plainNames[c]:
			c = '-'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
