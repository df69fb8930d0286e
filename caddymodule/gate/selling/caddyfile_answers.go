package selling

import (
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/gate/option/probe"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters/outcome"
)

// ruleReader reads the rules of a gate. They may come before the answers that they name, so
// the names are checked at the end.
type ruleReader struct {
	options *SellingOptions
	named   []namedAnswer
}

// namedAnswer is one use of an answer's name.
type namedAnswer struct {
	at      caddyfile.Dispenser
	outcome string
	name    string
}

func (rs *ruleReader) read(outcome string) func(*caddyfile.Dispenser, string) error {
	return rs.readInto(outcome, outcome, &rs.options.Rules)
}

func (rs *ruleReader) check() error {
	for _, use := range rs.named {
		if _, ok := rs.options.Answers[use.name]; !ok {
			return use.at.Errf("%s: this gate has no answer @%s: write it as `@%[2]s { … }` in the gate's block", use.outcome, use.name)
		}
	}
	return nil
}

// readAnswer reads a named matcher of the shop's answer.
func (o *SellingOptions) readAnswer(d *caddyfile.Dispenser, usage string) error {
	word := d.Val()
	name := strings.TrimPrefix(word, "@")
	if name == "" {
		return d.Errf("@ needs a name: write `%s`", usage)
	}
	if _, twice := o.Answers[name]; twice {
		return d.Errf("answer %s is defined twice in this gate", word)
	}
	if _, err := directive.Arguments(d, usage, 0, 0); err != nil {
		return err
	}
	at := *d
	var a outcome.AnswerMatcher
	err := directive.ReadBlock(d, map[string]directive.Option{
		"status": {Usage: "status <code|class...>", Read: directive.Texts(&a.Status)},
		"header": {Usage: "header <field> [<value...>]", Read: readAnswerHeader(&a), List: true},
		"json":   {Usage: "json [!]<path> [<value...>]", Read: directive.JSONTest(&a.JSON), List: true},
	})
	if err != nil {
		return err
	}
	if len(a.Status) == 0 && len(a.Header) == 0 && len(a.JSON) == 0 {
		return at.Errf("answer %s tests nothing: give it status, header or json", word)
	}
	if o.Answers == nil {
		o.Answers = make(map[string]outcome.AnswerMatcher)
	}
	o.Answers[name] = a
	return nil
}

func readAnswerHeader(a *outcome.AnswerMatcher) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args := d.RemainingArgs() // a value may be empty
		if len(args) == 0 || args[0] == "" {
			return d.Errf("header has no field: write `%s`", usage)
		}
		field := http.CanonicalHeaderKey(args[0])
		if _, twice := a.Header[field]; twice {
			return d.Errf("header %s is given twice: write all its values in one line", field)
		}
		if a.Header == nil {
			a.Header = make(map[string][]string)
		}
		a.Header[field] = args[1:]
		return nil
	}
}

const inDoubtUsage = "in_doubt keep | probe [GET|POST] <url> [<body>]"

// readInDoubt reads what happens to holds in doubt.
func (rs *ruleReader) readInDoubt(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 4)
	if err != nil {
		return err
	}
	in := new(probe.InDoubt)
	rs.options.InDoubt = in
	switch kind, url := args[0], args[1:]; {
	case kind == "keep" && len(url) == 0:
		return nil
	case kind == "keep":
		return d.Errf("in_doubt keep takes no URL: write `%s`", usage)
	case kind != "probe":
		return d.Errf("in_doubt %q: write `%s`", kind, usage)
	case len(url) == 0:
		return d.Errf("in_doubt probe has no URL: write `%s`", usage)
	}
	question := new(inquiry.Spec)
	if err := question.Read(d, args[1:], usage); err != nil {
		return err
	}
	in.Probe, in.Body = question.URL, question.Body
	if question.Method != http.MethodGet {
		in.Method = question.Method
	}
	return directive.ReadBlock(d, map[string]directive.Option{
		// these say that the shop has the order. Default: `200`.
		"confirm": {Usage: "confirm <code|class|@name...>", Read: rs.readInto("in_doubt confirm", "confirm", &in.Rules), List: true},
		// these say that the shop does not have it. Default: `404`.
		"release": {Usage: "release <code|class|@name...>", Read: rs.readInto("in_doubt release", "release", &in.Rules), List: true},
		"every":   {Usage: "every <duration>", Read: directive.Duration(&in.Every)},
		"longest": {Usage: "longest <duration>", Read: directive.Duration(&in.Longest)},
		"tries":   {Usage: "tries <number>", Read: directive.Count(&in.Tries)},
		"timeout": {Usage: "timeout <duration>", Read: directive.Duration(&in.Timeout)},
		"header":  {Usage: "header <field> <value>", Read: readProbeHeader(in), List: true},
	})
}

// readInto reads one rule and appends it to a list; what names it in an error.
func (rs *ruleReader) readInto(what, then string, into *[]outcome.Rule) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := directive.Arguments(d, usage, 1, -1)
		if err != nil {
			return err
		}
		for _, word := range args {
			if name, ok := strings.CutPrefix(word, "@"); ok {
				rs.named = append(rs.named, namedAnswer{*d, what, name})
			}
		}
		*into = append(*into, outcome.Rule{Outcome: then, When: args})
		return nil
	}
}

// readProbeHeader reads a header of the probe's requests.
func readProbeHeader(in *probe.InDoubt) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := directive.Arguments(d, usage, 2, 2)
		if err != nil {
			return err
		}
		field := http.CanonicalHeaderKey(args[0])
		if _, twice := in.Header[field]; twice {
			return d.Errf("header %s is given twice: write it once", field)
		}
		if in.Header == nil {
			in.Header = make(map[string]string)
		}
		in.Header[field] = args[1]
		return nil
	}
}
