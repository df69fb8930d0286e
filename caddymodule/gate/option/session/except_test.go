package session_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
	"github.com/stockgate/stockgate/filters/route"
)

// A path is excepted where all servers read it so. Any other spelling of it waits.
func TestExceptedPaths(t *testing.T) {
	o := &session.Options{Credentials: []string{"{header.Authorization}"}, Except: []string{"/hooks/*"}}
	c, err := o.Compile()
	if err != nil {
		t.Fatal(err)
	}
	restRoute, ok := route.ParseQueryPath("rest_route=/wp-json")
	if !ok {
		t.Fatal("the parameter is not read")
	}
	for target, want := range map[string]bool{
		"/hooks/paid":                        true,
		"/hooks/paid?order=7":                true,
		"/Hooks/paid":                        true,
		"/hooks/caf%C3%A9":                   true,
		"/cart/add":                          false,
		"/hooks":                             false,
		"/hooks/../cart/add":                 false,
		"/hooks/%2e%2e/cart/add":             false,
		"/hooks/..%2fcart/add":               false,
		`/hooks/..%5ccart%5cadd`:             false,
		"/hooks/%252e%252e/cart/add":         false,
		"/hooks/..;/cart/add":                false,
		"/hooks/x;y=1":                       false,
		"/hooks//cart":                       false,
		"/hooks/x%00":                        false,
		"/index.php/hooks/paid":              false,
		"/hooks/index.php/cart/add":          false,
		"/hooks/paid?rest_route=/cart/add":   false,
		"/hooks/paid?Rest_Route=/cart/add":   false,
		"/hooks/paid?rest_route[]=/cart/add": false,
		"/hooks/paid?rest.route=/cart/add":   false,
		"/hooks/paid?rest%20route=/cart/add": false,
		"/hooks/paid?rest%5Broute=/cart/add": false,
		"/hooks/paid?rest[route=/cart/add":   false,
		"/hooks/paid?rest%5froute=/cart/add": false,
		"/hooks/paid?rest_route%00=/cart":    false,
		"/hooks/paid?the_rest_route=/cart":   true,
		"/hooks/paid?rest=_route":            true,
		"/hooks/paid?a=%zz":                  false,
	} {
		r := httptest.NewRequest("POST", target, nil)
		r = r.WithContext(context.WithValue(r.Context(), caddy.ReplacerCtxKey, caddy.NewReplacer()))
		if got := c.Excepts(r, []route.QueryPath{restRoute}); got != want {
			t.Errorf("%s is excepted: %v", target, got)
		}
	}
}

// A query excepts a request only where no server reads another value in it.
func TestExceptedQueries(t *testing.T) {
	for _, sets := range []string{`[{"query":{"do":["show"]}}]`, `[{"not":[{"query":{"do":["add"]}}],"query":{"do":["*"]}}]`} {
		o := &session.Options{Credentials: []string{"{header.Authorization}"}}
		if err := json.Unmarshal([]byte(sets), &o.ExceptMatch); err != nil {
			t.Fatal(err)
		}
		c, err := o.Compile()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
		defer cancel()
		if err := c.Provision(ctx, o); err != nil {
			t.Fatal(err)
		}
		for query, want := range map[string]bool{
			"do=show": true, "do=show&x=1&y[]=2": true,
			"do=add": false, "do=show&do=add": false, "do=show&Do=add": false, "do=show&do[]=add": false, "do=show&+do=add": false, "do=show&x=%zz": false, "do=show&x;do=add": false, "": false,
		} {
			r := httptest.NewRequest("POST", "/cart?"+query, nil)
			r = r.WithContext(context.WithValue(r.Context(), caddy.ReplacerCtxKey, caddy.NewReplacer()))
			if got := c.Excepts(r, nil); got != want {
				t.Errorf("%s: ?%s is excepted: %v", sets, query, got)
			}
		}
	}
}

// In JSON, too, matchers that cannot decide are refused.
func TestExceptMatchRefused(t *testing.T) {
	for name, sets := range map[string]caddyhttp.RawMatcherSets{
		"empty":   {{}},
		"body":    {{"vars": []byte(`{"{http.request.body}":["x"]}`)}},
		"escaped": {{"expression": []byte(`{"expr":"{http.request\u002ebody_base64} == 'x'"}`)}},
		"nested":  {{"not": []byte(`[{"vars":{"{http.request.body}":["x"]}}]`)}},
		"no JSON": {{"path": []byte(`[`)}},
	} {
		o := &session.Options{Credentials: []string{"{header.Authorization}"}, ExceptMatch: sets}
		if _, err := o.Compile(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
