package stockgate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
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

// Imports point one way:
//
//	cmd → caddymodule/command → caddymodule/demo → caddymodule
//	sale → sale/line ← token
//	caddymodule → {filters, reservation, token, bearer, challenge, ledger, outbox, attempt, route, fastpath} → sale
//	caddymodule → outcome
//	{caddymodule, token} → internal/strictjson
//	              outbox → ledger → reservation → lua, {token, bearer} → internal/jwks
//	caddymodule, caddymodule/command → caddymodule/adminapi → refuse → sale
var directions = []direction{
	{
		pkg:       "./sale/...",
		forbidden: []string{"./attempt/...", "./filters/...", "./token/...", "./lua/...", "./reservation/...", "./ledger/...", "./internal/...", caddy, goRedis},
		why:       "sale has the types that all others share, so it imports none of them",
	},
	{
		pkg:       "./sale/line/...",
		forbidden: []string{own + "/..."},
		why:       "line is what an order is made of: shops import it with token, and it brings nothing along",
	},
	{
		pkg:       "./lua/...",
		forbidden: []string{"./sale/...", "./attempt/...", "./filters/...", "./token/...", "./reservation/...", "./ledger/...", "./internal/...", caddy, goRedis},
		why:       "lua is text and numbers, and does not depend on the callers of its scripts",
	},
	{
		pkg:       "./attempt/...",
		forbidden: []string{"./filters/...", "./token/...", "./lua/...", "./reservation/...", "./ledger/...", "./internal/...", caddy, goRedis},
		why:       "attempt reads a request and decides nothing: it imports only the types of sale",
	},
	{
		pkg:       "./route/...",
		forbidden: []string{"./sale/...", "./attempt/...", "./filters/...", "./token/...", "./bearer/...", "./lua/...", "./reservation/...", "./ledger/...", "./internal/...", caddy, goRedis},
		why:       "route reads targets as servers do, and does not depend on what is behind them",
	},
	{
		pkg:       "./filters/...",
		forbidden: []string{"./attempt/...", "./token/...", "./lua/...", "./reservation/...", "./ledger/...", "./internal/...", caddy, goRedis},
		why:       "filters answer before any network call, and know nothing of the stock in Redis",
	},
	{
		pkg:       "./fastpath/...",
		forbidden: []string{"./sale/...", "./attempt/...", "./filters/...", "./token/...", "./bearer/...", "./lua/...", "./reservation/...", "./ledger/...", "./internal/...", caddy, goRedis},
		why:       "fastpath shares a connection with net/http, and knows nothing of what is asked on it",
	},
	{
		pkg:       "./token/...",
		forbidden: []string{"./sale", "./attempt/...", "./filters/...", "./bearer/...", "./lua/...", "./reservation/...", "./ledger/...", caddy, goRedis},
		why:       "shops import token into their backends: it brings neither Caddy nor Redis along, nor the reader of sale files",
	},
	{
		pkg:       "./bearer/...",
		forbidden: []string{"./sale/...", "./attempt/...", "./filters/...", "./token/...", "./lua/...", "./reservation/...", "./ledger/...", caddy, goRedis},
		why:       "bearer verifies the shop's own tokens, and does not depend on what is sold",
	},
	{
		pkg:       "./challenge/...",
		forbidden: []string{"./sale/...", "./attempt/...", "./filters/...", "./token/...", "./bearer/...", "./lua/...", "./reservation/...", "./ledger/...", "./internal/...", caddy, goRedis},
		why:       "challenge asks for work and knows nothing of what it is for; solvers import it",
	},
	{
		pkg:       "./internal/jwks/...",
		forbidden: []string{"./sale/...", "./attempt/...", "./filters/...", "./token/...", "./bearer/...", "./lua/...", "./reservation/...", "./ledger/...", caddy, goRedis},
		why:       "jwks is compiled into the backends of shops, with token: it fetches keys and does nothing else",
	},
	{
		pkg:       "./internal/strictjson/...",
		forbidden: []string{own + "/...", caddy, goRedis},
		why:       "strictjson is compiled into the backends of shops, with token: it reads JSON and knows nothing of what it says",
	},
	{
		pkg:       "./reservation/...",
		forbidden: []string{"./attempt/...", "./filters/...", "./token/...", "./ledger/..."},
		why:       "reservation is the stock in Redis; the handler alone brings it together with the rest",
	},
	{
		pkg:       "./reservation",
		forbidden: []string{"./reservation/embedded", miniredis},
		why:       "the embedded server must stay out of builds that do not import it",
	},
	{
		pkg:       "./ledger/...",
		forbidden: []string{"./attempt/...", "./filters/...", "./token/..."},
		why:       "ledger copies the journal, as reservation reads it, and takes no part in selling",
	},
	{
		pkg:       "./outbox/...",
		forbidden: []string{"./attempt/...", "./filters/...", "./token/...", "./ledger/sqlite/...", "./ledger/postgres/..."},
		why:       "outbox sends the journal, as ledger reads it, and takes no part in selling",
	},
	{
		pkg:       "./...",
		except:    []string{".", "./cmd/...", "./caddymodule/...", "./reservation/embedded/...", "./internal/sitetest/..."},
		forbidden: []string{caddy},
		why:       "only caddymodule knows Caddy, and the modules below it",
	},
	{
		pkg:       "./caddymodule",
		forbidden: []string{"./caddymodule/ledgers/...", "./ledger/sqlite/...", "./ledger/postgres/..."},
		why:       "a build that keeps no ledger, or another one, can leave each database out",
	},
	{
		pkg:       "./caddymodule",
		forbidden: []string{"./caddymodule/command/...", "./caddymodule/demo/..."},
		why:       "the commands ask the admin API: what runs in the server does not know them",
	},
	{
		pkg:       "./caddymodule/...",
		except:    []string{"./caddymodule", "./caddymodule/command/...", "./caddymodule/demo/..."},
		forbidden: []string{"./caddymodule", "./caddymodule/command/...", "./caddymodule/demo/..."},
		why:       "caddymodule registers what the packages below it have: they do not know who brings them together",
	},
	{
		pkg:       "./caddymodule/demo/...",
		forbidden: []string{"./caddymodule/command/..."},
		why:       "the command runs the demo",
	},
	{
		pkg:       "./caddymodule/adminapi/...",
		forbidden: []string{"./caddymodule", caddy},
		why:       "adminapi is the form of requests and answers: who handles or sends them is not its business",
	},
	{
		pkg:       "./outcome/...",
		forbidden: []string{own + "/...", caddy, goRedis},
		why:       "outcome judges an answer of the shop, and needs the standard library only",
	},
	{
		pkg:       "./refuse/...",
		forbidden: []string{"./attempt/...", "./filters/...", "./token/...", "./bearer/...", "./lua/...", "./reservation/...", "./ledger/...", "./internal/...", caddy, goRedis},
		why:       "refuse writes a refusal as HTTP: it knows only the words of sale",
	},
	{
		pkg:       "./ledger",
		forbidden: []string{"./ledger/sqlite/...", "./ledger/postgres/..."},
		why:       "the ledger drains into any database: the drivers know it, and it does not know them",
	},
	{
		pkg:       "./...",
		except:    []string{".", "./cmd/...", "./caddymodule/..."},
		forbidden: []string{"./caddymodule/..."},
		why:       "caddymodule is the front door: only the commands and the root package go in there",
	},
	{
		pkg:       "./...",
		except:    []string{"./internal/redistest/...", "./internal/model/...", "./internal/pgtest/...", "./internal/ledgertest/...", "./internal/sitetest/..."},
		forbidden: []string{"./internal/sitetest/...", "./internal/redistest/...", "./internal/model/...", "./internal/pgtest/...", "./internal/ledgertest/..."},
		why:       "what tests need must not be compiled into what is shipped",
	},
	{
		pkg:       "./...",
		except:    []string{"./internal/auditor/..."},
		forbidden: []string{"./internal/auditor/..."},
		why:       "the auditor judges what is built; nothing that is built may know it",
	},
	{
		pkg:       "./...",
		except:    []string{".", "./cmd/...", "./caddymodule/demo/...", "./caddymodule/command/...", "./internal/shop/...", "./internal/stampede/..."},
		forbidden: []string{"./internal/shop/...", "./internal/stampede/..."},
		why:       "the shop and the crowd of the demo stand outside of the gate",
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

// inside is what each package below caddymodule imports of the others there. A new arrow is
// a change of design.
var inside = map[string][]string{
	"internal/meter":     nil,
	"internal/reply":     nil,
	"internal/directive": nil,
	"internal/request":   {"adminapi"},
	"adminapi":           nil,
	"edgeruntime":               {"internal/meter"},
	"bookcache":          {"desk"},
	"lists":              {"desk", "internal/directive"},
	"app":                {"bookcache", "desk", "internal/directive", "internal/meter", "lists"},
	"ledgers/postgres":   {"app"},
	"ledgers/sqlite":     {"app"},
	"jwt":                {"internal/directive"},
	"pow":                {"internal/directive"},
	"rates":              {"desk", "internal/directive"},
	"probe":              {"desk", "internal/meter"},
	"guard":              {"internal/directive", "internal/meter", "internal/reply"},
	"forward":            {"desk", "internal/meter", "internal/reply"},
	"gate": {"adminapi", "app", "desk", "forward", "guard", "internal/directive", "internal/meter", "internal/reply", "internal/request",
		"jwt", "lists", "pow", "probe", "rates"},
	"status":   {"app", "bookcache", "desk"},
	"shopapi":  {"app", "desk", "internal/directive", "internal/meter", "internal/request"},
	"fast":     {"app", "gate", "guard", "status"},
	"operator": {"adminapi", "app", "desk", "fast", "gate", "internal/request", "lists", "probe", "rates", "shopapi"},
	"":         {"app", "fast", "gate", "guard", "operator", "shopapi", "status"},
	"demo":     {"", "app"},
	"command":  {"", "adminapi", "app", "demo"},
}

// TestArrowsInsideOfCaddymodule compares the map with what go list says, both ways: an
// arrow that is not in the map is new, one that is gone must leave the map.
func TestArrowsInsideOfCaddymodule(t *testing.T) {
	const root = own + "/caddymodule"
	graph := importGraph(t)
	seen := 0
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		if !matches(pkg, root+"/...") {
			continue
		}
		seen++
		name := strings.TrimPrefix(strings.TrimPrefix(pkg, root), "/")
		want, known := inside[name]
		if !known {
			t.Errorf("caddymodule/%s is not in the map: say what it may import", name)
			continue
		}
		var have []string
		for _, path := range graph[pkg] {
			if matches(path, root+"/...") {
				have = append(have, strings.TrimPrefix(strings.TrimPrefix(path, root), "/"))
			}
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("caddymodule/%s imports %q of its neighbours, the map says %q", name, have, want)
		}
	}
	if seen != len(inside) {
		t.Errorf("the map has %d packages, go list knows %d", len(inside), seen)
	}
}

// TestPackagesAreSmall: the files of a package read in an hour. Tests do not count.
func TestPackagesAreSmall(t *testing.T) {
	const mostFiles, mostLines = 25, 5_000
	for _, dir := range []string{"caddymodule", "refuse"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			files, err := filepath.Glob(filepath.Join(path, "*.go"))
			if err != nil {
				return err
			}
			files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
			lines := 0
			for _, file := range files {
				lines += strings.Count(read(t, file), "\n")
			}
			if len(files) > mostFiles || lines > mostLines {
				t.Errorf("%s has %d files with %d lines: at most %d and %d", path, len(files), lines, mostFiles, mostLines)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestTheRootBringsAll: a build that imports the root has the modules, the commands and
// the ledgers. No other package imports them, so nothing else would miss them.
func TestTheRootBringsAll(t *testing.T) {
	graph := importGraph(t)
	for _, pkg := range []string{"./caddymodule", "./caddymodule/command", "./caddymodule/demo", "./caddymodule/fast", "./caddymodule/operator", "./caddymodule/ledgers/sqlite", "./caddymodule/ledgers/postgres"} {
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
