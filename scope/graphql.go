package scope

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/stockgate/stockgate/internal/strictjson"
	"github.com/stockgate/stockgate/route"
)

// GraphQL names operations by a field of their root (GraphQL, October 2021).
type GraphQL struct {
	// Field is the field of the schema, such as addPaymentToOrder; an alias does not matter.
	Field string `json:"field"`
	// Argument restricts it to those calls whose argument has one of Values. A path leads
	// into an object: input.state.
	Argument string   `json:"argument,omitempty"`
	Values   []string `json:"values,omitempty"`
}

// query is a request as GraphQL over HTTP has it. Servers read further names, such as id or
// documentId, in their own ways: they are errors.
type query struct {
	Query         *string         `json:"query"`
	OperationName *string         `json:"operationName"`
	Variables     json.RawMessage `json:"variables"`
	Extensions    json.RawMessage `json:"extensions"`
}

// parameters are the names of a query's members in a URL. Servers differ in whether they
// prefer them to the body.
var parameters = []string{"query", "operationName", "variables", "extensions"}

func (s *Scope) judgeGraphQL(r *http.Request, body []byte) Result {
	q, inURL, why := fromURL(r.URL.RawQuery)
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case why != "":
		return unclear(why)
	case reads && len(body) > 0:
		return unclear(CauseMethod)
	case reads && r.URL.RawQuery == "": // a page, a health check: there is no operation
		return Result{}
	case !reads && inURL:
		return unclear(CauseQuery)
	case !reads && !isJSON(r.Header):
		return unclear(CauseContentType)
	case !reads:
		if err := strictjson.Unmarshal(body, &q); err != nil {
			return unclear(CauseBody)
		}
	}
	result := s.judgeQuery(q)
	if reads && result.Verdict == Attempt {
		return unclear(CauseMethod)
	}
	return result
}

// fromURL reads a query from a URL, and says whether there is one.
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
func (s *Scope) judgeQuery(q query) Result {
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
			return Result{Mutates: mutates}
		}
		if document, ok = s.persisted.document(hash); !ok {
			return Result{Verdict: Unknown}
		}
	}
	// A keyword has no escapes: without the word there is no mutation.
	mutates := strings.Contains(document, "mutation")
	if !s.mentions(document) {
		if hash != "" {
			s.persisted.remember(hash, mutates)
		}
		return Result{Mutates: mutates}
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

// mentions says whether a document has the name of a field that makes an attempt. A name
// has no escapes: where it is not in the text, the field is not in the document.
func (s *Scope) mentions(document string) bool {
	for _, rule := range s.graphQL {
		if strings.Contains(document, rule.Field) {
			return true
		}
	}
	return false
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
