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

// Answer matches the shop's answer; everything given must match.
type Answer struct {
	// Status are codes (201) or classes (2xx), one of which must match.
	Status []string `json:"status,omitempty"`
	// Header fields must have one of these values; without values, the field must be present.
	Header map[string][]string `json:"header,omitempty"`
	// JSON are tests of the body.
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

// Reply is what is known of the shop's answer.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
	Whole  bool // Body is all of it
	// Ref is the order that the shop was asked about; empty: it was not asked about one.
	Ref string
}

// Rules decide what an answer means; the first that matches counts.
type Rules struct {
	list []rule
	// Otherwise is the decision where no rule matches, or where no answer came.
	Otherwise Decision
	// ReadsBody says that some rule tests the body.
	ReadsBody bool
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
	test func(*Reply) trit
}

// notRefused are the 4xx codes that do not prove that the order was refused: a conflict
// may be with the first try of the same order, a timeout may come after the order was
// written, and 499 means that the client left.
var notRefused = map[int]bool{http.StatusRequestTimeout: true, http.StatusConflict: true, 499: true}

// Compile compiles a gate's rules, with the defaults behind them; there are none
// where the shop decides later.
func Compile(list []Rule, answers map[string]Answer, backend bool) (*Rules, error) {
	out := &Rules{Otherwise: InDoubt}
	if backend {
		out.Otherwise = Keep
	}
	matchers := make(map[string]func(*Reply) trit, len(answers))
	read := jsonPaths(slices.Collect(maps.Values(answers))...)
	for name, a := range answers {
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
		out.list = append(out.list, rule{Release, []ruleTest{{"4xx", func(r *Reply) trit {
			return tritOf(r.Status/100 == 4 && !notRefused[r.Status])
		}}}, "release 4xx except 408, 409 and 499, by default"})
	}
	return out, nil
}

// CompileAnswer returns a test of one answer. known is false while more of it must be seen, and where an
// array has more elements than the test reads.
func CompileAnswer(a Answer) (func(*Reply) (matches, known bool), error) {
	test, err := compileAnswer(a, jsonPaths(a))
	if err != nil {
		return nil, err
	}
	return func(r *Reply) (matches, known bool) {
		t := test(r)
		return t == yes, t != maybe
	}, nil
}

// Decide applies the rules.
func (rs *Rules) Decide(r *Reply) Decision {
	v, _, _ := rs.Match(r)
	return v
}

// Match applies the rules and returns the rule that decides, as written, and which of
// its words matched; empty: none does.
func (rs *Rules) Match(r *Reply) (v Decision, by, word string) {
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

func compileTest(word string, matchers map[string]func(*Reply) trit) (func(*Reply) trit, error) {
	if name, ok := strings.CutPrefix(word, "@"); ok {
		m, ok := matchers[name]
		if !ok {
			return nil, fmt.Errorf("there is no answer @%s", name)
		}
		return m, nil
	}
	return statusTest(word)
}

func statusTest(word string) (func(*Reply) trit, error) {
	if len(word) == 3 && word[1:] == "xx" && word[0] >= '2' && word[0] <= '5' {
		return inClass(int(word[0] - '0')), nil
	}
	code, err := strconv.Atoi(word)
	if err != nil || code < 200 || code > 599 {
		return nil, fmt.Errorf("%q is neither a status (201) nor a class (2xx to 5xx) nor an @answer", word)
	}
	return func(r *Reply) trit { return tritOf(r.Status == code) }, nil
}

func inClass(class int) func(*Reply) trit {
	return func(r *Reply) trit { return tritOf(r.Status/100 == class) }
}

// compileAnswer compiles a test of answers, whose tests together read so much of arrays.
func compileAnswer(a Answer, read jsonpath.Elements) (func(*Reply) trit, error) {
	if len(a.Status) == 0 && len(a.Header) == 0 && len(a.JSON) == 0 {
		return nil, fmt.Errorf("it tests nothing")
	}
	var all []func(*Reply) trit
	if len(a.Status) > 0 {
		var any []func(*Reply) trit
		for _, word := range a.Status {
			test, err := statusTest(word)
			if err != nil {
				return nil, err
			}
			any = append(any, test)
		}
		all = append(all, func(r *Reply) trit {
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
	return func(r *Reply) trit {
		out := yes
		for _, test := range all {
			out = min(out, test(r))
		}
		return out
	}, nil
}

func headerTest(name string, want []string) func(*Reply) trit {
	return func(r *Reply) trit {
		for _, have := range r.Header.Values(name) {
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
