package option

import (
	"bytes"
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/matchers"
)

// around is what the matchers around a judge say.
type around struct {
	// paths are the patterns of the path matchers.
	paths []string
	// hosts are what the host matchers name.
	hosts []string
	// methods: one restricts the method, or it is not known which there are.
	methods bool
}

// aroundIn returns what the matchers say around a handler that is being provisioned.
func aroundIn(ctx caddy.Context, server *caddyhttp.Server) (a around) {
	levels := matchers.Levels(ctx, server)
	a.hosts = matchers.Hosts(ctx, server)
	a.methods = len(levels) == 0
	for _, level := range levels {
		for _, set := range level.Route.MatcherSets {
			a.add(set)
		}
	}
	return a
}

func (a *around) add(set caddyhttp.MatcherSet) {
	for _, m := range set {
		if paths, ok := m.(*caddyhttp.MatchPath); ok {
			a.paths = append(a.paths, *paths...)
		}
	}
	for name, text := range matchers.All([]caddyhttp.MatcherSet{set}) {
		a.methods = a.methods || restrictsMethod(name, []byte(text))
	}
}

// beside returns what the matchers say that stand beside a directive. Those around its block are not known.
func beside(set caddy.ModuleMap) (a around) {
	if json.Unmarshal(set["path"], &a.paths) != nil {
		a.paths = nil
	}
	for name, raw := range set {
		a.methods = a.methods || restrictsMethod(name, raw)
	}
	return a
}

func restrictsMethod(name string, config []byte) bool {
	return name == "method" || (name == "not" || name == "expression") && bytes.Contains(config, []byte("method"))
}
