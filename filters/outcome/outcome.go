// Package outcome decides what the shop's answer means for a reservation: confirm it, release
// it, or leave it in doubt. Rules decide, in order; where no rule of a kind is given, 2xx
// confirms and most 4xx release.
package outcome

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/jsonpath"
)

// AnswerMatcher matches the shop's answer; everything given must match.
type AnswerMatcher struct {
	// Status is one of these codes (`201`) or classes (`2xx`). Default: any.
	Status []string `json:"status,omitempty"`
	// Header has one of these values, in which `*` stands for any characters; without a value, it is there.
	Header map[string][]string `json:"header,omitempty"`
	// JSON tests a field of the body: it has one of these values (`*` stands for any characters, `0.0` is `0`,
	// `{ref}` is the order that was asked about); without a value it is there, with `!` it is not. null and an
	// empty array are not there.
	JSON []JSONTest `json:"json,omitempty"`
}

// Rule maps answers to an outcome.
type Rule struct {
	// Outcome is confirm or release.
	Outcome string `json:"outcome"`
	// When are status codes (201), classes (4xx) or names of Answers (@sold), one of
	// which must match.
	When []string `json:"when"`
}

// Decision is what the shop's answer means for the reservation.
type Decision int

const (
	Undecided Decision = iota // a rule needs more of the answer, or cannot tell which of several values it means
	Confirm                   // the shop took the order
	Release                   // the shop refused the order
	InDoubt                   // the answer does not say
	Keep                      // outcome backend: the hold goes on, the shop decides later
)

// String is the decision in a log and in an answer of the admin API.
func (v Decision) String() string {
	return [...]string{"undecided", "confirm", "release", "in_doubt", "keep"}[v]
}

// State is the state that the hold gets.
func (v Decision) State() string {
	return [...]string{Confirm: "confirmed", Release: "released", InDoubt: "in_doubt", Keep: "held"}[v]
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

// Rules decide what an answer means; the first that matches counts.
type Rules struct {
	list []rule
	// Otherwise is the decision where no rule matches, or where no answer came.
	Otherwise Decision
	// ReadsBody says that some rule tests the body.
	ReadsBody bool
	// paths are those at which tests want a value, in the order of the matchers' names.
	paths []string
	read  jsonpath.Elements
}

type rule struct {
	then Decision
	when []ruleTest
	// text is the rule as written, for callers that ask which rule decided.
	text string
}

// ruleTest is one of the words of a rule.
type ruleTest struct {
	word string
	test func(*ShopAnswer) trit
}

// notRefused are the 4xx codes that do not prove that the order was refused: a conflict
// may be with the first try of the same order, a timeout may come after the order was
// written, and 499 means that the client left.
var notRefused = map[int]bool{http.StatusRequestTimeout: true, http.StatusConflict: true, 499: true}

// Compile compiles a gate's rules, with the defaults behind them; there are none
// where the shop decides later.
func Compile(list []Rule, answers map[string]AnswerMatcher, backend bool) (*Rules, error) {
	out := &Rules{Otherwise: InDoubt}
	if backend {
		out.Otherwise = Keep
	}
	matchers := make(map[string]func(*ShopAnswer) trit, len(answers))
	read := jsonPaths(slices.Collect(maps.Values(answers))...)
	out.read = read
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		a := answers[name]
		for _, t := range a.JSON {
			if !t.Absent {
				out.paths = append(out.paths, t.Path)
			}
		}
		m, err := compileAnswer(a, read)
		if err != nil {
			return nil, fmt.Errorf("answer @%s: %w", name, err)
		}
		matchers[name] = m
		out.ReadsBody = out.ReadsBody || len(a.JSON) > 0
	}
	has := make(map[Decision]bool)
	for _, r := range list {
		then, ok := map[string]Decision{"confirm": Confirm, "release": Release}[r.Outcome]
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
	if !has[Confirm] {
		out.list = append(out.list, rule{Confirm, []ruleTest{{"2xx", inClass(2)}}, "confirm 2xx, by default"})
	}
	if !has[Release] {
		out.list = append(out.list, rule{Release, []ruleTest{{"4xx", func(r *ShopAnswer) trit {
			return tritOf(r.Status/100 == 4 && !notRefused[r.Status])
		}}}, "release 4xx except 408, 409 and 499, by default"})
	}
	return out, nil
}

// CompileAnswer returns a test of one answer. known is false while more of it must be seen, and where an
// array has more elements than the test reads.
func CompileAnswer(a AnswerMatcher) (func(*ShopAnswer) (matches, known bool), error) {
	test, err := compileAnswer(a, jsonPaths(a))
	if err != nil {
		return nil, err
	}
	return func(r *ShopAnswer) (matches, known bool) {
		t := test(r)
		return t == yes, t != maybe
	}, nil
}

// Decide applies the rules.
func (rs *Rules) Decide(r *ShopAnswer) Decision {
	v, _, _ := rs.Match(r)
	return v
}

// Match applies the rules and returns the rule that decides, as written, and which of
// its words matched; empty: none does.
func (rs *Rules) Match(r *ShopAnswer) (v Decision, by, word string) {
	for i := range rs.list {
		rule := &rs.list[i]
		for _, when := range rule.when {
			switch when.test(r) {
			case yes:
				return rule.then, rule.text, when.word
			case maybe:
				return Undecided, rule.text, when.word
			}
		}
	}
	return rs.Otherwise, "", ""
}

// Unmatched says why no rule matches an answer, as the cause of its outcome: what its body is not, or the
// path that it lacks; empty: no rule takes its status and its values.
func (rs *Rules) Unmatched(r *ShopAnswer) (cause string) {
	if !rs.ReadsBody {
		return ""
	}
	document, problem := r.document()
	if problem != "" {
		return string(problem)
	}
	for _, path := range rs.paths {
		if found, whole := rs.read.At(document, path); whole && isAbsent(found) {
			return string(Missing(path))
		}
	}
	return ""
}

func compileTest(word string, matchers map[string]func(*ShopAnswer) trit) (func(*ShopAnswer) trit, error) {
	if name, ok := strings.CutPrefix(word, "@"); ok {
		m, ok := matchers[name]
		if !ok {
			return nil, fmt.Errorf("there is no answer @%s", name)
		}
		return m, nil
	}
	return statusTest(word)
}

func statusTest(word string) (func(*ShopAnswer) trit, error) {
	if len(word) == 3 && word[1:] == "xx" && word[0] >= '2' && word[0] <= '5' {
		return inClass(int(word[0] - '0')), nil
	}
	code, err := strconv.Atoi(word)
	if err != nil || code < 200 || code > 599 {
		return nil, fmt.Errorf("%q is neither a status (201) nor a class (2xx to 5xx) nor an @answer", word)
	}
	return func(r *ShopAnswer) trit { return tritOf(r.Status == code) }, nil
}

func inClass(class int) func(*ShopAnswer) trit {
	return func(r *ShopAnswer) trit { return tritOf(r.Status/100 == class) }
}

// compileAnswer compiles a test of answers, whose tests together read so much of arrays.
func compileAnswer(a AnswerMatcher, read jsonpath.Elements) (func(*ShopAnswer) trit, error) {
	if len(a.Status) == 0 && len(a.Header) == 0 && len(a.JSON) == 0 {
		return nil, fmt.Errorf("it tests nothing")
	}
	var all []func(*ShopAnswer) trit
	if len(a.Status) > 0 {
		var any []func(*ShopAnswer) trit
		for _, word := range a.Status {
			test, err := statusTest(word)
			if err != nil {
				return nil, err
			}
			any = append(any, test)
		}
		all = append(all, func(r *ShopAnswer) trit {
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
		test, err := jsonTest(t, read)
		if err != nil {
			return nil, err
		}
		all = append(all, test)
	}
	return func(r *ShopAnswer) trit {
		out := yes
		for _, test := range all {
			out = min(out, test(r))
		}
		return out
	}, nil
}

func headerTest(name string, want []string) func(*ShopAnswer) trit {
	return func(r *ShopAnswer) trit {
		for _, have := range r.Header.Values(name) {
			if len(want) == 0 {
				return yes
			}
			if slices.ContainsFunc(want, func(pattern string) bool { return matches(pattern, have) }) {
				return yes
			}
		}
		return no
	}
}
