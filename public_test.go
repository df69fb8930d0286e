package stockgate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms are the directories at the top. Packages that no user imports are in internal, but for caddymodule,
// filters and lua, which a reader looks for first.
var rooms = []string{"bench", "caddymodule", "cmd", "docs", "e2e", "examples", "filters", "internal", "lua", "scripts", "token"}

// public are the packages that users import, and what Stockgate promises of Go: token is for shops, the
// others are for builds of Caddy (docs/install.md).
var public = []string{".", "caddymodule", "caddymodule/command", "caddymodule/ledgers/mysql", "caddymodule/ledgers/postgres", "caddymodule/ledgers/sqlite", "caddymodule/mirror", "caddymodule/movein", "caddymodule/notify", "token"}

// mostPublicNames bounds the exported names of the public packages.
const mostPublicNames = 120

// TestRooms: each directory at the top is a room.
func TestRooms(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() && !strings.HasPrefix(name, ".") && name != "bin" && name != "dist" && name != "site" && !slices.Contains(rooms, name) {
			t.Errorf("%s is no room: put it below one of %q", name, rooms)
		}
	}
}

// TestPublicNames: the public packages export few names, and no exported type of theirs, nor a field of a
// configuration, names a type of an internal package. The answers of the admin API, below operate, are no
// configuration.
func TestPublicNames(t *testing.T) {
	names := 0
	for dir, files := range sources(t) {
		isPublic := slices.Contains(public, dir)
		if !isPublic && (!strings.HasPrefix(dir, "caddymodule/") || strings.HasPrefix(dir, "caddymodule/operate/")) {
			continue
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if isPublic {
				for _, d := range file.Decls {
					names += exported(d)
				}
			}
			for _, found := range internalTypes(file, isPublic) {
				t.Errorf("%s: %s is a type of an internal package", name, found)
			}
		}
	}
	t.Logf("%d exported names", names)
	if names > mostPublicNames {
		t.Errorf("the public packages export %d names, at most %d: unexport some, or move them into internal", names, mostPublicNames)
	}
}

// internalTypes are the types of internal packages that the exported types of a file name. all: in each
// exported field; else only in fields of a configuration, which have a name in JSON.
func internalTypes(file *ast.File, all bool) (found []string) {
	internal := map[string]bool{}
	for _, i := range file.Imports {
		imported, _ := strconv.Unquote(i.Path.Value)
		if strings.HasPrefix(imported, own+"/internal/") {
			internal[filepath.Base(imported)] = true
		}
	}
	look := func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && internal[x.Name] {
				found = append(found, x.Name+"."+s.Sel.Name)
			}
		}
		return true
	}
	for _, d := range file.Decls {
		types, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range types.Specs {
			s, ok := s.(*ast.TypeSpec)
			if !ok || !s.Name.IsExported() {
				continue
			}
			fields, ok := s.Type.(*ast.StructType)
			if !ok {
				if all {
					ast.Inspect(s.Type, look)
				}
				continue
			}
			for _, field := range fields.Fields.List {
				isExported := len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported)
				configured := field.Tag != nil && strings.Contains(field.Tag.Value, `json:"`) && !strings.Contains(field.Tag.Value, `json:"-"`)
				if isExported && (all || configured) {
					ast.Inspect(field.Type, look)
				}
			}
		}
	}
	return found
}
