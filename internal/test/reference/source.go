package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// sources parses packages of the module, once each.
type sources struct {
	root   string // the directory of the module
	module string // its path
	parsed map[string][]*ast.File
}

func newSources(root string) *sources {
	return &sources{root: root, module: "github.com/stockgate/stockgate", parsed: make(map[string][]*ast.File)}
}

// files are the source files of a package, tests aside.
func (s *sources) files(dir string) ([]*ast.File, error) {
	if files, ok := s.parsed[dir]; ok {
		return files, nil
	}
	names, err := filepath.Glob(filepath.Join(s.root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	set := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, group := range file.Comments {
			lines[group] = span{set.Position(group.Pos()).Line, set.Position(group.End()).Line}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.KeyValueExpr, *ast.AssignStmt:
				lines[n] = span{set.Position(n.Pos()).Line, set.Position(n.End()).Line}
			}
			return true
		})
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no package in %s", dir)
	}
	s.parsed[dir] = files
	return files, nil
}

// span are the first and the last line of a node.
type span struct{ first, last int }

// lines are those of comments, of entries in composite literals, and of assignments.
var lines = make(map[ast.Node]span)

// text is the value of a constant expression of strings: literals, sums, and constants of this package or
// of another one of the module.
func (s *sources) text(dir string, file *ast.File, e ast.Expr) (string, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(e.Value)
	case *ast.BinaryExpr:
		x, err := s.text(dir, file, e.X)
		if err != nil {
			return "", err
		}
		y, err := s.text(dir, file, e.Y)
		return x + y, err
	case *ast.Ident:
		return s.constant(dir, e.Name)
	case *ast.SelectorExpr:
		pkg, ok := e.X.(*ast.Ident)
		if !ok {
			break
		}
		for _, imported := range file.Imports {
			name, err := strconv.Unquote(imported.Path.Value)
			if err != nil {
				return "", err
			}
			if below, ok := strings.CutPrefix(name, s.module+"/"); ok && path.Base(name) == pkg.Name {
				return s.constant(below, e.Sel.Name)
			}
		}
	}
	return "", fmt.Errorf("%s: %T is no constant text", dir, e)
}

// constant is the value of a constant of a package.
func (s *sources) constant(dir, name string) (string, error) {
	files, err := s.files(dir)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				for i, ident := range value.Names {
					if ident.Name == name && i < len(value.Values) {
						return s.text(dir, file, value.Values[i])
					}
				}
			}
		}
	}
	return "", fmt.Errorf("%s has no constant %s", dir, name)
}

// function is a function or a method of a package, by its name; the receiver's type is empty for a function.
func (s *sources) function(dir, receiver, name string) (*ast.FuncDecl, *ast.File, error) {
	files, err := s.files(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name && receiverOf(f) == receiver {
				return f, file, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("%s has no function %s of %q", dir, name, receiver)
}

func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if ident, ok := t.(*ast.Ident); ok {
		return ident.Name
	}
	return ""
}

// field is one of a struct: its names in Go and in JSON, and its comment.
type field struct{ name, tag, doc string }

// structure returns the fields of a struct that JSON has, in their order.
func (s *sources) structure(dir, name string) ([]field, error) {
	files, err := s.files(dir)
	if err != nil {
		return nil, err
	}
	var found *ast.StructType
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == name {
				found, _ = spec.Type.(*ast.StructType)
			}
			return true
		})
	}
	if found == nil {
		return nil, fmt.Errorf("%s has no struct %s", dir, name)
	}
	var fields []field
	for _, f := range found.Fields.List {
		if f.Tag == nil || len(f.Names) == 0 {
			continue
		}
		_, tag, _ := strings.Cut(f.Tag.Value, `json:"`)
		tag, _, _ = strings.Cut(tag, `"`)
		tag, _, _ = strings.Cut(tag, ",")
		fields = append(fields, field{f.Names[0].Name, tag, f.Doc.Text()})
	}
	return fields, nil
}
