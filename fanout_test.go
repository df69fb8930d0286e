package stockgate_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostImports is how many packages of this module one package may import: more cannot be held in
// the head.
const mostImports = 15

// compositionRoots put the others together.
var compositionRoots = []string{"", "caddymodule", "caddymodule/command"}

// TestFanOut bounds the packages that one package imports. With -v it reports the largest contexts:
// the lines of a package and the names that the packages it imports export to it.
func TestFanOut(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(arrows)) {
		if have := len(arrows[name]); have > mostImports && !slices.Contains(compositionRoots, name) {
			t.Errorf("%s imports %d packages of this module, at most %d: split it, or let a package below it do more", name, have, mostImports)
		}
	}
	sizes := make(map[string]context)
	for name := range arrows {
		sizes[name] = sizeOf(t, name)
	}
	var contexts []context
	for name := range arrows {
		c := context{name: name, lines: sizes[name].lines}
		for _, imported := range arrows[name] {
			c.names += sizes[imported].names
		}
		contexts = append(contexts, c)
	}
	slices.SortFunc(contexts, func(a, b context) int { return b.names - a.names })
	report := fmt.Sprintf("%-28s %7s %14s %9s", "package", "lines", "imports of ours", "names")
	for _, c := range contexts[:15] {
		report += fmt.Sprintf("\n%-28s %7d %14d %9d", cmp.Or(c.name, "the root"), c.lines, len(arrows[c.name]), c.names)
	}
	t.Log(report)
}

// context is what a reader of a package has to know: its lines, and the exported names of what it
// imports of this module.
type context struct {
	name         string
	lines, names int
}

// sizeOf counts the lines of a package and its exported top-level names and methods, tests aside.
func sizeOf(t *testing.T, name string) (c context) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(".", name, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c.lines += strings.Count(string(text), "\n")
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			c.names += exported(d)
		}
	}
	return c
}

// exported counts the exported names of a declaration.
func exported(d ast.Decl) (n int) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() {
			n++
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					n++
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() {
						n++
					}
				}
			}
		}
	}
	return n
}
