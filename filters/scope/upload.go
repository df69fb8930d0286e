package scope

import (
	"net/http"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/route"
	"github.com/stockgate/stockgate/internal/strictjson"
)

// partOperations and partMap are the parts of an upload that are no files (GraphQL multipart request
// specification, jaydenseric, version 2).
const (
	partOperations = "operations"
	partMap        = "map"
)

// judgeUpload judges a multipart body, in which files come with their operations. An order has no files: it
// is to be sent as JSON.
func (s *Scope) judgeUpload(h http.Header, body []byte) Judgement {
	var operations, files []byte
	what := eachPart(h, body, func(part attempt.FormPart) string {
		switch {
		case part.Name == partOperations && operations == nil && part.Plain:
			operations = part.Content
		case part.Name == partMap && files == nil && part.Plain:
			files = part.Content
		case slices.ContainsFunc(append(parameters, partOperations, partMap), func(known string) bool { return route.SameParam(part.Name, known) }):
			return "servers read the operation in different parts, or decode it"
		}
		return ""
	})
	if what != "" || operations == nil || !fillsVariables(files) {
		return unclear(CauseContentType)
	}
	found := s.judgeOperations(operations)
	if found.Verdict == Attempt || found.Verdict == Unknown {
		return unclear(CauseContentType)
	}
	return found
}

// fillsVariables reports whether the map of an upload puts files into variables only.
func fillsVariables(files []byte) bool {
	if files == nil {
		return true
	}
	var paths map[string][]string
	if strictjson.Unmarshal(files, &paths) != nil {
		return false
	}
	for _, all := range paths {
		for _, path := range all {
			first, rest, _ := strings.Cut(path, ".")
			if first != "variables" && !(strings.Trim(first, "0123456789") == "" && strings.HasPrefix(rest, "variables.")) {
				return false
			}
		}
	}
	return true
}

// judgeForm judges a multipart body where a JSON body tells attempts from other requests: a script may read
// the value in a field of the form too.
func (s *Scope) judgeForm(h http.Header, body []byte) Judgement {
	what := eachPart(h, body, func(part attempt.FormPart) string {
		for i := range s.bodies {
			if rule := &s.bodies[i]; route.SameParam(part.Name, rule.path[0]) && !(part.Name == rule.path[0] && part.Plain && rule.excludes(string(part.Content))) {
				return "servers may read the value there"
			}
		}
		return ""
	})
	if what != "" {
		return unclear(CauseContentType)
	}
	return Judgement{}
}

// eachPart goes through the parts of a multipart body. what says why it cannot be read alike by all servers.
func eachPart(h http.Header, body []byte, each func(attempt.FormPart) string) (what string) {
	types := h["Content-Type"]
	if len(types) != 1 {
		return "the type of the body is not known"
	}
	return attempt.MultipartBody(types[0], body, func(part attempt.FormPart) string {
		if route.ReachesPrototype(part.Name) {
			return "it leads to a prototype"
		}
		return each(part)
	})
}
