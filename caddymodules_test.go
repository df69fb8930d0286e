package stockgate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// caddyPackage is what is found of Caddy modules in the files of one package.
type caddyPackage struct {
	registered []string          // types that an init function registers
	ids        map[string]string // by type, the literal in its CaddyModule
	unread     []string          // positions of what no reader of the source understands
}

// The page of modules on Caddy's website reads the source, and runs nothing: each module is registered in its own package, by an
// init function, as a type of that package, and CaddyModule returns its id as a literal.
func TestModulesCanBeReadFromTheSource(t *testing.T) {
	packages := make(map[string]*caddyPackage)
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(wordsNever, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		if packages[dir] == nil {
			packages[dir] = &caddyPackage{ids: make(map[string]string)}
		}
		packages[dir].read(files, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]string)
	for dir, p := range packages {
		for _, at := range p.unread {
			t.Errorf("%s: a module that cannot be read: register a type of this package in an init function, and return its id as a literal", at)
		}
		for _, name := range p.registered {
			id := p.ids[name]
			if id == "" {
				t.Errorf("%s registers %s, whose CaddyModule is in no file there", dir, name)
			} else if other, twice := seen[id]; twice {
				t.Errorf("%s and %s both register %s", other, dir, id)
			}
			seen[id] = dir
		}
		for name, id := range p.ids {
			if !slices.Contains(p.registered, name) {
				t.Errorf("%s: the module %s of %s is not registered there", dir, id, name)
			}
		}
	}
	if len(seen) < 15 {
		t.Errorf("%d modules were found: %v", len(seen), seen)
	}
}

// read notes the modules of a file.
func (p *caddyPackage) read(files *token.FileSet, file *ast.File) {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		if f.Recv != nil && f.Name.Name == "CaddyModule" {
			if id, ok := literalID(f.Body); ok {
				p.ids[typeName(f.Recv.List[0].Type)] = id
			} else {
				p.unread = append(p.unread, files.Position(f.Pos()).String())
			}
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !isSelector(call.Fun, "caddy", "RegisterModule") {
				return true
			}
			name := registeredType(call.Args[0])
			if name == "" || f.Recv != nil || f.Name.Name != "init" {
				p.unread = append(p.unread, files.Position(call.Pos()).String())
			} else {
				p.registered = append(p.registered, name)
			}
			return true
		})
	}
}

func isSelector(e ast.Expr, x, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := s.X.(*ast.Ident)
	return ok && of.Name == x && s.Sel.Name == name
}

// registeredType returns the type in new(T), T{} or &T{}; empty: it is none of them.
func registeredType(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.Ident); ok && f.Name == "new" && len(e.Args) == 1 {
			return typeName(e.Args[0])
		}
	case *ast.CompositeLit:
		return typeName(e.Type)
	case *ast.UnaryExpr:
		if lit, ok := e.X.(*ast.CompositeLit); ok && e.Op == token.AND {
			return typeName(lit.Type)
		}
	}
	return ""
}

func typeName(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if name, ok := e.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// literalID returns the id in a body that is one return of a caddy.ModuleInfo.
func literalID(body *ast.BlockStmt) (id string, ok bool) {
	if len(body.List) != 1 {
		return "", false
	}
	ret, isReturn := body.List[0].(*ast.ReturnStmt)
	if !isReturn || len(ret.Results) != 1 {
		return "", false
	}
	info, isInfo := ret.Results[0].(*ast.CompositeLit)
	if !isInfo || !isSelector(info.Type, "caddy", "ModuleInfo") {
		return "", false
	}
	for _, field := range info.Elts {
		pair, isPair := field.(*ast.KeyValueExpr)
		if !isPair {
			continue
		}
		if key, isKey := pair.Key.(*ast.Ident); !isKey || key.Name != "ID" {
			continue
		}
		literal, isLiteral := pair.Value.(*ast.BasicLit)
		if !isLiteral || literal.Kind != token.STRING {
			return "", false
		}
		id, err := strconv.Unquote(literal.Value)
		return id, err == nil && id != ""
	}
	return "", false
}
