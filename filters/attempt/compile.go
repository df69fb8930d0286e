package attempt

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/filters/route"
)

// prefixes are the placeholders that are read strictly, in their short form
// and in the long form that Caddy's Caddyfile adapter makes of it.
var prefixes = []struct {
	prefix string
	kind   ValueKind
}{
	{"json.", JSON},
	{"form.", Form},
	{"param.", Param},
	{"jwt.", JWT},
	{"lookup.", Lookup},
	{"query.", Query}, {"http.request.uri.query.", Query},
	{"header.", Header}, {"http.request.header.", Header},
	{"cookie.", Cookie}, {"http.request.cookie.", Cookie},
	{"path.", Path}, {"http.request.uri.path.", Path},
}

// longForms are what Env.Replace knows the strict placeholders by.
var longForms = map[ValueKind]string{
	Query:    "http.request.uri.query.",
	Header:   "http.request.header.",
	Cookie:   "http.request.cookie.",
	Path:     "http.request.uri.path.",
	ClientIP: "http.vars.client_ip",
}

// pathParts are the placeholders under "path." that are not segments.
var pathParts = map[string]bool{"dir": true, "file": true, "file.base": true, "file.ext": true}

// CompileAll compiles several expressions: the first that is not empty counts.
func CompileAll(exprs ...string) (Values, error) {
	vs := make(Values, 0, len(exprs))
	for _, e := range exprs {
		v, err := Compile(e)
		if err != nil {
			return nil, err
		}
		vs = append(vs, v)
	}
	return vs, nil
}

// Compile reads a value expression: a constant, one placeholder, or text with
// placeholders in it. A placeholder that stands alone and is of a strict kind
// ({json.P} {form.N} {param.N} {query.N} {header.N} {cookie.N} {path.N} {jwt.C}
// {lookup.P} {client_ip}) is read by this package; anything else is text for Env.Replace. Placeholders
// that only this package knows cannot be mixed with text.
func Compile(expr string) (Value, error) {
	if !strings.ContainsAny(expr, "{}") {
		return Value{kind: Constant, text: expr}, nil
	}
	if inside, ok := alone(expr); ok {
		v, known, err := placeholder(inside)
		if err != nil {
			return Value{}, fmt.Errorf("%s: %w", expr, err)
		}
		if known {
			return v, nil
		}
	}
	return compileText(expr)
}

// CompileArray compiles the array of Lines: a JSON value, such as {json.items} or {lookup.items}, or the whole
// document, {json} and {lookup}; {graphql.P}, an argument of the operation; {form.N}, an array of a form, or
// {form.N[]}, a list in it.
func CompileArray(expr string) (Value, error) {
	inside, _ := alone(expr)
	switch inside {
	case "json":
		return Value{kind: JSON}, nil
	case "lookup":
		return Value{kind: Lookup}, nil
	}
	if list, ok := strings.CutSuffix(inside, "[]"); ok && strings.HasPrefix(list, "form.") {
		v, err := Compile("{" + list + "}")
		v.column = true
		return v, err
	}
	name, ok := strings.CutPrefix(inside, "graphql.")
	if !ok {
		return Compile(expr)
	}
	path, err := parsePath(name)
	if err == nil && (path[0].index >= 0 || strings.Contains(name, `\`)) {
		err = errors.New("write the argument, and names below it: {graphql.inputs} or {graphql.input.lines}")
	}
	if err != nil {
		return Value{}, fmt.Errorf("%s: %w", expr, err)
	}
	return Value{kind: Argument, name: name, path: path}, nil
}

// alone returns what is between the braces of an expression that is one
// placeholder and nothing else.
func alone(expr string) (string, bool) {
	inside, ok := strings.CutPrefix(expr, "{")
	if !ok {
		return "", false
	}
	inside, ok = strings.CutSuffix(inside, "}")
	return inside, ok && !strings.ContainsAny(inside, "{}")
}

// placeholder compiles one strict placeholder; known is false for all others.
func placeholder(inside string) (v Value, known bool, err error) {
	if inside == "client_ip" || inside == "http.vars.client_ip" {
		return Value{kind: ClientIP}, true, nil
	}
	if inside == "json" || inside == "form" || inside == "param" || inside == "jwt" || inside == "lookup" {
		return Value{}, false, errors.New("a name is missing: write {" + inside + ".name}")
	}
	for _, p := range prefixes {
		name, ok := strings.CutPrefix(inside, p.prefix)
		if !ok {
			continue
		}
		if p.kind == Path && pathParts[name] {
			return Value{}, false, nil
		}
		if name == "" {
			return Value{}, false, errors.New("a name is missing after the dot")
		}
		v, err = named(p.kind, name)
		return v, err == nil, err
	}
	return Value{}, false, nil
}

// named compiles a strict value with a name.
func named(kind ValueKind, name string) (Value, error) {
	v := Value{kind: kind, name: name}
	var err error
	switch kind {
	case JSON:
		if v.path, err = parsePath(name); err == nil {
			err = checkRoot(v.path[0])
		}
	case JWT, Lookup:
		if v.path, err = parsePath(name); err == nil && v.path[0].index >= 0 {
			err = errRootIndex
		}
	case Form, Param, Query:
		err = checkParam(name)
	case Header:
		v.name = http.CanonicalHeaderKey(name)
		err = checkHeader(v.name)
	case Cookie:
		if !isToken(name) {
			err = errors.New("this is not a cookie's name")
		}
	case Path:
		v.index, err = strconv.Atoi(name)
		if err != nil || v.index < 0 || v.index > 99 || name != strconv.Itoa(v.index) {
			err = errors.New("path segments are numbered from 0 to 99: write {path.0}")
		}
	}
	return v, err
}

// checkRoot checks the first step of a JSON path.
func checkRoot(seg segment) error {
	switch {
	case seg.index >= 0:
		return errRootIndex
	case route.SameFold(seg.name, methodParam):
		return errMethod
	}
	return nil
}

var errRootIndex = errors.New("the document is an object: begin with a name")

var errMethod = errors.New("_method is refused in every attempt, so it cannot be a source")

func checkParam(name string) error {
	switch {
	case strings.ContainsAny(name, "[]"):
		return errors.New("brackets begin an array: read all lines of a form's array with `lines {form.items} sku quantity`, of lists with `lines {form.sku[]} {form.quantity[]}`")
	case !plain(name):
		return errors.New("a parameter's name must be UTF-8 without control characters")
	case sameParam(name, foldParam(methodParam)):
		return errMethod
	}
	return nil
}

func checkHeader(name string) error {
	switch {
	case !isToken(name):
		return errors.New("this is not a header's name")
	case name == "Host":
		return errors.New("the host is not among the headers: write {http.request.host}")
	case Reserved(name):
		return errors.New("client-sent Stockgate-* headers are removed, so this one is always empty")
	}
	return nil
}

// compileText prepares text with placeholders for Env.Replace. Short forms
// become long ones, the only ones that it knows, and strict placeholders are
// remembered for their checks.
func compileText(expr string) (Value, error) {
	v := Value{kind: Text}
	var out strings.Builder
	rest := expr
	for {
		start := unescaped(rest, '{')
		if start < 0 {
			break
		}
		end := unescaped(rest[start:], '}')
		if end < 0 {
			return Value{}, fmt.Errorf("%s: a placeholder is not closed: write \\{ for a brace", expr)
		}
		inside := rest[start+1 : start+end]
		in, known, err := placeholder(inside)
		if err != nil {
			return Value{}, fmt.Errorf("%s: {%s}: %w", expr, inside, err)
		}
		out.WriteString(rest[:start])
		switch {
		case !known && strings.HasPrefix(inside, "path."):
			out.WriteString("{http.request.uri." + inside + "}")
		case !known:
			out.WriteString("{" + inside + "}")
		case longForms[in.kind] == "":
			return Value{}, fmt.Errorf("%s: {%s} must stand alone: text cannot be joined to it", expr, inside)
		default:
			out.WriteString("{" + longForms[in.kind] + in.name + "}")
			v.inner = append(v.inner, in)
		}
		rest = rest[start+end+1:]
	}
	out.WriteString(rest)
	v.text = out.String()
	return v, nil
}

// unescaped finds a brace that no backslash precedes; -1: there is none.
func unescaped(s string, brace byte) int {
	for i := range len(s) {
		if s[i] == brace && (i == 0 || s[i-1] != '\\') {
			return i
		}
	}
	return -1
}

// isToken tells whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
