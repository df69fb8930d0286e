package scope

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/filters/route"
	"github.com/stockgate/stockgate/internal/strictjson"
)

// references are the names by which servers find a document that is not in the request, in lower case and
// without _ and -: documentId of GraphQL over HTTP (appendix A), doc_id of Relay, and names that servers with
// stored operations use.
var references = []string{"document", "documentid", "docid", "queryid", "queryhash", "hash", "sha256hash", "operationid", "opid", "persistedquery", "persistedqueryid", "persistedid"}

// queryOf reads one operation. Clients send members of their own, such as id, beside the document. They say
// nothing to a server that takes the document of the request; false: they may name another one.
func (s *Scope) queryOf(raw []byte) (q query, ok bool) {
	err := strictjson.Read(raw, func(r *strictjson.Reader) error { return r.OpenObject(nil) })
	if err != nil || json.Unmarshal(raw, &q) != nil {
		return q, false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return q, false
	}
	for name, value := range members {
		if !slices.Contains(parameters, name) && s.mayName(name, value, members["query"]) {
			return q, false
		}
	}
	return q, true
}

// mayName reports whether a member that GraphQL over HTTP does not have may lead a server to a document.
func (s *Scope) mayName(name string, value, document json.RawMessage) bool {
	if route.IsPrototype(name) || slices.ContainsFunc(parameters, func(known string) bool { return route.SameParam(name, known) }) {
		return true
	}
	if string(value) == "null" {
		return false
	}
	inRequest := len(document) > len(`""`) && document[0] == '"'
	reference := slices.Contains(references, strings.NewReplacer("_", "", "-", "").Replace(route.Fold(name)))
	return !inRequest || reference || s.persisted.areRegistered()
}
