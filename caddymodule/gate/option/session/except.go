package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/filters/route"
)

// except has the requests that do not wait.
type except struct {
	paths caddyhttp.MatchPath
	sets  caddyhttp.MatcherSets
	query bool // a matcher of sets reads the query
}

// Resolve fills in the matchers that the Caddyfile names behind except.
func (o *Options) Resolve(h httpcaddyfile.Helper) error {
	if o == nil {
		return nil
	}
	for _, name := range o.named {
		d := caddyfile.NewDispenser([]caddyfile.Token{name})
		set, _, err := h.WithDispenser(d).MatcherToken()
		switch {
		case err != nil:
			return d.WrapErr(fmt.Errorf("one_at_a_time: except %s: %w: define that matcher in the site, outside of the gate's block, in which @names match answers of the shop", name.Text, err))
		case len(set) == 0:
			return d.WrapErr(fmt.Errorf("one_at_a_time: except %s: this matcher is empty, so no request would wait", name.Text))
		}
		o.ExceptMatch = append(o.ExceptMatch, set)
	}
	o.named = nil
	return nil
}

// checkExcept reports matchers that cannot decide before the body is read.
func (o *Options) checkExcept() error {
	for _, set := range o.ExceptMatch {
		if len(set) == 0 {
			return errors.New("one_at_a_time: except_match: an empty matcher set matches every request, so none would wait: leave one_at_a_time out, or say what is excepted")
		}
		for name, raw := range set {
			var v any
			if err := json.Unmarshal(raw, &v); err != nil {
				return fmt.Errorf("one_at_a_time: except_match %s: %w", name, err)
			}
			if readsBody(v) {
				return fmt.Errorf("one_at_a_time: except: the matcher %s reads the body, which the gate has not bounded yet and which every client chooses: match by method, path, header or client_ip", name)
			}
		}
	}
	return nil
}

// readsBody looks for {http.request.body} and {http.request.body_base64}.
func readsBody(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "http.request.body")
	case []any:
		return slices.ContainsFunc(v, readsBody)
	case map[string]any:
		for name, one := range v {
			if readsBody(name) || readsBody(one) {
				return true
			}
		}
	}
	return false
}

// Provision loads the matchers of the options from which the credentials were compiled.
func (c *Credentials) Provision(ctx caddy.Context, o *Options) error {
	if c == nil || len(o.ExceptMatch) == 0 {
		return nil
	}
	loaded, err := ctx.LoadModule(o, "ExceptMatch")
	if err == nil {
		err = c.except.sets.FromInterface(loaded)
	}
	if err != nil {
		return fmt.Errorf("one_at_a_time: except: %w", err)
	}
	c.except.query = readsQuery(c.except.sets)
	return nil
}

// Exceptions returns the matchers of requests that do not wait.
func (c *Credentials) Exceptions() caddyhttp.MatcherSets {
	if c == nil {
		return nil
	}
	return c.except.sets
}

// readsQuery reports whether a matcher reads the query.
func readsQuery(sets []caddyhttp.MatcherSet) bool {
	return slices.ContainsFunc(sets, func(set caddyhttp.MatcherSet) bool {
		return slices.ContainsFunc(set, func(m any) bool {
			if not, ok := m.(*caddyhttp.MatchNot); ok {
				return readsQuery(not.MatcherSets)
			}
			_, ok := m.(*caddyhttp.MatchQuery)
			return ok
		})
	})
}

// Excepts reports whether a request does not wait for the others of its session. A target that servers
// may read as another one waits, and so does a request whose matcher fails, or reads the query where
// servers may read another value in it. routes are query
// parameters that the shop takes for a path.
func (c *Credentials) Excepts(r *http.Request, routes []route.QueryPath) bool {
	if len(c.except.paths) == 0 && len(c.except.sets) == 0 {
		return false
	}
	if route.ShapeOf(r.URL.EscapedPath())&route.Odd != 0 || namesRoute(r.URL.RawQuery, routes) {
		return false
	}
	if excepted, err := c.except.paths.MatchWithError(r); err == nil && excepted {
		return true
	}
	if c.except.query && isAmbiguous(r.URL.RawQuery) {
		return false
	}
	for _, set := range c.except.sets {
		if excepted, err := set.MatchWithError(r); err == nil && excepted {
			return true
		}
	}
	return false
}

// isAmbiguous reports whether a query cannot be parsed, or has a parameter twice for some server.
func isAmbiguous(query string) bool {
	if _, err := url.ParseQuery(query); err != nil {
		return true
	}
	const most = 100 // ordinary queries have fewer
	var names []string
	for p := route.ParamsOf(query); p.Next(); names = append(names, p.Name) {
		if len(names) == most || slices.ContainsFunc(names, func(name string) bool { return route.SameParam(p.Name, name) }) {
			return true
		}
	}
	return false
}

// namesRoute reports whether a query has one of the parameters, in any spelling that a server may take
// for it.
func namesRoute(query string, routes []route.QueryPath) bool {
	if query == "" || len(routes) == 0 {
		return false
	}
	if _, err := url.ParseQuery(query); err != nil { // servers differ on what it says
		return true
	}
	for p := route.ParamsOf(query); p.Next(); {
		if slices.ContainsFunc(routes, func(one route.QueryPath) bool { return one.Named(p.Name) }) {
			return true
		}
	}
	return false
}
