// Package operation has the gate's options graphql, json_body, persisted and websockets: which requests
// of its route are attempts.
package operation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/strictjson"
)

// Options say which requests are attempts, for shops that take all their operations at one
// path. All others go on untouched; one that some server could take for an attempt is
// refused as malformed, and counted by its cause. Default: every request is an attempt.
type Options struct {
	// GraphQL: requests with this field at the root of a mutation (`query.`: of a query) are attempts. Default: every
	// request.
	//
	// The values of its arguments are then available as `{graphql.ARGUMENT}`.
	GraphQL []scope.GraphQL `json:"graphql,omitempty"`
	// JSONBody: requests whose JSON body has one of these values at this path are attempts. Default: every request.
	JSONBody []scope.JSONBody `json:"json_body,omitempty"`
	// Persisted is a file with a GraphQL shop's registered operations: a JSON object, by hash. Default: clients register
	// documents by SHA-256.
	Persisted string `json:"persisted,omitempty"`
	// Websockets: with `graphql` or `json_body` they pass unread. Default: `malformed`.
	Websockets string `json:"websockets,omitempty"`
}

// Check compiles the options without the file of persisted operations. values are those that are
// read from an attempt.
func (o *Options) Check(values []string) error {
	if o.Websockets != "" && o.Websockets != "pass" {
		return fmt.Errorf("websockets %q: there is only pass; without the option they are refused", o.Websockets)
	}
	_, err := scope.Compile(o.spec(values))
	return err
}

func (o *Options) spec(values []string) scope.Spec {
	return scope.Spec{GraphQL: o.GraphQL, JSONBody: o.JSONBody, Arguments: argumentsIn(values), Websockets: o.Websockets != ""}
}

// Open is Check that returns the compiled options; nil: every request is an attempt.
func (o *Options) Open(values []string) (*Finder, error) {
	if err := o.Check(values); err != nil {
		return nil, err
	}
	spec := o.spec(values)
	if o.Persisted != "" {
		raw, err := os.ReadFile(o.Persisted)
		if err != nil {
			return nil, fmt.Errorf("persisted: %w", err)
		}
		if err := strictjson.Unmarshal(raw, &spec.Persisted); err != nil {
			return nil, fmt.Errorf("persisted %s: %w: it has one JSON object, with a document for each hash", o.Persisted, err)
		}
	}
	compiled, err := scope.Compile(spec)
	if compiled == nil {
		return nil, err
	}
	return &Finder{compiled}, err
}

// Finder tells which requests are attempts.
type Finder struct{ *scope.Scope }

// Find judges a request. It sets the placeholders of an attempt's arguments, and counts a request that could not be told
// from an attempt unless dry.
func (f *Finder) Find(r *http.Request, body []byte, repl *caddy.Replacer, dry bool) scope.Judgement {
	found := f.Judge(r, body)
	switch {
	case found.Verdict == scope.Attempt:
		publish(repl, found)
	case found.Verdict == scope.Unclear && !dry:
		meter.All().Unclear.WithLabelValues(string(found.Cause)).Inc()
	}
	return found
}

// Any reports whether an option is given.
func (o *Options) Any() bool { return len(o.GraphQL)+len(o.JSONBody) > 0 || o.Persisted != "" }

// prefix begins the placeholders of a GraphQL field's arguments.
const prefix = "graphql."

// publish sets the placeholders of an attempt's arguments.
func publish(repl *caddy.Replacer, found scope.Judgement) {
	repl.Map(func(name string) (any, bool) {
		path, ok := strings.CutPrefix(name, prefix)
		if !ok {
			return nil, false
		}
		return found.Value(path), true
	})
}

// argumentsIn returns the paths of the arguments in values.
func argumentsIn(values []string) (paths []string) {
	for _, expr := range values {
		for rest := expr; ; {
			_, after, ok := strings.Cut(rest, "{"+prefix)
			path, behind, closed := strings.Cut(after, "}")
			if !ok || !closed {
				break
			}
			paths, rest = append(paths, path), behind
		}
	}
	return paths
}

// ByClient reports whether a value is an argument of a GraphQL field, which clients choose.
func ByClient(expr string) bool { return strings.Contains(expr, "{"+prefix) }

// notFound is how servers ask for the document of a persisted query (Apollo's protocol of
// automatic persisted queries).
var notFound = func() []byte {
	answer := map[string]any{"errors": []any{map[string]any{
		"message": "PersistedQueryNotFound", "extensions": map[string]any{"code": "PERSISTED_QUERY_NOT_FOUND"},
	}}}
	raw, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return raw
}()

// AskDocument answers a request whose document is not known: its client sends it again with
// the document.
func (*Finder) AskDocument(w http.ResponseWriter) error {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	_, err := w.Write(notFound)
	return err
}

// Directives returns the options by their names in a Caddyfile.
func (o *Options) Directives() map[string]directive.Option {
	return map[string]directive.Option{
		"graphql":    {Usage: "graphql [query.][<group>.]<field> [<argument> <value...>]", Read: o.readGraphQL, List: true},
		"json_body":  {Usage: "json_body <path> [<value...>]", Read: o.readJSONBody, List: true},
		"persisted":  {Usage: "persisted <file>", Read: directive.Text(&o.Persisted)},
		"websockets": {Usage: "websockets pass", Read: directive.Text(&o.Websockets)},
	}
}

func (o *Options) readGraphQL(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, -1)
	if err != nil {
		return err
	}
	if len(args) == 2 {
		return d.Errf("graphql %s %s: give the values of the argument that make an attempt: write `%s`", args[0], args[1], usage)
	}
	var rule scope.GraphQL
	if field, ok := strings.CutPrefix(args[0], "query."); ok {
		rule.Field, rule.Operation = field, "query"
	} else {
		rule.Field = args[0]
	}
	if len(args) > 2 {
		rule.Argument, rule.Values = args[1], args[2:]
	}
	o.GraphQL = append(o.GraphQL, rule)
	return nil
}

func (o *Options) readJSONBody(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, -1)
	if err != nil {
		return err
	}
	o.JSONBody = append(o.JSONBody, scope.JSONBody{Path: args[0], Values: args[1:]})
	return nil
}
