package lua_test

import (
	"testing"

	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/lua"
)

// Each server takes every script that is for it, and can compile it: Lua bounds how many variables
// a function has, and that of the embedded server has less room for them.
func TestServersCompileAllScripts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		c, scripts := b.Client(), lua.Redis()
		if _, ok := b.(*redistest.EmbeddedServer); ok {
			scripts = lua.Embedded()
		}
		for i, s := range scripts.All() {
			if sha, err := c.ScriptLoad(t.Context(), s.Source).Result(); err != nil || sha != s.SHA {
				t.Errorf("%s: %q, %v", s.Name, sha, err)
			}
			// SCRIPT LOAD of the embedded server does not compile. The text has no first line here: Lua
			// does not know it.
			text := lua.Embedded().All()[i].Source
			if why, err := c.Eval(t.Context(), "local _, why = loadstring(ARGV[1]) return why or ''", nil, text).Text(); err != nil || why != "" {
				t.Errorf("%s does not compile: %s, %v", s.Name, why, err)
			}
		}
	})
}
