package scope

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/stockgate/stockgate/filters/route"
	"github.com/stockgate/stockgate/internal/jsonpath"
	"github.com/stockgate/stockgate/internal/strictjson"
)

// GraphQL names operations by a field of their root (GraphQL, October 2021), or below it.
type GraphQL struct {
	// Field is the field of the schema, such as addPaymentToOrder; an alias does not matter. A path leads
	// through the fields that group others: checkout.complete.
	Field string `json:"field"`
	// Operation is the kind of operation that has the field: mutation, or query for a shop that
	// takes orders by queries. Default: mutation.
	Operation string `json:"operation,omitempty"`
	// Argument restricts it to those calls whose argument has one of Values. A path leads
	// into an object: input.state.
	Argument string   `json:"argument,omitempty"`
	Values   []string `json:"values,omitempty"`
}

// mostGroups bounds the path of a field.
const mostGroups = 4

// graphQLRule is a compiled GraphQL.
type graphQLRule struct {
	GraphQL
	path []string // Field, from the root
	// read is what the rules of the field read of lists in its arguments.
	read jsonpath.Elements
}

// compileGraphQL checks the rules.
func compileGraphQL(rules []GraphQL) ([]graphQLRule, error) {
	var compiled []graphQLRule
	for _, rule := range rules {
		path := strings.Split(rule.Field, ".")
		switch {
		case len(path) > 1 && slices.Contains([]string{"query", "mutation", "subscription"}, strings.ToLower(path[0])):
			return nil, fmt.Errorf("graphql %s: a field of a mutation is written `graphql order`, a field of a query is written `graphql query.order`", rule.Field)
		case len(path) > mostGroups || slices.ContainsFunc(path, func(name string) bool { return !isName(name) }):
			return nil, fmt.Errorf("graphql %s: a field's name has letters, digits and _; a field of a query is written `graphql query.order`, one in up to three others `graphql checkout.complete`", rule.Field)
		case rule.Operation != "" && rule.Operation != string(ast.Mutation) && rule.Operation != string(ast.Query):
			return nil, fmt.Errorf("graphql %s: the operation %q: there are mutation and query", rule.Field, rule.Operation)
		case rule.Argument != "" && len(rule.Values) == 0:
			return nil, fmt.Errorf("graphql %s %s: give the values of the argument that make it an attempt", rule.Field, rule.Argument)
		case rule.Argument == "" && len(rule.Values) > 0:
			return nil, fmt.Errorf("graphql %s: values need the argument that has them", rule.Field)
		}
		var paths []string
		for _, other := range rules {
			if other.Argument != "" && other.Field == rule.Field && other.operation() == rule.operation() {
				paths = append(paths, other.Argument)
			}
		}
		read, err := elementsOf(paths)
		if err != nil {
			return nil, fmt.Errorf("graphql %s: %w", rule.Field, err)
		}
		compiled = append(compiled, graphQLRule{rule, path, read})
	}
	return compiled, nil
}

// operation is the kind of operation that the rule is about.
func (g *GraphQL) operation() ast.Operation {
	if g.Operation == "" {
		return ast.Mutation
	}
	return ast.Operation(g.Operation)
}

// names reports whether the rule names the field at a path of an operation, and whether that leads to a field
// that it names. Subscriptions have it for all rules: servers differ in what they do with one that is no
// stream.
func (g *graphQLRule) names(at []string, operation ast.Operation) (named, leads bool) {
	if operation != g.operation() && operation != ast.Subscription || len(at) > len(g.path) || !slices.Equal(g.path[:len(at)], at) {
		return false, false
	}
	return len(at) == len(g.path), len(at) < len(g.path)
}

// query is a request as GraphQL over HTTP has it.
type query struct {
	Query         *string         `json:"query"`
	OperationName *string         `json:"operationName"`
	Variables     json.RawMessage `json:"variables"`
	Extensions    json.RawMessage `json:"extensions"`
}

// parameters are the names of a query's members in a URL. Servers differ in whether they
// prefer them to the body.
var parameters = []string{"query", "operationName", "variables", "extensions"}

func (s *Scope) judgeGraphQL(r *http.Request, body []byte) Judgement {
	q, inURL, why := fromURL(r.URL.RawQuery)
	switch {
	case why != "":
		return unclear(why)
	case reads(r) && len(body) > 0:
		return unclear(CauseMethod)
	case reads(r) && r.URL.RawQuery == "": // a page, a health check: there is no operation
		return Judgement{}
	case reads(r):
		result := s.judgeQuery(q)
		if result.Verdict == Attempt {
			return unclear(CauseMethod)
		}
		return result
	case inURL:
		return unclear(CauseQuery)
	case isJSON(r.Header):
		return s.judgeOperations(body)
	}
	return s.judgeUpload(r.Header, body)
}

// judgeOperations judges one operation in JSON, or a list of them.
func (s *Scope) judgeOperations(raw []byte) Judgement {
	one := func(raw []byte) Judgement {
		q, ok := s.queryOf(raw)
		if !ok {
			return unclear(CauseBody)
		}
		return s.judgeQuery(q)
	}
	if !isList(raw) {
		return one(raw)
	}
	return judgeList(raw, one)
}

// fromURL reads a query from a URL, and reports whether there is one.
func fromURL(raw string) (q query, found bool, why Cause) {
	if raw == "" {
		return q, false, ""
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, false, CauseQuery
	}
	for name := range values {
		// query[] and Query are the parameter for some servers.
		folded := strings.ToLower(name)
		for _, known := range parameters {
			if rest, begins := strings.CutPrefix(folded, strings.ToLower(known)); !begins || rest != "" && rest[0] != '[' && rest[0] != '.' {
				continue
			}
			if name != known || len(values[name]) > 1 {
				return q, true, CauseQuery
			}
			found = true
		}
	}
	text := func(name string) *string {
		if v, ok := values[name]; ok {
			return &v[0]
		}
		return nil
	}
	q.Query, q.OperationName = text("query"), text("operationName")
	if v := text("variables"); v != nil {
		q.Variables = json.RawMessage(*v)
	}
	if v := text("extensions"); v != nil {
		q.Extensions = json.RawMessage(*v)
	}
	return q, found, ""
}

// judgeQuery finds the document and judges it.
func (s *Scope) judgeQuery(q query) Judgement {
	hash, ok := hashOf(q.Extensions)
	if !ok {
		return unclear(CauseBody)
	}
	var document string
	switch {
	case q.Query != nil && *q.Query != "":
		document = *q.Query
		if hash != "" && !s.persisted.matches(hash, document) {
			return unclear(CauseHash)
		}
	case hash == "":
		return unclear(CauseNoDocument)
	default:
		if mutates, harmless := s.persisted.isHarmless(hash); harmless {
			return Judgement{Mutates: mutates}
		}
		if document, ok = s.persisted.document(hash); !ok {
			return Judgement{Verdict: Unknown}
		}
	}
	// A keyword has no escapes: without the word there is no mutation.
	mutates := strings.Contains(document, "mutation")
	if !s.mentions(document) {
		if hash != "" {
			s.persisted.remember(hash, mutates)
		}
		return Judgement{Mutates: mutates}
	}
	variables, ok := variablesOf(q.Variables)
	if !ok {
		return unclear(CauseBody)
	}
	name := ""
	if q.OperationName != nil {
		name = *q.OperationName
	}
	result := s.judgeDocument(document, name, variables)
	result.Mutates = mutates
	return result
}

// mentions reports whether a document may have a field that makes an attempt. Names and keywords have
// no escapes: what is not in the text is not in the document.
func (s *Scope) mentions(document string) bool {
	return slices.ContainsFunc(s.graphQL, func(rule graphQLRule) bool {
		return strings.Contains(document, rule.path[len(rule.path)-1]) &&
			(rule.operation() == ast.Query || strings.Contains(document, string(rule.operation())) || strings.Contains(document, string(ast.Subscription)))
	})
}

// hashOf returns the hash of a persisted query; empty: there is none.
func hashOf(raw json.RawMessage) (hash string, ok bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", true
	}
	var version int64
	persisted := func(r *strictjson.Reader) error {
		return r.Object(strictjson.Members{"version": strictjson.Integer(&version), "sha256Hash": strictjson.Text(&hash)}, "sha256Hash")
	}
	const name = "persistedQuery"
	err := strictjson.Read(raw, func(r *strictjson.Reader) error { return r.OpenObject(strictjson.Members{name: persisted}) })
	return hash, err == nil && exactName(raw, name)
}

// exactName says that no member of an object has a name that differs from this one in case
// only: some servers would read it.
func exactName(raw json.RawMessage, name string) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return false
	}
	for member := range members {
		if member != name && route.SameFold(member, name) {
			return false
		}
	}
	return true
}

// variablesOf reads the variables of a query, numbers as they are written.
func variablesOf(raw json.RawMessage) (map[string]any, bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, true
	}
	return objectOf(raw)
}
