package route

import "strings"

// IsPrototype reports whether a member's name leads to the prototype of an object. JavaScript that
// copies a parsed body into an object of its own follows such names, and the object has what it
// lacks from there: {"sku":"A","__proto__":{"quantity":5}} is five units of A.
func IsPrototype[T string | []byte](name T) bool {
	switch len(name) {
	case len("__proto__"):
		return string(name) == "__proto__" || string(name) == "prototype"
	case len("constructor"):
		return string(name) == "constructor"
	}
	return false
}

// ReachesPrototype reports whether a parameter's name leads to a prototype in frameworks
// that read brackets or dots as steps into an object: constructor[prototype][quantity].
func ReachesPrototype(name string) bool {
	for step := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '[' || r == ']' || r == '.' || r == ' ' }) {
		if IsPrototype(step) {
			return true
		}
	}
	return false
}
