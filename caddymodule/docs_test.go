package caddymodule_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/stockgate/stockgate/caddymodule"
)

var caddyfileBlock = regexp.MustCompile("(?s)```caddyfile\n(.*?)```")

// The Caddyfiles of the README and of docs adapt as they are, without a warning of
// Stockgate's.
func TestCaddyfilesOfDocs(t *testing.T) {
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	whole := make(map[string]int)
	for _, file := range append(files, "../README.md") {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range caddyfileBlock.FindAllStringSubmatch(string(page), -1) {
			if strings.HasPrefix(block[1], "{") {
				whole[filepath.Base(file)]++
			}
			text := completed(block[1])
			_, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": file})
			if err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
			for _, w := range warnings {
				if w.Directive == "stockgate" {
					t.Errorf("%s: %s in\n%s", file, w.Message, text)
				}
			}
		}
	}
	for _, page := range []string{"README.md", "configure.md", "install.md"} {
		if whole[page] == 0 {
			t.Errorf("%s has no whole Caddyfile", page)
		}
	}
}

// completed makes a whole Caddyfile of a part.
func completed(text string) string {
	site := func(more string) string {
		if !strings.Contains(more, "stockgate_guard") {
			more = "stockgate_guard\n" + more
		}
		return "a.example {\n@order method POST\n" + more + "}\n"
	}
	switch word := strings.Fields(text)[0]; {
	case word == "{" || strings.HasPrefix(word, "http://"): // all of it, or a site of its own
		return text
	case word == "redis": // an option of the global block
		return "{\nstockgate {\n" + text + "}\n}\n"
	case word == "jwt": // options of a gate
		return site("stockgate @order {\nline {json.sku}\n" + text + "}\n")
	}
	return site(text)
}

// blocks are where the Caddyfile has options: the heading of docs/configure.md that lists
// them, and a Caddyfile with the option %s in that block.
var blocks = map[string]string{
	"## Global options":     "{\nstockgate {\n%s\n}\n}\n",
	"### redis":             "{\nstockgate {\nredis {\n%s\n}\n}\n}\n",
	"### rate_redis":        "{\nstockgate {\nrate_redis {\n%s\n}\n}\n}\n",
	"### token":             "{\nstockgate {\ntoken {\n%s\n}\n}\n}\n",
	"### journal":           "{\nstockgate {\njournal {\n%s\n}\n}\n}\n",
	"### outbox":            "{\nstockgate {\noutbox https://a.example/ {\n%s\n}\n}\n}\n",
	"### mirror":            "{\nstockgate {\nmirror redis://a.example {\n%s\n}\n}\n}\n",
	"## The gate":           "a.example {\nstockgate {\n%s\n}\n}\n",
	"## The check":          "a.example {\nstockgate_check {\n%s\n}\n}\n",
	"### The shop's answer": "a.example {\nstockgate {\n@sold {\n%s\n}\n}\n}\n",
	"### jwt":               "a.example {\nstockgate {\njwt https://a.example/ {\n%s\n}\n}\n}\n",
	"### challenge":         "a.example {\nstockgate {\nchallenge pow {\n%s\n}\n}\n}\n",
	"### lookup":            "a.example {\nstockgate {\nlookup http://a.example/ {\n%s\n}\n}\n}\n",
	"### outcome ask":       "a.example {\nstockgate {\noutcome ask http://a.example/ {\n%s\n}\n}\n}\n",
	"### queue":             "a.example {\nstockgate {\nqueue {\n%s\n}\n}\n}\n",
	"### in_doubt probe":    "a.example {\nstockgate {\nin_doubt probe http://a.example/{id} {\n%s\n}\n}\n}\n",
	"## Fast refusals":      "a.example {\nstockgate {\nfast_refusals {\n%s\n}\n}\n}\n",
	"## The guard":          "a.example {\nstockgate_guard {\n%s\n}\n}\n",
	"## The page":           "a.example {\nstockgate_dashboard {\n%s\n}\n}\n",
	"## The shop's API":     "a.example {\nstockgate_api {\n%s\n}\n}\n",
	"## Payment webhooks":   "a.example {\nstockgate_resolve {\n%s\n}\n}\n",
	"### Events":            "a.example {\nstockgate_resolve {\n@paid {\n%s\n}\n}\n}\n",
}

// Every option that the Caddyfile knows is in docs/configure.md, under its block, and no
// other; and every block of options is one of those.
func TestOptionsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/configure.md")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for name, text := range blocks {
		want := optionsOf(t, name, text)
		for _, option := range want {
			known[option] = true
		}
		if have := documentedOptions(t, string(page), name); !slices.Equal(have, want) {
			t.Errorf("docs/configure.md, %q: it has %q, the Caddyfile knows %q", name, have, want)
		}
	}
	for _, option := range optionsOfSource(t) {
		if !known[option] {
			t.Errorf("the option %s is in no block that this test knows: add the block, and its options to docs/configure.md", option)
		}
	}
}

// Every word of the option rate is in docs/configure.md.
func TestRateIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/configure.md")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = caddyconfig.GetAdapter("caddyfile").Adapt([]byte("a.example {\nstockgate {\nrate all 5 1s no_such_word\n}\n}\n"), nil)
	if err == nil {
		t.Fatal("an unknown word is no error")
	}
	var want, have []string
	for _, m := range regexp.MustCompile(`\[([a-z0-9]+)`).FindAllStringSubmatch(err.Error(), -1) {
		want = append(want, m[1])
	}
	for _, name := range documentedOptions(t, string(page), "### rate") {
		if !strings.HasPrefix(name, "<") {
			have = append(have, name)
		}
	}
	slices.Sort(want)
	if len(want) == 0 || !slices.Equal(have, want) {
		t.Errorf("docs/configure.md has the words %q of rate, the Caddyfile knows %q", have, want)
	}
}

// optionsOf are the options of a block, as the error about an unknown one lists them.
func optionsOf(t *testing.T, name, text string) []string {
	t.Helper()
	_, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(fmt.Sprintf(text, "no_such_option")), nil)
	if err == nil {
		t.Fatalf("%s: an unknown option is no error", name)
	}
	list := regexp.MustCompile(`unrecognized subdirective "no_such_option": there are ([^\n]*?)(?:, at |$)`).FindStringSubmatch(err.Error())
	if list == nil {
		t.Fatalf("%s: the error lists no options: %v", name, err)
	}
	return strings.Split(list[1], ", ")
}

// documentedOptions are the first words of the tables under a heading of a page.
func documentedOptions(t *testing.T, page, heading string) []string {
	t.Helper()
	_, part, ok := strings.Cut(page, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("docs/configure.md has no heading %q", heading)
	}
	part, _, _ = strings.Cut(part, "\n#")
	var names []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^ `]+)[^|\n]*(?:\\\\\\|[^|\n]*)*\\|[^\n]*").FindAllStringSubmatch(part, -1) {
		if strings.Count(strings.ReplaceAll(m[0], `\|`, ""), "|") != 5 {
			continue // a table of something else
		}
		name := m[1]
		if strings.HasPrefix(name, "@") {
			name = "@name"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// optionsOfSource are the keys of all tables of options in the source of the packages below.
func optionsOfSource(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			table, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			m, ok := table.Type.(*ast.MapType)
			if !ok {
				return true
			}
			if value, ok := m.Value.(*ast.SelectorExpr); !ok || fmt.Sprint(value.X) != "directive" || value.Sel.Name != "Option" {
				return true
			}
			for _, entry := range table.Elts {
				if key, ok := entry.(*ast.KeyValueExpr).Key.(*ast.BasicLit); ok {
					name, err := strconv.Unquote(key.Value)
					if err != nil {
						t.Fatal(err)
					}
					names = append(names, strings.Replace(name, "@", "@name", 1))
				}
			}
			return true
		})
	}
	if len(names) < 60 {
		t.Fatalf("only %d options were found in the source", len(names))
	}
	return names
}
