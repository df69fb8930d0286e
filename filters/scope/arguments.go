package scope

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/stockgate/stockgate/internal/jsonpath"
)

// maxList bounds a list that is read from an argument, in bytes: a document may name one variable
// many times.
const maxList = 64 << 10

// arguments are those of a field.
type arguments struct {
	op        *ast.OperationDefinition
	variables map[string]any
	named     map[string]*ast.Value
	// twice: on the way to a value that was looked for, an object has a name twice.
	twice bool
}

// Value returns what the argument at a path says, such as productVariantId or
// input.lines.0.quantity: a text, a number as it is written, a name, true or false. It
// returns an empty text where there is no such value.
func (r *Judgement) Value(path string) string {
	s, _ := r.values.scalar(path)
	return s.text
}

// List returns the list at a path of the arguments as JSON. Servers take a single value for a list
// of one (GraphQL, section 3.11), and so does List. A name that is twice in an object of the document
// is twice in the JSON. ok is false where there is no value that can be read.
func (r *Judgement) List(path string) (raw []byte, ok bool) {
	literal, value, ok := r.values.find(path)
	if !ok {
		return nil, false
	}
	b := list{values: &r.values, open: true}
	switch _, many := value.([]any); {
	case literal != nil && literal.Kind != ast.ListValue && literal.Kind != ast.NullValue:
		b.elements(ast.ChildValueList{{Value: literal}})
	case literal != nil:
		b.literal(literal)
	case !many && value != nil:
		b.json([]any{value})
	default:
		b.json(value)
	}
	return b.raw, b.open
}

// elementsOf returns what paths read of lists.
func elementsOf(paths []string) (jsonpath.Elements, error) {
	read := jsonpath.ElementsOf(paths...)
	if at, skips := read.Skipped(paths...); skips {
		return nil, fmt.Errorf("%s: an element of this list is read and one before it is not, so every request that has both would be refused: read all elements from 0, or use `lines`", at)
	}
	return read, nil
}

// readsWhole reports whether all elements of the lists are read. A single value, which servers take for
// a list of one (GraphQL, section 3.11), is read by no index.
func (a *arguments) readsWhole(read jsonpath.Elements) bool {
	for path, n := range read {
		literal, value, ok := a.find(path)
		many, isList := value.([]any)
		switch {
		case !ok || literal == nil && value == nil || literal != nil && literal.Kind == ast.NullValue:
		case literal != nil && (literal.Kind != ast.ListValue || len(literal.Children) > n):
			return false
		case literal == nil && (!isList || len(many) > n):
			return false
		}
	}
	return true
}

// hasTwice reports whether a name comes twice in an object on the way to a value: some server takes the
// one, and none is read.
func (a *arguments) hasTwice(paths []string) bool {
	for _, path := range paths {
		a.find(path)
	}
	return a.twice
}

// scalar returns the value at a path. ok is false where there is none, a list, an object or null.
func (a *arguments) scalar(path string) (s scalar, ok bool) {
	literal, value, ok := a.find(path)
	if !ok {
		return scalar{}, false
	}
	if literal == nil {
		s, ok = scalarOf(value)
		return s, ok && s.kind != isNull
	}
	switch literal.Kind {
	case ast.IntValue, ast.FloatValue:
		return scalar{literal.Raw, isNumber}, true
	case ast.StringValue, ast.BlockValue, ast.EnumValue:
		return scalar{literal.Raw, isText}, true
	case ast.BooleanValue:
		return scalar{literal.Raw, isBool}, true
	}
	return scalar{}, false
}

// find returns the value at a path: a literal of the document, or a value of the variables.
func (a *arguments) find(path string) (literal *ast.Value, value any, ok bool) {
	name, rest, _ := strings.Cut(path, ".")
	v := a.named[name]
	if v == nil {
		return nil, nil, false
	}
	return a.follow(v, rest)
}

// follow returns the value at a path below v.
func (a *arguments) follow(v *ast.Value, path string) (literal *ast.Value, value any, ok bool) {
	if v.Kind == ast.Variable {
		value, byDefault, ok := a.variable(v.Raw)
		switch {
		case !ok:
			return nil, nil, false
		case byDefault != nil:
			return a.follow(byDefault, path)
		}
		value, ok = below(value, path)
		return nil, value, ok
	}
	if path == "" {
		return v, nil, true
	}
	name, rest, _ := strings.Cut(path, ".")
	var found *ast.Value
	switch v.Kind {
	case ast.ObjectValue:
		for _, child := range v.Children {
			if child.Name != name {
				continue
			}
			if found != nil {
				a.twice = true
				return nil, nil, false
			}
			found = child.Value
		}
	case ast.ListValue:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v.Children) {
			found = v.Children[i].Value
		}
	}
	if found == nil {
		return nil, nil, false
	}
	return a.follow(found, rest)
}

// variable returns the value of a variable, or its default. ok is false where it has none.
func (a *arguments) variable(name string) (value any, byDefault *ast.Value, ok bool) {
	definition := a.op.VariableDefinitions.ForName(name)
	if definition == nil {
		return nil, nil, false
	}
	if value, given := a.variables[name]; given {
		return value, nil, true
	}
	if definition.DefaultValue == nil || definition.DefaultValue.Kind == ast.Variable {
		return nil, nil, false
	}
	return nil, definition.DefaultValue, true
}

// below returns the JSON value at a path.
func below(value any, path string) (any, bool) {
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, ".")
		switch at := value.(type) {
		case map[string]any:
			value = at[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			value = at[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// scalarOf reads a JSON value. ok is false for a list and an object.
func scalarOf(value any) (s scalar, ok bool) {
	switch v := value.(type) {
	case string:
		return scalar{v, isText}, true
	case json.Number:
		return scalar{v.String(), isNumber}, true
	case bool:
		return scalar{strconv.FormatBool(v), isBool}, true
	case nil:
		return scalar{kind: isNull}, true
	}
	return scalar{}, false
}

// list writes literals of a document as JSON. It is open until something cannot be written.
type list struct {
	values *arguments
	raw    []byte
	open   bool
}

func (l *list) text(s string) { l.raw = append(l.raw, s...) }

func (l *list) json(value any) {
	raw, err := json.Marshal(value)
	l.raw = append(l.raw, raw...)
	l.open = l.open && err == nil && len(l.raw) <= maxList
}

func (l *list) literal(v *ast.Value) {
	if l.open = l.open && len(l.raw) <= maxList; !l.open {
		return
	}
	switch v.Kind {
	case ast.Variable:
		l.variable(v.Raw)
	case ast.IntValue, ast.FloatValue, ast.BooleanValue:
		l.text(v.Raw)
	case ast.StringValue, ast.BlockValue, ast.EnumValue:
		l.json(v.Raw)
	case ast.NullValue:
		l.text("null")
	case ast.ListValue:
		l.elements(v.Children)
	case ast.ObjectValue:
		l.fields(v.Children)
	default:
		l.open = false
	}
}

func (l *list) variable(name string) {
	switch value, byDefault, ok := l.values.variable(name); {
	case !ok:
		l.open = false
	case byDefault != nil:
		l.literal(byDefault)
	default:
		l.json(value)
	}
}

func (l *list) elements(values ast.ChildValueList) {
	l.text("[")
	for i, child := range values {
		if i > 0 {
			l.text(",")
		}
		l.literal(child.Value)
	}
	l.text("]")
}

// fields writes an object. A field whose variable has no value is absent, as it is for a server.
func (l *list) fields(values ast.ChildValueList) {
	l.text("{")
	present := slices.DeleteFunc(slices.Clone(values), func(child *ast.ChildValue) bool {
		return child.Value.Kind == ast.Variable && l.values.lacks(child.Value.Raw)
	})
	for i, child := range present {
		if i > 0 {
			l.text(",")
		}
		l.json(child.Name)
		l.text(":")
		l.literal(child.Value)
	}
	l.text("}")
}

// lacks reports whether a variable is defined and has no value.
func (a *arguments) lacks(name string) bool {
	definition := a.op.VariableDefinitions.ForName(name)
	_, given := a.variables[name]
	return definition != nil && definition.DefaultValue == nil && !given
}
