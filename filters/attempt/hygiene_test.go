package attempt_test

import (
	"crypto/tls"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
)

func TestCheck(t *testing.T) {
	rd := lineReader(t, "{json.sku}", "")
	for name, tc := range map[string]struct {
		change func(*http.Request)
		want   string
	}{
		"plain":                  {func(*http.Request) {}, ""},
		"TLS":                    {func(r *http.Request) { r.TLS = &tls.ConnectionState{HandshakeComplete: true} }, ""},
		"TLS early data":         {func(r *http.Request) { r.TLS = &tls.ConnectionState{} }, "too_early"},
		"CONNECT":                {func(r *http.Request) { r.Method = "CONNECT" }, "malformed the method"},
		"Upgrade":                {set("Upgrade", "websocket"), "malformed Upgrade"},
		"empty Upgrade":          {set("Upgrade", ""), "malformed Upgrade"},
		"Connection":             {set("Connection", "Keep-Alive, TE,, close"), ""},
		"Connection, twice":      {set("Connection", "close", "te"), ""},
		"Connection of a header": {set("Connection", "close, Stockgate-Token"), "malformed Connection"},
		"second Connection":      {set("Connection", "close", "X-User-Id"), "malformed Connection"},
		"Connection Upgrade":     {set("Connection", "Upgrade"), "malformed Connection"},
		"Connection, odd space":  {set("Connection", "close\u00a0"), "malformed Connection"},
		"identity":               {set("Content-Encoding", "Identity"), ""},
		"gzip":                   {set("Content-Encoding", "gzip"), "malformed Content-Encoding"},
		"identity, gzip":         {set("Content-Encoding", "identity, gzip"), "malformed Content-Encoding"},
		"second encoding":        {set("Content-Encoding", "identity", "br"), "malformed Content-Encoding"},
		"two types":              {set("Content-Type", "application/json", "application/json"), "malformed Content-Type"},
		"announced trailers":     {func(r *http.Request) { r.Trailer = http.Header{"X": nil} }, "malformed Trailer"},
		"Trailer header":         {set("Trailer", "X"), "malformed Trailer"},
	} {
		r := request("POST", "/", jsonType, `{"sku":"a"}`)
		tc.change(r)
		got := describe(rd.Check(r))
		if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func set(name string, vals ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[name] = vals }
}

func TestStrip(t *testing.T) {
	for name, tc := range map[string]struct {
		strip      func(http.Header)
		gone, stay []string
	}{
		"reserved": {
			attempt.StripReserved,
			[]string{"Stockgate-Token", "stockgate-token", "STOCKGATE-X", "Stockgate_token", "Stockgate.Token", "Stockgate-", "stockgate_Reservation-x"},
			[]string{"Stockgate", "X-Stockgate-Token", "Stockgated", "Stock", "Authorization", ""},
		},
		"method override": {
			attempt.StripMethodOverride,
			[]string{"X-Http-Method-Override", "X-HTTP-Method-Override", "X-Http-Method", "X-Method-Override", "X_http_method_override", "X-Http_method.override"},
			[]string{"X-Http-Methods", "Method", "X-Method", "X-Http-Method-Override-Not", ""},
		},
	} {
		h := http.Header{}
		for _, k := range slices.Concat(tc.gone, tc.stay) {
			h[k] = []string{"x"}
		}
		tc.strip(h)
		if got := slices.Sorted(maps.Keys(h)); !slices.Equal(got, slices.Sorted(slices.Values(tc.stay))) {
			t.Errorf("%s: left %q", name, got)
		}
		tc.strip(nil) // a request without trailers has none
	}
}

func TestStripRouteOverride(t *testing.T) {
	header := func() http.Header {
		return http.Header{"X-Original-Url": {"/api/order"}, "X_rewrite.url": {"/api/order"}, "X-Http-Method-Override": {"POST"}, "X-Original": {"kept"}}
	}
	for method, want := range map[string][]string{
		"GET": {"X-Original"}, "HEAD": {"X-Original"}, "OPTIONS": {"X-Original"}, "POST": {"X-Http-Method-Override", "X-Original"},
	} {
		r := httptest.NewRequest(method, "/", nil)
		r.Header = header()
		attempt.StripRouteOverride(r)
		var got []string
		for name := range r.Header {
			got = append(got, name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: left %v, want %v", method, got, want)
		}
	}
}

func TestStrippable(t *testing.T) {
	for _, name := range []string{
		"Stockgate-Token", "stockgate_token", "STOCKGATE.x", "X-HTTP-Method-Override", "x_http_method", "X.Method-Override", "X-Original-URL", "x-rewrite_url",
	} {
		r := &http.Request{Method: http.MethodGet, Header: http.Header{name: {"a"}}}
		if !attempt.AnyStrippable(http.Header{"Host": nil, name: {"a"}}) {
			t.Errorf("%s is overlooked", name)
		}
		attempt.StripReserved(r.Header)
		attempt.StripRouteOverride(r)
		if len(r.Header) > 0 || !attempt.Strippable(name) {
			t.Errorf("%s: left %v, strippable %t", name, r.Header, attempt.Strippable(name))
		}
	}
	for _, name := range []string{"Host", "X-User-Id", "X-Forwarded-For", "Content-Type", "Stockgate", "Sec-Fetch-Mode", ""} {
		if attempt.Strippable(name) {
			t.Errorf("%q is strippable", name)
		}
	}
}

func TestStripH2C(t *testing.T) {
	for name, tc := range map[string]struct{ from, want http.Header }{
		"Java's client": {
			http.Header{"Connection": {"Upgrade, HTTP2-Settings"}, "Upgrade": {"h2c"}, "Http2-Settings": {"AAEAAEAA"}, "Accept": {"*/*"}},
			http.Header{"Accept": {"*/*"}},
		},
		"settings alone":  {http.Header{"Connection": {"keep-alive, http2-settings"}, "Http2-Settings": {""}}, http.Header{"Connection": {"keep-alive"}}},
		"in capitals":     {http.Header{"Connection": {"Upgrade"}, "Upgrade": {"H2C"}}, http.Header{}},
		"with others":     {http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket, h2c", "TLS/1.3"}}, http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket, TLS/1.3"}}},
		"another upgrade": {http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}, http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}},
		"none":            {http.Header{"Connection": {"close"}}, http.Header{"Connection": {"close"}}},
	} {
		attempt.StripH2C(tc.from)
		if !maps.EqualFunc(tc.from, tc.want, slices.Equal) {
			t.Errorf("%s: left %v, want %v", name, tc.from, tc.want)
		}
	}
}

func TestStripNames(t *testing.T) {
	h := http.Header{"Stockgate~Token": nil, "X_y": nil, "X.y": nil, "A b": nil, "Grpc_metadata": nil, "X-Y9": nil, ":protocol": nil}
	attempt.StripNames(h, func(name string) bool { return name == "Grpc_metadata" })
	if got := slices.Sorted(maps.Keys(h)); !slices.Equal(got, []string{":protocol", "Grpc_metadata", "X-Y9"}) {
		t.Errorf("left %q", got)
	}
	attempt.StripNames(nil, nil)
}

// All values count, in every header and spelling: frameworks differ on which one they take.
func TestOverriddenMethods(t *testing.T) {
	for _, c := range []struct {
		header http.Header
		query  string
		want   []string
	}{
		{header: http.Header{"X-Http-Method-Override": {" put "}}, want: []string{"PUT"}},
		{header: http.Header{"X_HTTP_Method": {"put"}}, want: []string{"PUT"}},
		{header: http.Header{"X-Method~Override": {"put"}}, want: []string{"PUT"}},
		{header: http.Header{"X-Method": {"put"}}},
		{header: http.Header{"X-Http-Method": {""}}},
		{header: http.Header{"X-Http-Method": {"GET"}, "X-Http-Method-Override": {"PUT"}, "X-Method-Override": {"DELETE"}}, want: []string{"DELETE", "GET", "PUT"}},
		{header: http.Header{"X-Http-Method": {"GET", "PUT", "put"}}, want: []string{"GET", "PUT"}},
		{header: http.Header{"X-Http-Method": {"PUT, x"}}, want: []string{"PUT", "X"}},
		{header: http.Header{"X-Http-Method": {",,GET ,put"}}, query: "_method=PATCH", want: []string{"GET", "PATCH", "PUT"}},
		{query: "_method=GET&_method=PUT", want: []string{"GET", "PUT"}},
		{query: "%5fmethod=PUT", want: []string{"PUT"}},
		{query: "_%4DETHOD=p%55t", want: []string{"PUT"}},
		{query: ".method=PUT", want: []string{"PUT"}},
		{query: "[method=PUT", want: []string{"PUT"}},
		{query: "_method[]=PUT", want: []string{"PUT"}},
		{query: "_method%00x=PUT", want: []string{"PUT"}},
		{query: ".method[]=PUT", want: []string{"PUT"}},
		{query: "_method=PUT&x=%zz", want: []string{"PUT"}},
		{query: "%zz&_method=+PUT", want: []string{"PUT"}},
		{query: "_method=PUT&x;y", want: []string{"PUT"}},
		{query: "x;_method=PUT", want: []string{"PUT"}},
		{query: "_method=PUT;x", want: []string{"PUT", "PUT;X"}},
		{query: "_method&method=PUT&a_method=PUT&x=_method"},
	} {
		got, complete := attempt.OverriddenMethods(nil, c.header, c.query)
		slices.Sort(got)
		if !slices.Equal(got, c.want) || !complete || attempt.OverridesMethod(c.header, c.query) != (len(c.want) > 0) {
			t.Errorf("%v ?%s: %q, complete %t, want %q", c.header, c.query, got, complete, c.want)
		}
	}
}

// A request cannot make the caller ask about any number of methods.
func TestTooManyOverriddenMethods(t *testing.T) {
	for _, many := range []struct {
		header http.Header
		query  string
	}{
		{header: http.Header{"X-Http-Method": {"A,B,C,D,E"}}},
		{query: "_method=A&_method=B&_method=C&_method=D&_method=E"},
		{http.Header{"X-Http-Method": {"A", "B", "C"}}, "_method=D&_method=E"},
	} {
		if got, complete := attempt.OverriddenMethods([]string{"POST"}, many.header, many.query); complete || len(got) != 5 || got[0] != "POST" {
			t.Errorf("%v ?%s: %q, complete %t", many.header, many.query, got, complete)
		}
	}
	if got, complete := attempt.OverriddenMethods([]string{"POST"}, http.Header{"X-Http-Method": {"A,B,C,D,A,POST"}}, ""); !complete || len(got) != 5 {
		t.Errorf("four methods: %q, complete %t", got, complete)
	}
}
