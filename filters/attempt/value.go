package attempt

import "slices"

// ValueKind says where a value comes from.
type ValueKind uint8

// The kinds of values. All but Text are strict: an input that two parsers could
// read differently refuses the attempt.
const (
	Constant ValueKind = iota // fixed text
	JSON                      // {json.P}: a string or whole number in a JSON body
	Form                      // {form.N}: a field of an urlencoded body
	Param                     // {param.N}: from the query or an urlencoded body
	Query                     // {query.N}: a parameter of the query
	Header                    // {header.N}: a request header
	Cookie                    // {cookie.N}: a cookie
	Path                      // {path.N}: the path's segment N, from 0
	JWT                       // {jwt.C}: a claim of the request's bearer token
	Lookup                    // {lookup.P}: a string or whole number in what the shop answers to a lookup
	Argument                  // {graphql.P}, as the array of Lines: a list in what Env.Argument returns
	ClientIP                  // {client_ip}: the client's address as Env has it
	Text                      // anything else with placeholders, filled in by Env.Replace
)

// Needs is the set of a request's parts that a value reads.
type Needs uint16

// The parts of a request.
const (
	NeedJSON     Needs = 1 << iota // the body, as JSON
	NeedForm                       // the body, as application/x-www-form-urlencoded
	NeedQuery                      // the query
	NeedHeader                     // a header
	NeedCookie                     // a cookie
	NeedPath                       // the path
	NeedIP                         // Env.ClientIP
	NeedReplace                    // Env.Replace
	NeedJWT                        // the bearer token, and Env.Claims
	NeedLookup                     // what the shop answers to a lookup, see ReadRequest
	NeedArgument                   // Env.Argument
)

// NeedBody is either way of reading the body.
const NeedBody = NeedJSON | NeedForm

// Has tells whether any of the parts is in the set.
func (n Needs) Has(parts Needs) bool { return n&parts != 0 }

var needsOf = [...]Needs{
	Constant: 0,
	JSON:     NeedJSON,
	Form:     NeedForm,
	Param:    NeedForm | NeedQuery,
	Query:    NeedQuery,
	Header:   NeedHeader,
	Cookie:   NeedCookie,
	Path:     NeedPath,
	JWT:      NeedJWT,
	Lookup:   NeedLookup,
	Argument: NeedArgument,
	ClientIP: NeedIP,
	Text:     NeedReplace,
}

// Value is one compiled value expression. The zero Value is the empty constant.
type Value struct {
	kind ValueKind
	// text is the constant, or what Env.Replace is given.
	text string
	// name is N or P: header names in canonical form, all else as written.
	name string
	// path is the parsed P of a JSON value, or C of a JWT value.
	path []segment
	// index is the N of a Path value.
	index int
	// column: N of a Form value is a list, N[].
	column bool
	// inner are the strict values inside a Text. Env.Replace reads them; they
	// are listed so that their inputs are checked all the same.
	inner []Value
}

// Kind says where the value comes from.
func (v Value) Kind() ValueKind { return v.kind }

// Asked is the text that Env.Replace is given for a value of kind Text.
func (v Value) Asked() string { return v.text }

// ByClient says that a client can set the value to anything: nothing has verified it.
// Of text with placeholders, any of them counts.
func (v Value) ByClient() bool {
	switch v.kind {
	case JSON, Form, Param, Query, Header, Cookie, Path, Argument:
		return true
	}
	return slices.ContainsFunc(v.inner, Value.ByClient)
}

// Name is the configured name: the header, parameter or cookie, or the path of
// a JSON value or a claim; empty for kinds without a name.
func (v Value) Name() string { return v.name }

// Index is the number of the segment that a value of kind Path reads, from 0.
func (v Value) Index() int { return v.index }

// Needs returns the parts of the request that the value reads.
func (v Value) Needs() Needs {
	n := needsOf[v.kind]
	for _, in := range v.inner {
		n |= in.Needs()
	}
	return n
}

// String names the value in messages, such as "json.sku".
func (v Value) String() string {
	switch v.kind {
	case JSON:
		return "json." + v.name
	case Form:
		if v.column {
			return "form." + v.name + "[]"
		}
		return "form." + v.name
	case Param:
		return "param." + v.name
	case Query:
		return "query." + v.name
	case Header:
		return "header." + v.name
	case Cookie:
		return "cookie." + v.name
	case Path:
		return "path." + v.name
	case JWT:
		return "jwt." + v.name
	case Lookup:
		return "lookup." + v.name
	case Argument:
		return "graphql." + v.name
	case ClientIP:
		return "client_ip"
	case Text:
		return "a placeholder"
	}
	return "a constant"
}

// Values are alternatives: the first that is not empty counts. The inputs of
// all of them are checked.
type Values []Value

// Needs returns the parts of the request that the values read.
func (vs Values) Needs() Needs {
	var n Needs
	for _, v := range vs {
		n |= v.Needs()
	}
	return n
}
