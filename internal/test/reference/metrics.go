package reference

import (
	"errors"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// metricPackages register metrics.
var metricPackages = []string{"caddymodule/internal/meter", "caddymodule/app"}

// metric is one registration.
type metric struct{ name, kind, labels, help string }

// Metrics returns the metrics of the source, by kind and name.
func Metrics(root string) (string, error) {
	s := newSources(root)
	var all []metric
	for _, dir := range metricPackages {
		files, err := s.files(dir)
		if err != nil {
			return "", err
		}
		for _, file := range files {
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Body == nil {
					continue
				}
				found, err := s.metrics(dir, file, f)
				if err != nil {
					return "", err
				}
				all = append(all, found...)
			}
		}
	}
	slices.SortFunc(all, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	for _, list := range []struct{ kind, heading string }{{"counter", "Counters"}, {"gauge", "Gauges"}, {"histogram", "Histograms"}, {"summary", "Summaries"}} {
		fmt.Fprintf(&b, "\n## %s\n\n", list.heading)
		for _, m := range all {
			if m.kind != list.kind {
				continue
			}
			labels := ""
			if m.labels != "" {
				labels = "{" + m.labels + "}"
			}
			fmt.Fprintf(&b, "- `%s%s`: %s\n", m.name, labels, strings.TrimSuffix(m.help, "."))
		}
	}
	return b.String(), nil
}

// metrics are the registrations in a function: prometheus.New…(prometheus.…Opts{Name, Help}, labels),
// prometheus.NewDesc(name, help, labels, nil), or a local function that makes one of these from name and help.
func (s *sources) metrics(dir string, file *ast.File, f *ast.FuncDecl) ([]metric, error) {
	local := make(map[string]*ast.FuncLit)
	var found []metric
	var errs []error
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if lit, ok := n.Rhs[0].(*ast.FuncLit); ok {
				local[n.Lhs[0].(*ast.Ident).Name] = lit
			}
		case *ast.KeyValueExpr: // a description, in the field that Collect reads
			if call, ok := n.Value.(*ast.CallExpr); ok {
				m, ok, err := s.metric(dir, file, local, call)
				errs = append(errs, err)
				if name, named := n.Key.(*ast.Ident); ok && named && s.summaries(dir)[name.Name] {
					m.kind, m.labels = "summary", "quantile"
				}
				if ok {
					found = append(found, m)
				}
				return !ok
			}
		case *ast.CallExpr:
			m, ok, err := s.metric(dir, file, local, n)
			errs = append(errs, err)
			if ok {
				found = append(found, m)
			}
		}
		return true
	})
	return found, errors.Join(errs...)
}

// summaries are the fields whose descriptions are collected as summaries.
func (s *sources) summaries(dir string) map[string]bool {
	fields := make(map[string]bool)
	for _, file := range s.parsed[dir] {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			made, ok := call.Fun.(*ast.SelectorExpr)
			field, is := call.Args[0].(*ast.SelectorExpr)
			if ok && is && made.Sel.Name == "MustNewConstSummary" {
				fields[field.Sel.Name] = true
			}
			return true
		})
	}
	return fields
}

func (s *sources) metric(dir string, file *ast.File, local map[string]*ast.FuncLit, call *ast.CallExpr) (m metric, ok bool, err error) {
	if len(call.Args) == 0 {
		return m, false, nil
	}
	labels := call.Args[1:]
	var name, help ast.Expr
	var maker ast.Node = call
	switch first := call.Args[0].(type) {
	case *ast.CompositeLit:
		name, help = entry(first, "Name"), entry(first, "Help")
	default:
		if len(call.Args) < 2 {
			return m, false, nil
		}
		name, help, labels = first, call.Args[1], call.Args[2:]
		if called, is := call.Fun.(*ast.Ident); is && local[called.Name] != nil {
			maker = local[called.Name]
			if own := labelsIn(maker); len(own) > 0 {
				labels = own
			}
		} else if selector, is := call.Fun.(*ast.SelectorExpr); !is || selector.Sel.Name != "NewDesc" {
			return m, false, nil
		}
	}
	if lit, is := name.(*ast.BasicLit); !is || !strings.Contains(lit.Value, "stockgate_") {
		return m, false, nil
	}
	if m.name, err = s.text(dir, file, name); err != nil {
		return m, false, err
	}
	if m.help, err = s.text(dir, file, help); err != nil {
		return m, false, fmt.Errorf("%s: %w", m.name, err)
	}
	m.kind, m.labels = kindOf(m.name, maker), s.labels(dir, file, labels)
	return m, true, nil
}

// entry is the value of a key in a composite literal.
func entry(lit *ast.CompositeLit, key string) ast.Expr {
	for _, e := range lit.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if ident, ok := pair.Key.(*ast.Ident); ok && ident.Name == key {
				return pair.Value
			}
		}
	}
	return nil
}

// labelsIn are the literal labels in a function that makes metrics.
func labelsIn(n ast.Node) (found []ast.Expr) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			if _, ok := lit.Type.(*ast.ArrayType); ok && len(lit.Elts) > 0 {
				if _, literal := lit.Elts[0].(*ast.BasicLit); literal {
					found = append(found, lit)
				}
			}
		}
		return true
	})
	return found
}

// labels are the texts of label arguments: a list of strings, or strings.
func (s *sources) labels(dir string, file *ast.File, args []ast.Expr) string {
	var all []string
	for _, arg := range args {
		values := []ast.Expr{arg}
		if lit, ok := arg.(*ast.CompositeLit); ok {
			values = lit.Elts
		}
		for _, v := range values {
			if _, ok := v.(*ast.BasicLit); ok {
				if text, err := s.text(dir, file, v); err == nil {
					all = append(all, text)
				}
			}
		}
	}
	return strings.Join(all, ",")
}

// kindOf is the kind of a metric: that of the options it is made of; of a description, a counter if its
// name ends in _total.
func kindOf(name string, maker ast.Node) string {
	kind := "gauge"
	if strings.HasSuffix(name, "_total") {
		kind = "counter"
	}
	ast.Inspect(maker, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok && strings.HasSuffix(selector.Sel.Name, "Opts") {
			kind = strings.ToLower(strings.TrimSuffix(selector.Sel.Name, "Opts"))
		}
		return true
	})
	return kind
}
