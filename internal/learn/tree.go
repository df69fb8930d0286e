package learn

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds how deep values of a recording are looked at.
const maxDepth = 12

// leaf is a scalar in a tree of objects and arrays.
type leaf struct {
	path []string // elements of arrays are numbers
	text string
}

func (l leaf) name() string {
	for _, part := range slices.Backward(l.path) {
		if _, err := strconv.Atoi(part); err != nil {
			return part
		}
	}
	return ""
}

func (l leaf) dotted() string { return strings.Join(l.path, ".") }

// decodeJSON reads one JSON document, numbers as they are written; nil: it is none.
func decodeJSON(raw []byte) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil
	}
	return v
}

// leavesOf returns the scalars of a tree, in the order of their names.
func leavesOf(v any) (all []leaf) {
	walk(v, nil, func(path []string, v any) bool {
		if text, ok := scalar(v); ok {
			all = append(all, leaf{slices.Clone(path), text})
		}
		return len(all) < 5000
	})
	return all
}

// walk visits a tree from its root, until visit returns false.
func walk(v any, path []string, visit func(path []string, v any) bool) bool {
	if len(path) > maxDepth {
		return true
	}
	if !visit(path, v) {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !walk(v[name], append(path, name), visit) {
				return false
			}
		}
	case []any:
		for i, e := range v {
			if !walk(e, append(path, strconv.Itoa(i)), visit) {
				return false
			}
		}
	}
	return true
}

// scalar returns the text of a string or number. Truth values tell nothing, and null is absent.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, v != ""
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// at follows a dotted path; nil: there is nothing.
func at(v any, path string) any {
	if path == "" {
		return v
	}
	for part := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

var unseparated = strings.NewReplacer("_", "", "-", "", "[", "", "]", "", " ", "")

// folded writes a name in the one way in which names are compared here.
func folded(name string) string { return unseparated.Replace(strings.ToLower(name)) }
