package option

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate/option/accesslist"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// Directive is a handler of Caddy that has a judge, as a directive in a Caddyfile.
type Directive interface {
	caddyhttp.MiddlewareHandler
	caddyfile.Unmarshaler
	// Bind gives the judge the handler's options, and returns them.
	Bind() *Setup
	// CheckStatic is the part of Provision that depends on the handler's options alone.
	CheckStatic() error
}

// ReadDirective reads a handler, and warns about settings that are allowed but rarely intended. What Provision would
// refuse whatever the environment is, it refuses with file and line; Provision checks it again, for configurations
// in JSON. check looks at the handler's place in the site; nil: it may stand anywhere.
func ReadDirective[H Directive](h httpcaddyfile.Helper, create func() H, check func(at *caddyfile.Dispenser, handler H, matchers caddy.ModuleMap) error) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // the directive's name
	at := *h.Dispenser
	warn := directive.NewWarner(&h, h.Val())
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, h.WrapErr(err)
	}
	handler := create()
	if err := handler.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	s := handler.Bind()
	if err := s.OneAtATime.Resolve(h); err != nil {
		return nil, err
	}
	if err := checkLists(h, s); err != nil {
		return nil, err
	}
	if err := checkFast(h, &at, s, matchers); err != nil {
		return nil, err
	}
	if check != nil {
		if err := check(&at, handler, matchers); err != nil {
			return nil, err
		}
	}
	trial := create()
	if err := reread(handler, trial); err != nil {
		return nil, err
	}
	tried := trial.Bind()
	if err := tried.readGlobal(h); err != nil {
		return nil, err
	}
	if err := trial.CheckStatic(); err != nil {
		return nil, directive.WrapOption(at, err)
	}
	if !s.Enters {
		warnMatchers(warn, s, matchers)
	}
	warnRisks(warn, tried, matchers)
	warnGuard(warn)
	return h.NewRoute(matchers, handler), nil
}

// checkLists checks that the global option defines a gate's lists. Without a global option
// the app may be configured elsewhere; it then reports the error when it loads.
func checkLists(h httpcaddyfile.Helper, s *Setup) error {
	global, ok := h.Option("stockgate").(httpcaddyfile.App)
	if !ok {
		return nil
	}
	var configured app.App
	if err := json.Unmarshal(global.Value, &configured); err != nil {
		return err
	}
	for _, uses := range []struct {
		option string
		names  []string
	}{{"deny", s.Deny}, {"allow", s.Allow}} {
		for _, name := range uses.names {
			if _, ok := configured.Lists[name]; !ok {
				return h.WrapErr(accesslist.Unknown(uses.option, name))
			}
		}
	}
	return nil
}

// reread reads a handler's options back from its JSON, as Provision gets them.
func reread(from, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// readGlobal gives the judge the app of the global option.
func (s *Setup) readGlobal(h httpcaddyfile.Helper) error {
	s.App = new(app.App)
	if global, ok := h.Option("stockgate").(httpcaddyfile.App); ok {
		return json.Unmarshal(global.Value, s.App)
	}
	return nil
}
