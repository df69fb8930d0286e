package reference

import (
	"errors"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// place is where options of a Caddyfile are read: a function that has a map of directive.Option, and the
// struct that the options fill.
type place struct {
	dir       string
	receiver  string // of the function; empty: it has none
	function  string
	structDir string // empty: dir
	structure string
}

// block is a list of options in docs/configure.md.
type block struct {
	name    string
	places  []place
	without []string // options of the places that the block does not have
}

var attemptOptions = []place{
	{dir: "caddymodule/gate/option/operation", receiver: "Options", function: "Directives", structure: "Options"},
	{dir: "caddymodule/gate/option", receiver: "AttemptOptions", function: "Directives", structure: "AttemptOptions"},
}

// blocks are the lists, in the order of the page.
var blocks = []block{
	{name: "app", places: []place{{dir: "caddymodule/app", receiver: "App", function: "UnmarshalCaddyfile", structure: "App"}}},
	{name: "store", places: []place{{dir: "caddymodule/app", receiver: "App", function: "readStore", structure: "OwnStore"}}},
	{name: "redis", places: []place{{dir: "caddymodule/app", function: "readRedis", structure: "Redis"}}},
	{name: "tls", places: []place{{dir: "caddymodule/app", receiver: "Redis", function: "readTLS", structure: "RedisTLS"}}},
	{name: "sentinel", places: []place{{dir: "caddymodule/app", receiver: "Redis", function: "readSentinel", structure: "Redis"}}},
	{name: "identities", places: []place{{dir: "caddymodule/app", receiver: "App", function: "readIdentities", structure: "IdentitySpellings"}}},
	{name: "messages", places: []place{{dir: "caddymodule/internal/directive", function: "ReadMessages", structure: "Messages"}}},
	{name: "token", places: []place{{dir: "caddymodule/app", receiver: "Token", function: "readCaddyfile", structure: "Token"}}},
	{name: "journal", places: []place{{dir: "caddymodule/app/journals", receiver: "Journal", function: "ReadCaddyfile", structure: "Journal"}}},
	{name: "outbox", places: []place{{dir: "caddymodule/app/journals", function: "ReadOutbox", structure: "Outbox"}}},
	{name: "mirror", places: []place{{dir: "caddymodule/mirror", receiver: "Mirror", function: "UnmarshalCaddyfile", structure: "Mirror"}}},
	{name: "notify", places: []place{{dir: "caddymodule/notify", receiver: "Notify", function: "UnmarshalCaddyfile", structure: "Notify"}}},
	{name: "gate", places: append(attemptOptions[:2:2], place{dir: "caddymodule/gate/selling", receiver: "SellingOptions", function: "Directives", structure: "SellingOptions"})},
	{name: "queue", places: []place{{dir: "caddymodule/gate/option/waiting", function: "ReadOption", structure: "Options"}}},
	{name: "answer", places: []place{{dir: "caddymodule/gate/selling", receiver: "SellingOptions", function: "readAnswer", structDir: "filters/outcome", structure: "AnswerMatcher"}}},
	{name: "jwt", places: []place{{dir: "caddymodule/gate/option/jwt", function: "ReadOption", structure: "Config"}}},
	{name: "challenge", places: []place{{dir: "caddymodule/gate/option/pow", function: "ReadOption", structure: "Challenge"}}},
	{name: "lookup", places: []place{{dir: "caddymodule/gate/option/inquiry", receiver: "Spec", function: "Bounds", structure: "Spec"}}},
	{name: "ask", places: []place{{dir: "caddymodule/gate/option/inquiry", function: "ReadAsk", structure: "Ask"}}},
	{name: "in_doubt", places: []place{{dir: "caddymodule/gate/selling", receiver: "ruleReader", function: "readInDoubt", structDir: "caddymodule/gate/option/probe", structure: "InDoubt"}}},
	{name: "fast_refusals", places: []place{{dir: "caddymodule/gate/option", receiver: "AttemptOptions", function: "readFast", structure: "FastRefusals"}}},
	{name: "guard", places: []place{{dir: "caddymodule/guard", receiver: "Guard", function: "UnmarshalCaddyfile", structure: "Guard"}}},
	{name: "api", places: []place{{dir: "caddymodule/shopapi", receiver: "API", function: "UnmarshalCaddyfile", structure: "API"}}},
	{name: "resolve", places: []place{{dir: "caddymodule/resolve", receiver: "Resolve", function: "UnmarshalCaddyfile", structure: "Resolve"}}},
	{name: "signed", places: []place{{dir: "caddymodule/resolve", receiver: "Signature", function: "readSigned", structDir: "filters/webhook", structure: "Description"}}},
	{name: "paypal", places: []place{{dir: "caddymodule/resolve", receiver: "Resolve", function: "readVerify", structure: "Signature"}}},
	{name: "provider", places: []place{{dir: "caddymodule/resolve", receiver: "Resolve", function: "readAsk", structure: "AskProvider"}}},
	{name: "event", places: []place{{dir: "caddymodule/resolve", receiver: "Resolve", function: "readEvent", structDir: "filters/outcome", structure: "AnswerMatcher"}}},
	{name: "dashboard", places: []place{{dir: "caddymodule/operate/dashboard", receiver: "Dashboard", function: "UnmarshalCaddyfile", structure: "Dashboard"}}},
	{name: "users", places: []place{{dir: "caddymodule/operate/dashboard", receiver: "RoleMembers", function: "read", structure: "RoleMembers"}}},
}

// Options returns the lists of options by the name of the block.
func Options(root string) (Parts, error) {
	s, parts := newSources(root), make(Parts)
	for _, b := range blocks {
		options, err := s.block(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.name, err)
		}
		parts[b.name] = list(options)
	}
	rate, err := s.rate()
	if err != nil {
		return nil, err
	}
	parts["rate"] = list(rate)
	for name, same := range sameAs {
		if parts[name], err = s.names(same); err != nil {
			return nil, err
		}
	}
	parts["conflicts"], err = s.conflicts()
	return parts, err
}

// sameAs are blocks whose options are those of another one.
var sameAs = map[string]block{
	"rate_redis": {places: []place{{dir: "caddymodule/app", function: "readRedis", structure: "Redis"}}, without: []string{"replica_acks", "fence", "at_risk"}},
	"check":      {places: append(attemptOptions[:2:2], place{dir: "caddymodule/gate/check", receiver: "Check", function: "UnmarshalCaddyfile", structure: "Check"})},
	"waitlist": {
		places:  append(attemptOptions[:len(attemptOptions):len(attemptOptions)], place{dir: "caddymodule/gate/waitlist", receiver: "WaitlistHandler", function: "UnmarshalCaddyfile", structure: "WaitlistHandler"}),
		without: []string{"one_at_a_time", "max_in_flight", "websockets"},
	},
}

// names lists the names of a block's options.
func (s *sources) names(b block) (string, error) {
	options, err := s.block(b)
	var names []string
	for _, o := range options {
		if !slices.Contains(b.without, o.name) {
			names = append(names, "`"+o.name+"`")
		}
	}
	return strings.Join(names, ", ") + ".", err
}

// list writes options as a list of Markdown.
func list(options []option) string {
	var b strings.Builder
	for _, o := range options {
		usage := "`" + o.usage + "`"
		text, without := withoutDefault(o.text)
		if o.repeatable {
			usage += `\*`
		}
		if without != "" {
			usage += " (" + without + ")"
		}
		fmt.Fprintf(&b, "- %s: %s\n", usage, text)
	}
	return b.String()
}

// withoutDefault takes the last sentence off a text, if it says what holds without the option.
func withoutDefault(text string) (rest, without string) {
	if rest, ok := strings.CutSuffix(text, " Required."); ok {
		return rest, "required"
	}
	if at := strings.LastIndex(text, " Default: "); at >= 0 {
		without = strings.TrimSuffix(text[at+len(" Default: "):], ".")
		if without == "none" || without == "off" {
			without = ""
		}
		return text[:at], without
	}
	return text, ""
}

func (s *sources) block(b block) ([]option, error) {
	var all []option
	for _, p := range b.places {
		options, err := s.place(p)
		if err != nil {
			return nil, err
		}
		all = append(all, options...)
	}
	return all, nil
}

// place returns the options of one map in source, in the order in which they stand there.
func (s *sources) place(p place) ([]option, error) {
	f, file, err := s.function(p.dir, p.receiver, p.function)
	if err != nil {
		return nil, err
	}
	if p.structDir == "" {
		p.structDir = p.dir
	}
	fields, err := s.structure(p.structDir, p.structure)
	if err != nil {
		return nil, err
	}
	var options []option
	var errs []error
	add := func(name string, comment string, value *ast.CompositeLit) {
		o, err := s.option(p, file, fields, name, comment, value)
		if err != nil {
			errs = append(errs, err)
		} else if o.usage != "" { // else it is no option, and says what to write instead
			options = append(options, o)
		}
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if m, ok := n.Type.(*ast.MapType); !ok || !isOption(m.Value) {
				break
			}
			for _, e := range n.Elts {
				entry := e.(*ast.KeyValueExpr)
				name, err := s.text(p.dir, file, entry.Key)
				errs = append(errs, err)
				add(name, commentOf(file, entry), entry.Value.(*ast.CompositeLit))
			}
		case *ast.AssignStmt: // options["name"] = directive.Option{…}
			index, ok := n.Lhs[0].(*ast.IndexExpr)
			value, is := n.Rhs[0].(*ast.CompositeLit)
			if !ok || !is || !isOption(value.Type) {
				break
			}
			if name, err := s.text(p.dir, file, index.Index); err == nil {
				add(name, commentOf(file, n), value)
			}
		}
		return true
	})
	if len(options) == 0 {
		errs = append(errs, fmt.Errorf("%s of %s has no options", p.function, p.dir))
	}
	return options, errors.Join(errs...)
}

// rate returns the words of the option rate, which stand in one line.
func (s *sources) rate() ([]option, error) {
	fields, err := s.structure("caddymodule/gate/option/ratelimit", "Rate")
	if err != nil {
		return nil, err
	}
	words := map[string]string{"key": "<value...>", "events": "<events>", "window": "<window>", "burst": "burst <number>", "keys": "keys <number>", "ipv6_prefix": "ipv6 <bits>"}
	var options []option
	for _, f := range fields {
		usage := words[f.tag]
		if usage == "" {
			usage = f.tag
		}
		if f.doc == "" {
			return nil, fmt.Errorf("field %s of Rate has no comment", f.name)
		}
		options = append(options, option{name: f.tag, usage: usage, text: about(f)})
	}
	return options, nil
}
