package stockgate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// store is the package behind which Redis with Lua stands: all others name what they want by the table of
// operations, and by the reads, cursors and subscriptions of this package.
const store = "internal/store/shard"

// clientsOfRedis are the packages beside it that may import go-redis, each with its reason.
var clientsOfRedis = map[string]string{
	"internal/ledger/movein":   "reads the shop's own Redis",
	"internal/ledger/mirror":   "writes into the shop's own Redis",
	"caddymodule/operate/demo": "asks whether the Redis that its user names is there, and clears what an earlier demo has left",
	"internal/test/redistest":  "starts servers for tests",
	"internal/test/stocktest":  "looks at shards in tests, past the product",
	"internal/test/ledgertest": "looks at shards in tests, past the product",
	"bench/drive":              "measures Redis without the product",
	"bench/peer":               "is what the product is compared with",
}

// sources are the Go files of the repository, tests aside, by directory.
func sources(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "testdata" || entry.Name() == ".git"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			dir := path.Dir(filepath.ToSlash(name))
			all[dir] = append(all[dir], name)
		}
		return nil
	})
	if err != nil || len(all) < 80 {
		t.Fatalf("%d packages, %v", len(all), err)
	}
	return all
}

// Only the store imports go-redis, and the packages that have a reason; none of these without need.
func TestOnlyTheStoreImportsGoRedis(t *testing.T) {
	for dir, names := range sources(t) {
		imports := false
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			imports = imports || slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
				imported, _ := strconv.Unquote(i.Path.Value)
				return matches(imported, goRedis)
			})
		}
		why, excepted := clientsOfRedis[dir]
		switch {
		case imports && dir != store && !excepted:
			t.Errorf("%s imports go-redis: let package %s have a method for what it wants", dir, store)
		case excepted && !imports:
			t.Errorf("%s does not import go-redis any more (%s): take it off the list", dir, why)
		}
	}
}

// No package reaches through the store: shard.Redis is for tests.
func TestNothingReachesThroughTheStore(t *testing.T) {
	through := regexp.MustCompile(`\bshard\.Redis\(`)
	scripts := regexp.MustCompile(`\blua\.(?:Redis|Embedded)\(\)|\bOptions\.Scripts\b|\.OfNone\(\)`)
	allowed := map[string]string{
		"caddymodule/command":                 "prints the scripts",
		"internal/store/reservation/embedded": "says that the Redis in the process has the scripts for it",
	}
	for dir, names := range sources(t) {
		_, client := clientsOfRedis[dir]
		if dir == store || dir == "lua" || client || strings.HasPrefix(dir, "bench/") {
			continue
		}
		for _, name := range names {
			text := read(t, name)
			if found := through.FindString(text); found != "" {
				t.Errorf("%s: %s reaches through package %s", name, found, store)
			}
			if found := scripts.FindString(text); found != "" && allowed[dir] == "" {
				t.Errorf("%s: %s names a script: name an operation of the table", name, found)
			}
		}
	}
}

// An operation is named by its entry in the table, never by its word.
func TestOperationsAreNamedByTheTable(t *testing.T) {
	word := regexp.MustCompile(`\b(?:shard\.)?Op\(\s*"|\.Operation\.Name\s*[=!]=|\b[oO]p\.Name\s*[=!]=\s*"`)
	for dir, names := range sources(t) {
		for _, name := range names {
			if dir == "filters/scope" { // of GraphQL
				continue
			}
			if found := word.FindString(read(t, name)); found != "" {
				t.Errorf("%s: %s is a word where an operation of lua/operations.go is meant", name, found)
			}
		}
	}
}
