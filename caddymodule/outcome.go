package caddymodule

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Answer matches the shop's answer; everything given must match.
type Answer struct {
	// Status are codes (201) or classes (2xx), one of which must match.
	Status []string `json:"status,omitempty"`
	// Header fields must have one of these values; no value: the field must be there.
	Header map[string][]string `json:"header,omitempty"`
	// JSON says what the body must hold.
	JSON []JSONTest `json:"json,omitempty"`
}

// Rule is one step from an answer to an outcome.
type Rule struct {
	// Outcome is confirm or release.
	Outcome string `json:"outcome"`
	// When are status codes (201), classes (4xx) or names of Answers (@sold), one of
	// which must match.
	When []string `json:"when"`
}

// verdict is what the shop's answer means for the reservation.
type verdict int

const (
	undecided verdict = iota // a rule needs more of the answer
	confirm
	release
	inDoubt
	keep // outcome backend: the hold goes on, the shop decides later
)

func (v verdict) String() string {
	return [...]string{"undecided", "confirm", "release", "in_doubt", "keep"}[v]
}

// outcome is the word for what becomes of the hold.
func (v verdict) outcome() string {
	return [...]string{confirm: "confirmed", release: "released", inDoubt: "in_doubt", keep: "held"}[v]
}

// yes, no, or not known yet.
type trit int

const (
	no trit = iota
	maybe
	yes
)

func tritOf(b bool) trit {
	if b {
		return yes
	}
	return no
}

// reply is what is known of the shop's answer.
type reply struct {
	status int
	header http.Header
	body   []byte
	whole  bool // body is all of it
}

// rules turn answers into outcomes; the first that matches counts.
type rules struct {
	list []rule
	// otherwise is what an answer means that no rule matches, or that nobody has heard.
	otherwise verdict
	// readsBody: some rule tests the body.
	readsBody bool
}

type rule struct {
	then verdict
	when []ruleTest
	// text is the rule as it is written, for who asks which one counts.
	text string
}

// ruleTest is one of the words of a rule.
type ruleTest struct {
	word string
	test func(*reply) trit
}

// notRefused are the 4xx that do not say that the order was refused: a conflict may
// be with the first try of the same order, a timeout may come after the order was
// written, 499 is a client that left.
var notRefused = map[int]bool{http.StatusRequestTimeout: true, http.StatusConflict: true, 499: true}

// compileRules compiles a gate's rules, with the defaults behind them; there are none
// where the shop decides later.
func compileRules(list []Rule, answers map[string]Answer, backend bool) (*rules, error) {
	out := &rules{otherwise: inDoubt}
	if backend {
		out.otherwise = keep
	}
	matchers := make(map[string]func(*reply) trit, len(answers))
	for name, a := range answers {
		m, err := compileAnswer(a)
		if err != nil {
			return nil, fmt.Errorf("answer @%s: %w", name, err)
		}
		matchers[name] = m
		out.readsBody = out.readsBody || len(a.JSON) > 0
	}
	has := make(map[verdict]bool)
	for _, r := range list {
		then, ok := map[string]verdict{"confirm": confirm, "release": release}[r.Outcome]
		if !ok {
			return nil, fmt.Errorf("outcome %q: there are confirm and release", r.Outcome)
		}
		if len(r.When) == 0 {
			return nil, fmt.Errorf("%s: no status and no @answer is named", r.Outcome)
		}
		compiled := rule{then: then, text: r.Outcome + " " + strings.Join(r.When, " ")}
		for _, word := range r.When {
			test, err := compileTest(word, matchers)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Outcome, err)
			}
			compiled.when = append(compiled.when, ruleTest{word, test})
		}
		has[then] = true
		out.list = append(out.list, compiled)
	}
	if backend {
		return out, nil
	}
	if !has[confirm] {
		out.list = append(out.list, rule{confirm, []ruleTest{{"2xx", inClass(2)}}, "confirm 2xx, by default"})
	}
	if !has[release] {
		out.list = append(out.list, rule{release, []ruleTest{{"4xx", func(r *reply) trit {
			return tritOf(r.status/100 == 4 && !notRefused[r.status])
		}}}, "release 4xx except 408, 409 and 499, by default"})
	}
	return out, nil
}

// decide applies the rules.
func (rs *rules) decide(r *reply) verdict {
	v, _, _ := rs.match(r)
	return v
}

// match applies the rules and says which one decides, by which of its words; nil:
// none does.
func (rs *rules) match(r *reply) (v verdict, by *rule, word string) {
	for i := range rs.list {
		rule := &rs.list[i]
		for _, when := range rule.when {
			switch when.test(r) {
			case yes:
				return rule.then, rule, when.word
			case maybe:
				return undecided, rule, when.word
			}
		}
	}
	return rs.otherwise, nil, ""
}

func compileTest(word string, matchers map[string]func(*reply) trit) (func(*reply) trit, error) {
	if name, ok := strings.CutPrefix(word, "@"); ok {
		m, ok := matchers[name]
		if !ok {
			return nil, fmt.Errorf("there is no answer @%s", name)
		}
		return m, nil
	}
	return statusTest(word)
}

func statusTest(word string) (func(*reply) trit, error) {
	if len(word) == 3 && word[1:] == "xx" && word[0] >= '2' && word[0] <= '5' {
		return inClass(int(word[0] - '0')), nil
	}
	code, err := strconv.Atoi(word)
	if err != nil || code < 200 || code > 599 {
		return nil, fmt.Errorf("%q is neither a status (201) nor a class (2xx to 5xx) nor an @answer", word)
	}
	return func(r *reply) trit { return tritOf(r.status == code) }, nil
}

func inClass(class int) func(*reply) trit {
	return func(r *reply) trit { return tritOf(r.status/100 == class) }
}

func compileAnswer(a Answer) (func(*reply) trit, error) {
	if len(a.Status) == 0 && len(a.Header) == 0 && len(a.JSON) == 0 {
		return nil, fmt.Errorf("it tests nothing")
	}
	var all []func(*reply) trit
	if len(a.Status) > 0 {
		var any []func(*reply) trit
		for _, word := range a.Status {
			test, err := statusTest(word)
			if err != nil {
				return nil, err
			}
			any = append(any, test)
		}
		all = append(all, func(r *reply) trit {
			for _, test := range any {
				if test(r) == yes {
					return yes
				}
			}
			return no
		})
	}
	for name, values := range a.Header {
		all = append(all, headerTest(name, values))
	}
	for _, t := range a.JSON {
		test, err := jsonTest(t)
		if err != nil {
			return nil, err
		}
		all = append(all, test)
	}
	return func(r *reply) trit {
		out := yes
		for _, test := range all {
			out = min(out, test(r))
		}
		return out
	}, nil
}

func headerTest(name string, want []string) func(*reply) trit {
	return func(r *reply) trit {
		for _, have := range r.header.Values(name) {
			if len(want) == 0 {
				return yes
			}
			for _, w := range want {
				if have == w {
					return yes
				}
			}
		}
		return no
	}
}
