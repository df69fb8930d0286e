package learn

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// operation is what a GraphQL request asks for.
type operation struct {
	kind      string // mutation or query
	field     string // at the root, or below fields that only group others
	arguments map[string]any
	document  string
	variables any
	hashed    bool // the document was sent before, and this request has its hash only
}

// maxTokens bounds the documents that are read, as the gate does.
const maxTokens = 5000

// documents are the documents of a recording by their hash.
type documents map[string]string

// documentsOf collects what clients sent.
func documentsOf(recordings []*Recording) documents {
	found := make(documents)
	for _, rec := range recordings {
		for _, x := range rec.Exchanges {
			if q, ok := queryIn(x); ok && q.Query != "" {
				sum := sha256.Sum256([]byte(q.Query))
				found[hex.EncodeToString(sum[:])] = q.Query
			}
		}
	}
	return found
}

type graphQLBody struct {
	Query         string          `json:"query"`
	OperationName string          `json:"operationName"`
	Variables     json.RawMessage `json:"variables"`
	Extensions    struct {
		PersistedQuery struct {
			Hash string `json:"sha256Hash"`
		} `json:"persistedQuery"`
	} `json:"extensions"`
}

// queryIn reads a POST of GraphQL: JSON with a document or the hash of one.
func queryIn(x *Exchange) (q graphQLBody, ok bool) {
	if x.Method != "POST" || !isJSONType(mediaType(x.Header)) || len(x.Body) == 0 || x.Body[0] != '{' {
		return q, false
	}
	if json.Unmarshal(x.Body, &q) != nil {
		return q, false
	}
	return q, q.Query != "" || q.Extensions.PersistedQuery.Hash != ""
}

// operation returns what a request asks a GraphQL server for. It is nil for any other request, and for a
// hash whose document no recording has; unknown tells these apart.
func (d documents) operation(x *Exchange) (op *operation, unknown bool) {
	q, ok := queryIn(x)
	if !ok {
		return nil, false
	}
	op = &operation{document: q.Query, variables: decodeJSON(q.Variables)}
	if op.document == "" {
		if op.document = d[q.Extensions.PersistedQuery.Hash]; op.document == "" {
			return nil, true
		}
		op.hashed = true
	}
	parsed, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: op.document}, maxTokens)
	if err != nil {
		return nil, false
	}
	def := parsed.Operations.ForName(q.OperationName)
	if def == nil || len(def.SelectionSet) == 0 {
		return nil, false
	}
	op.kind = string(def.Operation)
	op.setField(def, op.variables)
	if op.field == "" {
		return nil, false
	}
	return op, false
}

// setField finds the field at the root. One without arguments whose only field has some groups that one.
func (op *operation) setField(def *ast.OperationDefinition, variables any) {
	field := firstField(def.SelectionSet)
	if field == nil {
		return
	}
	op.field = field.Name
	if op.kind == string(ast.Mutation) && len(field.Arguments) == 0 && len(field.SelectionSet) == 1 {
		if inner := firstField(field.SelectionSet); inner != nil && len(inner.Arguments) > 0 {
			op.field, field = op.field+"."+inner.Name, inner
		}
	}
	vars, _ := variables.(map[string]any)
	op.arguments = make(map[string]any)
	for _, a := range field.Arguments {
		op.arguments[a.Name] = valueOf(a.Value, vars, def.VariableDefinitions, 0)
	}
}

// firstField returns the first field that is not __typename.
func firstField(set ast.SelectionSet) *ast.Field {
	i := slices.IndexFunc(set, func(s ast.Selection) bool {
		f, ok := s.(*ast.Field)
		return ok && f.Name != "__typename"
	})
	if i < 0 {
		return nil
	}
	return set[i].(*ast.Field)
}

// valueOf returns an argument as JSON has it.
func valueOf(v *ast.Value, vars map[string]any, defs ast.VariableDefinitionList, depth int) any {
	if v == nil || depth > maxDepth {
		return nil
	}
	switch v.Kind {
	case ast.Variable:
		if given, ok := vars[v.Raw]; ok {
			return given
		}
		if def := defs.ForName(v.Raw); def != nil {
			return valueOf(def.DefaultValue, nil, nil, depth+1)
		}
		return nil
	case ast.IntValue, ast.FloatValue:
		return json.Number(v.Raw)
	case ast.BooleanValue:
		return v.Raw == "true"
	case ast.NullValue:
		return nil
	case ast.ListValue:
		list := make([]any, 0, len(v.Children))
		for _, child := range v.Children {
			list = append(list, valueOf(child.Value, vars, defs, depth+1))
		}
		return list
	case ast.ObjectValue:
		object := make(map[string]any, len(v.Children))
		for _, child := range v.Children {
			object[child.Name] = valueOf(child.Value, vars, defs, depth+1)
		}
		return object
	}
	return v.Raw
}
