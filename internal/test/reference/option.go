package reference

import (
	"fmt"
	"go/ast"
	"strings"
)

// option is one option of a block: its name, its syntax and what it does.
type option struct {
	name, usage, text string
	repeatable        bool
}

func isOption(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "Option"
	case *ast.SelectorExpr:
		return e.Sel.Name == "Option"
	}
	return false
}

// commentOf is the comment that stands right above an entry or an assignment.
func commentOf(file *ast.File, entry ast.Node) string {
	for _, group := range file.Comments {
		if lines[group].last == lines[entry].first-1 {
			return group.Text()
		}
	}
	return ""
}

// option reads one entry. Its text is the comment above it; without one, the comment of the field that it
// fills: the one whose address Read gets, that has the option's name in JSON, or to which Read assigns first.
func (s *sources) option(p place, file *ast.File, fields []field, name, comment string, value *ast.CompositeLit) (option, error) {
	o := option{name: name, text: first(comment)}
	var read ast.Expr
	for _, e := range value.Elts {
		entry := e.(*ast.KeyValueExpr)
		switch entry.Key.(*ast.Ident).Name {
		case "Usage":
			usage, err := s.text(p.dir, file, entry.Value)
			if err != nil {
				return o, err
			}
			o.usage = usage
		case "Read":
			read = entry.Value
		case "List":
			o.repeatable = true
		}
	}
	if o.usage == "" || o.text != "" {
		return o, nil
	}
	for _, candidate := range []string{addressed(read), byTag(fields, name), s.assigned(p, fields, read)} {
		for _, f := range fields {
			if f.name == candidate {
				o.text = about(f)
			}
		}
		if o.text != "" {
			return o, nil
		}
	}
	return o, fmt.Errorf("%s: %s has no comment that says what the option %s does: write it above its entry in %s", p.dir, p.structure, name, p.function)
}

// addressed is the field whose address an expression takes.
func addressed(e ast.Expr) (name string) {
	if _, ok := e.(*ast.FuncLit); ok {
		return ""
	}
	ast.Inspect(e, func(n ast.Node) bool {
		if unary, ok := n.(*ast.UnaryExpr); ok && name == "" {
			if selector, ok := unary.X.(*ast.SelectorExpr); ok {
				name = selector.Sel.Name
			}
		}
		return true
	})
	return name
}

func byTag(fields []field, name string) string {
	for _, f := range fields {
		if f.tag == name {
			return f.name
		}
	}
	return ""
}

// assigned is the first of the fields to which a function assigns.
func (s *sources) assigned(p place, fields []field, read ast.Expr) (name string) {
	var body ast.Node = read
	if method, ok := read.(*ast.SelectorExpr); ok {
		f, _, err := s.function(p.dir, p.receiver, method.Sel.Name)
		if err != nil {
			if f, _, err = s.function(p.dir, p.structure, method.Sel.Name); err != nil {
				return ""
			}
		}
		body = f.Body
	}
	ast.Inspect(body, func(n ast.Node) bool {
		assignment, ok := n.(*ast.AssignStmt)
		if !ok || name != "" {
			return true
		}
		for _, left := range assignment.Lhs {
			if selector, ok := left.(*ast.SelectorExpr); ok {
				for _, f := range fields {
					if f.name == selector.Sel.Name && name == "" {
						name = f.name
					}
				}
			}
		}
		return true
	})
	return name
}

// first is the first paragraph of a comment, in one line: the rest is for readers of the code.
func first(comment string) string {
	paragraph, _, _ := strings.Cut(comment, "\n\n")
	return strings.Join(strings.Fields(paragraph), " ")
}

// about is what the comment of a field says without its name.
func about(f field) string {
	text := first(f.doc)
	for _, begin := range []string{f.name + " is ", f.name + " are ", f.name + ": ", f.name + " "} {
		if rest, ok := strings.CutPrefix(text, begin); ok {
			return rest
		}
	}
	return text
}
