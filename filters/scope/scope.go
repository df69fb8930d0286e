// Package scope tells which requests of a route are attempts, where the shop takes all its
// operations at one path and only the body says which one it is.
//
// It answers in three ways. What it cannot be sure of is neither an attempt nor another
// request: the gate refuses it, because a server may read it otherwise.
package scope

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/internal/jsonpath"
)

// Verdict is what a scope says of a request.
type Verdict int

const (
	// Other is a request that no rule names: it goes on untouched.
	Other Verdict = iota
	// Attempt is a request that a rule names.
	Attempt
	// Unclear is a request that some server could take for an attempt, and another one not.
	Unclear
	// Unknown is a request for a persisted operation whose document this edge has not seen.
	// Its client is to send the document, as it does when a server does not know it.
	Unknown
)

// Spec says which requests are attempts: those that any of its rules names.
type Spec struct {
	GraphQL  []GraphQL
	JSONBody []JSONBody
	// Arguments are the paths at which the caller reads the arguments of an attempt's field. A list of
	// which they read elements must not have more of them.
	Arguments []string
	// Persisted are the documents of registered operations, by the hash that clients send.
	Persisted map[string]string
	// Websockets: a websocket is another request, because the shop takes no orders over one.
	Websockets bool
}

// Scope is a compiled Spec. It may be used by many goroutines.
type Scope struct {
	graphQL   []graphQLRule
	arguments []string          // that are read
	read      jsonpath.Elements // of lists in them
	bodies    []bodyRule
	persisted persisted
	// websockets: they are other requests.
	websockets bool
}

// Judgement is what a scope says of a request, and what it has read in it.
type Judgement struct {
	Verdict Verdict
	// Cause is why a request is Unclear.
	Cause Cause
	// Mutates says that another request may change something at the shop.
	Mutates bool
	// values are the arguments of the field that makes the request an attempt.
	values arguments
}

// Cause is why a request is unclear, in the form of a metric's label.
type Cause string

// The causes. Each has its sentence in details.
const (
	CauseUpgrade     Cause = "upgrade"
	CauseContentType Cause = "content_type"
	CauseBody        Cause = "body"
	CauseBatch       Cause = "batch"
	CauseQuery       Cause = "query_parameters"
	CauseMethod      Cause = "method"
	CauseNoDocument  Cause = "no_document"
	CauseHash        Cause = "hash"
	CauseSyntax      Cause = "syntax"
	CauseOperation   Cause = "operation"
	CauseDirective   Cause = "directive"
	CauseFields      Cause = "fields"
	CauseArgument    Cause = "argument"
	CauseElements    Cause = "elements"
	CauseValue       Cause = "value"
)

var details = map[Cause]string{
	CauseUpgrade:     "an upgrade is not read here: send the operation as a POST of its own",
	CauseContentType: "an order must be sent as application/json in UTF-8",
	CauseBody:        "the body must be JSON in which no name comes twice or leads to a prototype, with the document of GraphQL in query alone",
	CauseBatch:       "an order, and a hash of which the document is not known here, must be sent as a request of its own",
	CauseQuery:       "the URL has parameters that belong into the body: send them there alone",
	CauseMethod:      "this operation must be sent as a POST",
	CauseNoDocument:  "the request has no GraphQL document",
	CauseHash:        "the hash of the persisted query is not the SHA-256 of its document",
	CauseSyntax:      "the GraphQL document cannot be read, or is too large",
	CauseOperation:   "the document must have one operation that operationName names, and each fragment and variable once",
	CauseDirective:   "the field, or what it is in, has a directive",
	CauseFields:      "the field must be alone in its operation, and come once",
	CauseArgument:    "an argument that decides has no value that can be read here",
	CauseElements:    "a list in the arguments has more elements than are read here, or is no list",
	CauseValue:       "the value that tells an order from other requests is spelt in another way, or has another type: some servers would take it for an order",
}

// Detail says what is wrong with a request, for its sender.
func (c Cause) Detail() string { return details[c] }

// Causes returns all causes.
func Causes() []Cause {
	all := make([]Cause, 0, len(details))
	for c := range details {
		all = append(all, c)
	}
	return all
}

// Compile checks a Spec. It returns nil for a Spec without rules.
func Compile(spec Spec) (*Scope, error) {
	s := &Scope{arguments: spec.Arguments, websockets: spec.Websockets}
	var err error
	if s.graphQL, err = compileGraphQL(spec.GraphQL); err != nil {
		return nil, err
	}
	if s.read, err = elementsOf(spec.Arguments); err != nil {
		return nil, fmt.Errorf("graphql.%w", err)
	}
	for _, rule := range spec.JSONBody {
		compiled, err := rule.compile()
		if err != nil {
			return nil, err
		}
		s.bodies = append(s.bodies, compiled)
	}
	switch {
	case len(s.graphQL) > 0 && len(s.bodies) > 0:
		return nil, errors.New("graphql and json_body are two ways to read a body: a gate has one of them")
	case len(spec.Persisted) > 0 && len(s.graphQL) == 0:
		return nil, errors.New("persisted operations are given, and no graphql: name the fields that make an attempt")
	case len(s.graphQL)+len(s.bodies) > 0:
	case spec.Websockets:
		return nil, errors.New("websockets pass, and neither graphql nor json_body says what an attempt is: every request is one, and a websocket cannot be")
	default:
		return nil, nil
	}
	return s, s.persisted.register(spec.Persisted)
}

// ReadsGraphQL says that the scope's requests are GraphQL.
func (s *Scope) ReadsGraphQL() bool { return len(s.graphQL) > 0 }

// Judge tells whether a request is an attempt. body is the whole body.
func (s *Scope) Judge(r *http.Request, body []byte) Judgement {
	if r.Method == http.MethodOptions && len(body) == 0 {
		return Judgement{}
	}
	if upgrades(r) && !(s.websockets && opensWebsocket(r)) {
		return unclear(CauseUpgrade)
	}
	if s.ReadsGraphQL() {
		return s.judgeGraphQL(r, body)
	}
	result := s.judgeBody(r, body)
	result.Mutates = !reads(r)
	return result
}

// reads reports whether a request changes nothing by its method. CONNECT opens a websocket.
func reads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodConnect
}

// upgrades reports whether a request asks for another protocol.
func upgrades(r *http.Request) bool {
	return len(r.Header["Upgrade"]) > 0 || r.Method == http.MethodConnect
}

// opensWebsocket reports whether a request opens a websocket, in HTTP/1.1 (RFC 6455) or later (RFC 8441).
func opensWebsocket(r *http.Request) bool {
	protocol := r.Header["Upgrade"]
	if r.Method == http.MethodConnect {
		protocol = r.Header[":protocol"]
	} else if r.Method != http.MethodGet {
		return false
	}
	return len(protocol) == 1 && strings.EqualFold(protocol[0], "websocket")
}

func unclear(why Cause) Judgement { return Judgement{Verdict: Unclear, Cause: why} }

// isName reports whether a text is a name in GraphQL.
func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// isJSON reports whether a request's Content-Type is JSON in UTF-8. Servers take urlencoded and
// multipart bodies for GraphQL too, and guess where there is no type.
func isJSON(h http.Header) bool {
	values := h["Content-Type"]
	if len(values) != 1 {
		return false
	}
	full, params, _ := strings.Cut(values[0], ";")
	full = strings.ToLower(strings.TrimSpace(full))
	if full != "application/json" && full != "application/graphql+json" {
		return false
	}
	if params = strings.TrimSpace(params); params == "" {
		return true
	}
	name, charset, _ := strings.Cut(params, "=")
	return strings.EqualFold(name, "charset") && attempt.IsUTF8(strings.TrimSuffix(strings.TrimPrefix(charset, `"`), `"`))
}
