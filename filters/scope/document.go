package scope

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

const (
	maxTokens   = 5000 // of a document
	maxFragment = 16   // how deep fragments may lead to others
)

// judgeDocument looks for the fields that make an attempt in the operation that a server would run.
func (s *Scope) judgeDocument(document, operation string, variables map[string]any) Judgement {
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: document}, maxTokens)
	if err != nil {
		return unclear(CauseSyntax)
	}
	op := chosen(doc, operation)
	if op == nil {
		return unclear(CauseOperation)
	}
	look := search{scope: s, doc: doc, op: op}
	field, at, why := look.find(selected{set: op.SelectionSet, directed: len(op.Directives) > 0})
	switch {
	case why != "":
		return unclear(why)
	case field == nil:
		return Judgement{}
	}
	return s.judgeField(field, at, op, variables)
}

// search looks for the field of an attempt in one operation.
type search struct {
	scope *Scope
	doc   *ast.QueryDocument
	op    *ast.OperationDefinition
	read  int // selections, each as often as fragments and groups lead to it
}

// selected is what an operation selects at its root, or in a field.
type selected struct {
	set      ast.SelectionSet
	at       []string // the fields that it is in
	directed bool     // one of them has a directive, or the operation
}

// find finds the one field that makes an attempt, which must be alone: beside it, and beside the fields
// that it is in. nil: there is none.
func (s *search) find(in selected) (found *ast.Field, path []string, why Cause) {
	level := levelOf{search: s}
	if why := level.add(in.set, in.directed, 0); why != "" {
		return nil, nil, why
	}
	fields := len(level.fields)
	for i, f := range level.fields {
		if len(in.at) > 0 && f.Name == "__typename" { // clients add it to what they select in a field
			fields--
			continue
		}
		at := append(in.at[:len(in.at):len(in.at)], f.Name)
		directed := level.directed[i] || len(f.Directives) > 0
		field, fieldAt, why := f, at, Cause("")
		switch named, leads := s.scope.names(at, s.op.Operation); {
		case named:
		case leads:
			field, fieldAt, why = s.find(selected{f.SelectionSet, at, directed})
		default:
			continue
		}
		switch {
		case why != "":
			return nil, nil, why
		case field == nil:
			continue
		case directed:
			return nil, nil, CauseDirective
		case found != nil:
			return nil, nil, CauseFields
		}
		found, path = field, fieldAt
	}
	switch {
	case found != nil && fields > 1:
		return nil, nil, CauseFields
	case found != nil && s.op.Operation == ast.Subscription:
		return nil, nil, CauseOperation
	}
	return found, path, ""
}

// names tells whether a rule names the field at a path, or one that it leads to.
func (s *Scope) names(at []string, operation ast.Operation) (named, leads bool) {
	for i := range s.graphQL {
		one, other := s.graphQL[i].names(at, operation)
		named, leads = named || one, leads || other
	}
	return named, leads
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

// levelOf has the fields of a selection and of its fragments.
type levelOf struct {
	*search
	fields   []*ast.Field
	directed []bool // the field is in something that has a directive
}

func (r *levelOf) add(set ast.SelectionSet, directed bool, depth int) Cause {
	if depth > maxFragment {
		return CauseSyntax
	}
	for _, selection := range set {
		// fragments that name others twice, at each of several levels, would take minutes
		if r.read++; r.read > maxTokens {
			return CauseSyntax
		}
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
func (s *Scope) judgeField(field *ast.Field, at []string, op *ast.OperationDefinition, variables map[string]any) Judgement {
	args := arguments{op: op, variables: variables, named: make(map[string]*ast.Value, len(field.Arguments))}
	for _, a := range field.Arguments {
		if args.named[a.Name] != nil {
			return unclear(CauseArgument)
		}
		args.named[a.Name] = a.Value
	}
	found := differs
	for _, rule := range s.graphQL {
		if named, _ := rule.names(at, op.Operation); !named {
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
