// Package jsonpath follows dotted paths, such as data.items.0.id, in decoded JSON. A step of digits
// leads into an array by its index, or to the member of an object that has this name.
package jsonpath

import (
	"strconv"
	"strings"
)

// Elements is how many elements of arrays are read, by the path of the array: those from 0 on.
type Elements map[string]int

// ElementsOf returns what paths read of arrays.
func ElementsOf(paths ...string) Elements {
	read := make(map[string]bool) // what paths lead to or pass
	for _, path := range paths {
		for end := range path {
			if path[end] == '.' {
				read[path[:end]] = true
			}
		}
		read[path] = true
	}
	all := make(Elements)
	for path := range read {
		array, index := cut(path)
		if _, err := strconv.Atoi(index); err != nil {
			continue
		}
		n := 0
		for read[join(array, strconv.Itoa(n))] {
			n++
		}
		all[array] = n
	}
	return all
}

// Skipped returns the path of an array of which an element is read and one before it is not; ok is
// false where there is none.
func (e Elements) Skipped(paths ...string) (array string, ok bool) {
	for _, path := range paths {
		for path != "" {
			before, last := cut(path)
			if i, err := strconv.Atoi(last); err == nil && i >= e[before] {
				return before, true
			}
			path = before
		}
	}
	return "", false
}

// At returns the value at a path; nil: there is none. whole is false where an array on the way has
// elements that are not read, so that the one at the path may not be the one that is meant.
func (e Elements) At(v any, path string) (found any, whole bool) {
	for start := 0; start <= len(path); {
		name, _, _ := strings.Cut(path[start:], ".")
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			i, err := strconv.Atoi(name)
			switch {
			case err != nil:
				return nil, true
			case len(at) > e[path[:max(start-1, 0)]]:
				return nil, false
			case i < 0 || i >= len(at):
				return nil, true
			}
			v = at[i]
		default:
			return nil, true
		}
		start += len(name) + 1
	}
	return v, true
}

// cut takes the last step off a path.
func cut(path string) (before, last string) {
	at := strings.LastIndexByte(path, '.')
	return path[:max(at, 0)], path[at+1:]
}

func join(before, step string) string {
	if before == "" {
		return step
	}
	return before + "." + step
}
