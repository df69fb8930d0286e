package stockgate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	own       = "github.com/stockgate/stockgate"
	caddy     = "github.com/caddyserver/caddy/v2/..."
	goRedis   = "github.com/redis/go-redis/..."
	miniredis = "github.com/alicebob/miniredis/..."
)

// direction says what a package may not import, directly or through others,
// tests aside. A pattern that ends in /... includes the packages below it; a path that
// begins with a dot is in this module.
type direction struct {
	pkg       string
	forbidden []string
	except    []string // packages of pkg that the rule does not apply to
	why       string
}

// directions is what the map of arrows does not say: who may bring other modules along, and
// that what tests need, or what stands outside of the product, is not in it.
var directions = []direction{
	{
		pkg:       "./...",
		except:    []string{".", "./cmd/...", "./caddymodule/...", "./internal/sitetest/..."},
		forbidden: []string{caddy},
		why:       "only caddymodule and the packages below it know Caddy",
	},
	{
		pkg: "./...",
		except: []string{".", "./cmd/...", "./caddymodule/...", "./shard", "./combine", "./risk", "./journal", "./lists", "./lease", "./rates", "./reservation/...", "./fence", "./edge", "./recovery",
			"./ledger/...", "./outbox", "./movein", "./mirror", "./queue", "./internal/...", "./bench/..."},
		forbidden: []string{goRedis},
		why:       "shops, solvers and other edges import these: none of them brings a client of Redis along",
	},
	{
		pkg:       "./...",
		except:    []string{".", "./cmd/...", "./caddymodule/...", "./reservation/embedded", "./internal/..."},
		forbidden: []string{miniredis},
		why:       "the embedded server must stay out of builds that do not import it",
	},
	{
		pkg:       "./...",
		except:    []string{"./internal/chromium/...", "./internal/draw", "./internal/redistest/...", "./internal/model/...", "./internal/pgtest/...", "./internal/ledgertest/...", "./internal/sitetest/...", "./internal/stocktest/..."},
		forbidden: []string{"./internal/chromium/...", "./internal/draw", "./internal/sitetest/...", "./internal/redistest/...", "./internal/model/...", "./internal/pgtest/...", "./internal/ledgertest/...", "./internal/stocktest/..."},
		why:       "what tests need must not be compiled into what is shipped",
	},
	{
		pkg:       "./...",
		except:    []string{"./internal/auditor/...", "./internal/chaos"},
		forbidden: []string{"./internal/auditor/..."},
		why:       "the auditor judges what is built; nothing that is built may know it",
	},
	{
		pkg:       "./...",
		except:    []string{".", "./cmd/...", "./caddymodule/demo/...", "./caddymodule/command/...", "./caddymodule/rehearse/...", "./internal/shop/...", "./internal/stampede/..."},
		forbidden: []string{"./internal/shop/...", "./internal/stampede/..."},
		why:       "the shop and the crowd of the demo stand outside of the gate",
	},
	{
		pkg:       "./...",
		except:    []string{".", "./cmd/...", "./movein", "./mirror", "./caddymodule/movein", "./caddymodule/mirror"},
		forbidden: []string{"./movein", "./mirror", "./caddymodule/movein", "./caddymodule/mirror"},
		why:       "a build may leave moving in and the mirror out: only the root brings them",
	},
}

// TestImportsPointOneWay fails with the chain of imports that breaks a rule.
func TestImportsPointOneWay(t *testing.T) {
	graph := importGraph(t)
	for _, d := range directions {
		for _, broken := range d.check(graph) {
			t.Error(broken)
		}
	}
}

// arrows is what each package imports of the others of this module, in such an order that
// each imports only what stands above it. A new arrow changes the design. Commands, examples
// and packages for tests are not in it.
var arrows = map[string][]string{
	"fastpath":             nil,
	"internal/loop":        nil,
	"fastpath/h2":          {"fastpath"},
	"filters/list":         {"internal/ipaddr", "internal/loop"},
	"internal/ipaddr":      nil,
	"internal/jwks":        nil,
	"internal/mac":         nil,
	"challenge":            {"internal/ipaddr", "internal/mac"},
	"bearer":               {"internal/jwks"},
	"internal/jsonpath":    nil,
	"internal/strictjson":  nil,
	"lua":                  nil,
	"outcome":              {"internal/jsonpath"},
	"route":                nil,
	"sale/line":            nil,
	"webhook":              nil,
	"sale/skus":            nil,
	"scope":                {"internal/jsonpath", "internal/strictjson", "route"},
	"sale":                 {"internal/ipaddr", "sale/line", "sale/skus"},
	"attempt":              {"internal/ipaddr", "route", "sale"},
	"filters":              {"filters/list", "sale"},
	"identity":             {"internal/mac", "sale"},
	"record":               {"identity"},
	"refuse":               {"sale"},
	"shard":                {"identity", "lua"},
	"combine":              {"shard"},
	"risk":                 {"shard"},
	"journal":              {"lua", "record", "shard"},
	"lists":                {"identity", "internal/loop", "lua", "shard"},
	"lease":                {"lua", "shard"},
	"rates":                {"combine", "identity", "lua", "shard"},
	"reservation":          {"combine", "identity", "journal", "lua", "record", "sale", "shard"},
	"fence":                {"lua", "reservation", "shard"},
	"queue":                {"combine", "identity", "lua", "record", "reservation", "sale", "shard"},
	"edge":                 {"combine", "fence", "identity", "internal/loop", "journal", "lists", "lua", "rates", "record", "reservation", "risk", "sale", "sale/skus", "shard"},
	"ledger":               {"edge", "internal/loop", "journal", "record", "reservation", "sale", "shard"},
	"ledger/postgres":      {"journal", "ledger"},
	"ledger/sqlite":        {"journal", "ledger"},
	"movein":               {"sale"},
	"mirror":               {"internal/loop", "journal", "ledger", "movein", "record", "reservation", "sale", "shard"},
	"outbox":               {"internal/loop", "journal", "ledger", "shard"},
	"recovery":             {"journal", "ledger", "lua", "record", "reservation", "sale", "shard"},
	"reservation/embedded": {"lua", "shard"},
	"token":                {"internal/jwks", "internal/strictjson", "sale/line"},

	"caddymodule/internal/accesslog": nil,
	"caddymodule/internal/directive": {"outcome", "refuse", "sale"},
	"caddymodule/internal/timing":    {"shard"},
	"caddymodule/internal/reply":     {"attempt", "refuse", "sale"},
	"caddymodule/jwt":                {"attempt", "bearer", "caddymodule/internal/directive", "filters", "refuse", "sale"},
	"caddymodule/pow":                {"attempt", "caddymodule/internal/directive", "challenge"},
	"caddymodule/adminapi": {
		"journal", "refuse", "reservation", "sale",
	},
	"caddymodule/internal/request":  {"caddymodule/adminapi", "internal/strictjson", "sale"},
	"caddymodule/internal/matchers": nil,
	"caddymodule/internal/saved":    {},
	"caddymodule/internal/span":     {},
	"caddymodule/internal/terminal": {},
	"caddymodule/internal/meter": {
		"edge", "journal", "ledger", "outbox", "sale", "scope",
	},
	"caddymodule/operation": {"caddymodule/internal/directive", "caddymodule/internal/meter", "internal/strictjson", "scope"},
	"caddymodule/guard": {
		"attempt", "caddymodule/internal/directive", "caddymodule/internal/matchers", "caddymodule/internal/meter", "caddymodule/internal/reply", "refuse", "route", "sale",
	},
	"caddymodule/edgeruntime":   {"caddymodule/internal/meter", "caddymodule/internal/timing", "edge", "queue", "reservation", "reservation/embedded", "risk", "shard", "token"},
	"caddymodule/overviewcache": {"caddymodule/edgeruntime", "caddymodule/internal/timing", "queue", "record", "reservation", "sale"},
	"caddymodule/forward": {
		"caddymodule/edgeruntime", "caddymodule/internal/meter", "caddymodule/internal/reply", "caddymodule/internal/span", "filters", "outcome", "record", "refuse", "reservation",
		"sale", "token",
	},
	"caddymodule/accesslist": {
		"caddymodule/edgeruntime", "caddymodule/internal/directive", "caddymodule/internal/timing", "filters", "filters/list", "lists", "refuse", "sale",
	},
	"caddymodule/app": {
		"caddymodule/accesslist", "caddymodule/adminapi", "caddymodule/edgeruntime", "caddymodule/internal/directive", "caddymodule/internal/matchers", "caddymodule/internal/meter", "caddymodule/overviewcache", "challenge", "edge", "filters", "internal/loop", "journal", "ledger", "outbox", "queue", "risk", "sale", "shard", "token",
	},
	"caddymodule/ledgers/postgres": {"caddymodule/app", "ledger", "ledger/postgres"},
	"caddymodule/ledgers/sqlite":   {"caddymodule/app", "ledger", "ledger/sqlite"},
	"caddymodule/mirror":           {"caddymodule/app", "caddymodule/edgeruntime", "caddymodule/internal/directive", "caddymodule/internal/meter", "mirror"},
	"caddymodule/movein":           {"caddymodule/app", "movein", "sale"},
	"caddymodule/internal/shopurl": nil,
	"caddymodule/inquiry":          {"caddymodule/internal/directive", "caddymodule/internal/shopurl", "internal/jsonpath", "outcome", "route"},
	"caddymodule/session":          {"attempt", "caddymodule/internal/directive", "caddymodule/internal/timing", "lease", "route", "shard"},
	"caddymodule/probe":            {"caddymodule/edgeruntime", "caddymodule/internal/meter", "caddymodule/internal/shopurl", "outcome", "record", "reservation", "shard"},
	"caddymodule/ratelimit":        {"attempt", "caddymodule/edgeruntime", "caddymodule/internal/directive", "caddymodule/internal/meter", "filters", "rates", "refuse", "sale"},
	"caddymodule/shadow":           {"outcome"},
	"caddymodule/gate": {
		"attempt", "caddymodule/accesslist", "caddymodule/adminapi", "caddymodule/app", "caddymodule/edgeruntime", "caddymodule/forward",
		"caddymodule/guard", "caddymodule/inquiry", "caddymodule/internal/accesslog", "caddymodule/internal/directive", "caddymodule/internal/matchers", "caddymodule/internal/meter", "caddymodule/internal/reply", "caddymodule/internal/request", "caddymodule/internal/saved",
		"caddymodule/internal/span", "caddymodule/internal/timing", "caddymodule/jwt", "caddymodule/operation", "caddymodule/pow", "caddymodule/probe", "caddymodule/ratelimit", "caddymodule/session", "caddymodule/shadow", "caddymodule/waiting", "challenge", "edge", "filters", "outcome", "queue", "record", "refuse",
		"reservation", "sale", "scope", "token",
	},
	"caddymodule/shopapi": {
		"caddymodule/app", "caddymodule/edgeruntime", "caddymodule/internal/directive", "caddymodule/internal/meter", "caddymodule/internal/request",
		"edge", "internal/strictjson", "record", "refuse", "reservation", "sale", "shard", "token",
	},
	"caddymodule/resolve": {
		"attempt", "caddymodule/app", "caddymodule/edgeruntime", "caddymodule/forward", "caddymodule/internal/directive", "caddymodule/internal/meter", "filters", "outcome", "record",
		"reservation", "sale", "shard", "webhook",
	},
	"caddymodule/waiting": {"caddymodule/edgeruntime", "caddymodule/forward", "caddymodule/internal/directive", "outcome", "queue", "record", "reservation", "shard"},
	"caddymodule/status":  {"caddymodule/adminapi", "caddymodule/app", "caddymodule/edgeruntime", "caddymodule/overviewcache", "caddymodule/waiting", "edge", "sale", "token"},
	"caddymodule/fast": {
		"attempt", "caddymodule/app", "caddymodule/gate", "caddymodule/guard", "caddymodule/internal/accesslog", "caddymodule/status", "fastpath", "fastpath/h2", "sale",
	},
	"caddymodule/operator": {
		"caddymodule/accesslist", "caddymodule/adminapi", "caddymodule/app", "caddymodule/edgeruntime", "caddymodule/fast", "caddymodule/gate", "caddymodule/internal/request", "caddymodule/probe", "caddymodule/ratelimit", "caddymodule/shopapi", "edge", "fence", "filters/list", "internal/strictjson", "journal", "ledger", "lists", "queue", "record", "recovery", "reservation", "risk", "sale", "shard", "token",
	},
	"caddymodule/report": {"journal", "ledger", "record"},
	"caddymodule/dashboard": {
		"caddymodule/adminapi", "caddymodule/app", "caddymodule/edgeruntime", "caddymodule/internal/directive", "caddymodule/internal/meter", "caddymodule/operator", "caddymodule/report", "edge", "journal", "ledger", "queue", "record", "reservation", "sale", "shard",
	},
	"caddymodule": {
		"caddymodule/app", "caddymodule/dashboard", "caddymodule/fast", "caddymodule/gate", "caddymodule/guard", "caddymodule/operator", "caddymodule/resolve", "caddymodule/shopapi",
		"caddymodule/status",
	},
	"caddymodule/demo":     {"caddymodule", "caddymodule/app", "caddymodule/internal/terminal", "edge", "internal/shop", "internal/stampede", "reservation", "sale", "shard", "token"},
	"caddymodule/rehearse": {"caddymodule/adminapi", "caddymodule/internal/saved", "internal/stampede", "journal", "record", "reservation", "sale"},
	"caddymodule/capacity": nil,
	"caddymodule/command": {
		"caddymodule", "caddymodule/adminapi", "caddymodule/app", "caddymodule/capacity", "caddymodule/demo", "caddymodule/internal/terminal", "caddymodule/rehearse", "edge", "filters/list", "internal/stampede", "lua", "record", "recovery", "refuse",
		"reservation", "sale", "shard",
	},

	"": {"caddymodule/command", "caddymodule/ledgers/postgres", "caddymodule/ledgers/sqlite", "caddymodule/mirror", "caddymodule/movein"},
}

// inMap reports whether a package is one of those that arrows names.
func inMap(name string) bool {
	for _, other := range []string{"bench", "cmd", "e2e", "examples", "internal/auditor", "internal/chaos", "internal/chromium", "internal/draw", "internal/ledgertest", "internal/model", "internal/pgtest", "internal/redistest",
		"internal/shop", "internal/sitetest", "internal/stampede", "internal/stocktest"} {
		if name == other || strings.HasPrefix(name, other+"/") {
			return false
		}
	}
	return true
}

// TestArrows compares the map with what go list says, both ways: an arrow that is not in the
// map is new, one that is gone must leave the map.
func TestArrows(t *testing.T) {
	graph := importGraph(t)
	seen := 0
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		name := strings.TrimPrefix(strings.TrimPrefix(pkg, own), "/")
		if !matches(pkg, own+"/...") || !inMap(name) {
			continue
		}
		seen++
		want, known := arrows[name]
		if !known {
			t.Errorf("%s is not in the map: say what it may import", pkg)
			continue
		}
		var have []string
		for _, path := range graph[pkg] {
			if matches(path, own+"/...") {
				have = append(have, strings.TrimPrefix(strings.TrimPrefix(path, own), "/"))
			}
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%s imports %q of this module, the map says %q", pkg, have, want)
		}
	}
	if seen != len(arrows) {
		t.Errorf("the map has %d packages, go list knows %d", len(arrows), seen)
	}
}

// TestTheRootBringsAll: a build that imports the root has the modules, the commands and
// what a build may leave out. No other package imports them, so nothing else would miss them.
func TestTheRootBringsAll(t *testing.T) {
	graph := importGraph(t)
	for _, pkg := range []string{"./caddymodule", "./caddymodule/command", "./caddymodule/demo", "./caddymodule/fast", "./caddymodule/operator", "./caddymodule/ledgers/sqlite", "./caddymodule/ledgers/postgres", "./caddymodule/mirror", "./caddymodule/movein"} {
		if shortest(graph, own, []string{pkg}) == nil {
			t.Errorf("importing the root does not bring %s", pkg)
		}
	}
}

// TestTheAuditorKnowsNothing: the auditor and the packages below it import one another and
// the standard library, and nothing else, in their tests too. What it shares with the
// product cannot show that the product is wrong.
func TestTheAuditorKnowsNothing(t *testing.T) {
	const auditor = own + "/internal/auditor"
	out, err := exec.Command("go", "list", "-buildvcs=false", "-json=ImportPath,Imports,TestImports,XTestImports", "./internal/auditor/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for dec := json.NewDecoder(bytes.NewReader(out)); ; packages++ {
		var pkg struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, imported := range slices.Concat(pkg.Imports, pkg.TestImports, pkg.XTestImports) {
			first, _, _ := strings.Cut(imported, "/")
			if strings.Contains(first, ".") && !matches(imported, auditor+"/...") || imported == "C" {
				t.Errorf("%s imports %s: the auditor uses the standard library alone", pkg.ImportPath, imported)
			}
		}
	}
	if packages < 5 {
		t.Errorf("go list knows %d packages of the auditor", packages)
	}
}

// TestTokenBringsNoOtherModule: a shop that verifies tokens gets no module with them, and of
// this one only what reads them.
func TestTokenBringsNoOtherModule(t *testing.T) {
	out, err := exec.Command("go", "list", "-buildvcs=false", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./token").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{own + "/internal/jwks", own + "/internal/strictjson", own + "/sale/line", own + "/token"}
	if got := strings.Fields(string(out)); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("importing token brings %q, not %q", got, want)
	}
}

// TestDirectionsAreEnforced breaks each rule once, directly and through a
// package in between, because a rule that nothing can break protects nothing.
func TestDirectionsAreEnforced(t *testing.T) {
	const between = "example.com/between"
	for _, d := range directions {
		for _, forbidden := range d.forbidden {
			from, to := sample(d.pkg), sample(forbidden)
			for name, graph := range map[string]map[string][]string{
				"directly": {from: {"fmt", to}},
				"between":  {from: {between}, between: {to}},
			} {
				if got := d.check(graph); len(got) != 1 || !strings.Contains(got[0], to) || !strings.Contains(got[0], d.why) {
					t.Errorf("%s imports %s (%s): reported %q", from, to, name, got)
				}
			}
		}
	}
}

// check returns a sentence for each of the rule's packages that reaches a
// forbidden one.
func (d direction) check(graph map[string][]string) []string {
	var broken []string
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		if !matches(pkg, d.pkg) || slices.ContainsFunc(d.except, func(p string) bool { return matches(pkg, p) }) {
			continue
		}
		if chain := shortest(graph, pkg, d.forbidden); chain != nil {
			broken = append(broken, fmt.Sprintf("%s\nforbidden: %s", strings.Join(chain, "\n\timports "), d.why))
		}
	}
	return broken
}

// shortest finds the shortest chain of imports from a package to one that
// matches a pattern; nil: there is none.
func shortest(graph map[string][]string, from string, patterns []string) []string {
	seen := map[string]bool{from: true}
	for chains := [][]string{{from}}; len(chains) > 0; chains = chains[1:] {
		chain := chains[0]
		for _, next := range graph[chain[len(chain)-1]] {
			if seen[next] {
				continue
			}
			seen[next] = true
			longer := append(slices.Clone(chain), next)
			if slices.ContainsFunc(patterns, func(p string) bool { return matches(next, p) }) {
				return longer
			}
			chains = append(chains, longer)
		}
	}
	return nil
}

func matches(pkg, pattern string) bool {
	root, below := strings.CutSuffix(absolute(pattern), "/...")
	return pkg == root || below && strings.HasPrefix(pkg, root+"/")
}

// absolute turns "./sale" into the import path of that package.
func absolute(pattern string) string {
	if rest, ok := strings.CutPrefix(pattern, "."); ok {
		return own + rest
	}
	return pattern
}

// sample is an import path that matches the pattern.
func sample(pattern string) string {
	switch pattern {
	case "./...", "./caddymodule/...": // whose roots are excepted
		return absolute(strings.TrimSuffix(pattern, "...")) + "any"
	}
	return strings.TrimSuffix(absolute(pattern), "/...")
}
