package reference

import (
	"errors"
	"fmt"
	"go/ast"
	"strings"
)

// conflicts lists the options of a gate that exclude or need others, by option, from the table in source.
func (s *sources) conflicts() (string, error) {
	const dir = "caddymodule/gate/option"
	files, err := s.files(dir)
	if err != nil {
		return "", err
	}
	var order []string
	excludes, needs := make(map[string][]string), make(map[string][]string)
	var errs []error
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			table, ok := n.(*ast.CompositeLit)
			if !ok || !isListOf(table, "ConflictRow") {
				return true
			}
			for _, e := range table.Elts {
				lit := e.(*ast.CompositeLit)
				option, err := s.text(dir, file, entry(lit, "Option"))
				errs = append(errs, err)
				name := "`" + option + "`"
				if entry(lit, "Check") != nil {
					name += " of a check"
				}
				if excludes[name] == nil && needs[name] == nil {
					order = append(order, name)
				}
				if need := entry(lit, "Needs"); need != nil {
					text, err := s.text(dir, file, need)
					errs = append(errs, err)
					needs[name] = append(needs[name], "`"+text+"`")
				}
				if others, ok := entry(lit, "Excludes").(*ast.CompositeLit); ok {
					for _, other := range others.Elts {
						text, err := s.text(dir, file, other)
						errs = append(errs, err)
						excludes[name] = append(excludes[name], "`"+text+"`")
					}
				}
			}
			return false
		})
	}
	if len(order) == 0 {
		errs = append(errs, fmt.Errorf("%s has no table of conflicts", dir))
	}
	var b strings.Builder
	for _, name := range order {
		var parts []string
		if needs[name] != nil {
			parts = append(parts, "needs "+strings.Join(needs[name], ", "))
		}
		if excludes[name] != nil {
			parts = append(parts, "not with "+strings.Join(excludes[name], ", "))
		}
		fmt.Fprintf(&b, "- %s: %s\n", name, strings.Join(parts, "; "))
	}
	return b.String(), errors.Join(errs...)
}

// isListOf reports whether a literal is a slice of a type.
func isListOf(lit *ast.CompositeLit, name string) bool {
	list, ok := lit.Type.(*ast.ArrayType)
	if !ok {
		return false
	}
	of, ok := list.Elt.(*ast.Ident)
	return ok && of.Name == name
}
