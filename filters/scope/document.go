package scope

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

const (
	maxTokens   = 5000 // of a document
	maxFragment = 16   // how deep fragments may lead to others
)

// judgeDocument looks for the fields that make an attempt at the root of the operation that
// a server would run.
func (s *Scope) judgeDocument(document, operation string, variables map[string]any) Judgement {
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: document}, maxTokens)
	if err != nil {
		return unclear(CauseSyntax)
	}
	op := chosen(doc, operation)
	if op == nil {
		return unclear(CauseOperation)
	}
	root := rootOf{doc: doc}
	if why := root.add(op.SelectionSet, len(op.Directives) > 0, 0); why != "" {
		return unclear(why)
	}
	var field *ast.Field
	for i, f := range root.fields {
		if !slices.ContainsFunc(s.graphQL, func(rule graphQLRule) bool { return rule.names(f.Name, op.Operation) }) {
			continue
		}
		switch {
		case root.directed[i] || len(f.Directives) > 0:
			return unclear(CauseDirective)
		case len(root.fields) > 1:
			return unclear(CauseFields)
		case op.Operation == ast.Subscription:
			return unclear(CauseOperation)
		}
		field = f
	}
	if field == nil {
		return Judgement{}
	}
	return s.judgeField(field, op, variables)
}

// chosen returns the operation that a server runs; nil: servers may differ, or refuse.
func chosen(doc *ast.QueryDocument, name string) *ast.OperationDefinition {
	var found *ast.OperationDefinition
	for _, op := range doc.Operations {
		if name != "" && op.Name != name {
			continue
		}
		if found != nil {
			return nil
		}
		found = op
	}
	if found == nil {
		return nil
	}
	seen := make(map[string]bool)
	for _, f := range doc.Fragments {
		if seen[f.Name] {
			return nil
		}
		seen[f.Name] = true
	}
	clear(seen)
	for _, v := range found.VariableDefinitions {
		if seen[v.Variable] {
			return nil
		}
		seen[v.Variable] = true
	}
	return found
}

// rootOf has the fields of an operation's root, those of its fragments among them.
type rootOf struct {
	doc      *ast.QueryDocument
	fields   []*ast.Field
	directed []bool // the field is in something that has a directive
}

func (r *rootOf) add(set ast.SelectionSet, directed bool, depth int) Cause {
	if depth > maxFragment || len(r.fields) > maxTokens {
		return CauseSyntax
	}
	for _, selection := range set {
		var why Cause
		switch at := selection.(type) {
		case *ast.Field:
			r.fields = append(r.fields, at)
			r.directed = append(r.directed, directed)
		case *ast.InlineFragment:
			why = r.add(at.SelectionSet, directed || len(at.Directives) > 0, depth+1)
		case *ast.FragmentSpread:
			fragment := r.doc.Fragments.ForName(at.Name)
			if fragment == nil {
				return CauseOperation
			}
			why = r.add(fragment.SelectionSet, directed || len(at.Directives)+len(fragment.Directives) > 0, depth+1)
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// judgeField applies the rules to the only field of an operation.
func (s *Scope) judgeField(field *ast.Field, op *ast.OperationDefinition, variables map[string]any) Judgement {
	args := arguments{op: op, variables: variables, named: make(map[string]*ast.Value, len(field.Arguments))}
	for _, a := range field.Arguments {
		if args.named[a.Name] != nil {
			return unclear(CauseArgument)
		}
		args.named[a.Name] = a.Value
	}
	found := differs
	for _, rule := range s.graphQL {
		if !rule.names(field.Name, op.Operation) {
			continue
		}
		if rule.Argument == "" {
			found = same
			continue
		}
		value, ok := args.scalar(rule.Argument)
		switch {
		case !ok:
			return unclear(CauseArgument)
		case !args.readsWhole(rule.read):
			return unclear(CauseElements)
		}
		found = max(found, matches(rule.Values, value))
	}
	switch {
	case found == doubtful:
		return unclear(CauseValue)
	case found == differs:
		return Judgement{}
	case !args.readsWhole(s.read):
		return unclear(CauseElements)
	case args.hasTwice(s.arguments):
		return unclear(CauseArgument)
	}
	return Judgement{Verdict: Attempt, values: args}
}
