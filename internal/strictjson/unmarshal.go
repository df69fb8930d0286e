package strictjson

import (
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

// Unmarshal reads raw into a value as encoding/json does, but as strictly as Read: a field
// comes once, is known, and is spelt as its tag; encoding/json would take the last of two
// fields whose names differ in case. null leaves a value as it is.
func Unmarshal(raw []byte, into any) error {
	err := Read(raw, func(r *Reader) error { return r.skip(reflect.TypeOf(into), maxDepth) })
	if err != nil {
		return err
	}
	err = json.Unmarshal(raw, into)
	kind, mismatch := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case mismatch && kind.Field == "":
		return predicate("cannot be read: it must be " + kindName(kind.Type))
	case mismatch:
		return within(kind.Field, predicate("cannot be read: it must be "+kindName(kind.Type)))
	case err != nil:
		return syntax(err)
	}
	return nil
}

// skip reads a value of any kind. Where the Go type is known that it will be read into, the
// names of objects must be those of its fields; nil: not known.
func (r *Reader) skip(t reflect.Type, depth int) error {
	if depth == 0 {
		return predicate("is nested too deep")
	}
	tok, err := r.next()
	if err != nil {
		return err
	}
	t = plainType(t)
	switch tok {
	case json.Delim('{'):
		fields, closed := fieldsOf(t)
		return r.members(nil, func(name string) error {
			field, known := fields[name]
			if closed && !known {
				return unknown(name, keys(fields))
			}
			if !closed {
				field = elementOf(t, reflect.Map)
			}
			return within(name, r.skip(field, depth-1))
		})
	case json.Delim('['):
		return r.elements(func(int) error { return r.skip(elementOf(t, reflect.Slice), depth-1) })
	}
	return nil
}

var (
	jsonReader = reflect.TypeFor[json.Unmarshaler]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// plainType is the type behind pointers; nil: one that reads its JSON itself.
func plainType(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || reflect.PointerTo(t).Implements(jsonReader) || reflect.PointerTo(t).Implements(textReader) {
		return nil
	}
	return t
}

// elementOf is what a map or a slice consists of; nil: not known.
func elementOf(t reflect.Type, kind reflect.Kind) reflect.Type {
	if t == nil || t.Kind() != kind {
		return nil
	}
	return t.Elem()
}

// fieldsOf returns the fields of a struct by their names in JSON; false: it is no struct,
// and may have any names.
func fieldsOf(t reflect.Type) (map[string]reflect.Type, bool) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, false
	}
	fields := make(map[string]reflect.Type)
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous && name == "" || f.Tag.Get("json") == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields[name] = f.Type
	}
	return fields, true
}

// kindName is what a sender calls a type.
func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}
