package probe

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/shopurl"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// InDoubt says what happens to a gate's holds when it is unknown whether the shop took the
// order. They are kept until the shop or an operator settles them; with Probe, the gate
// asks the shop itself.
type InDoubt struct {
	// Probe is the URL, http or https, at which the shop reports whether it has an order. The
	// gate follows no redirects. `{id}` is the reservation's id, `{ref}` the
	// shop's own name of the order; both are escaped for their position. Other placeholders,
	// such as {env.SHOP}, are filled in when the configuration loads. If the URL or the Body has {ref},
	// a hold without a ref is not asked about; if {ref} is in the path, neither is a hold
	// whose ref another server could read as several segments. Default: keep, do not ask.
	Probe string `json:"probe,omitempty"`
	// Method is GET or POST. A POST needs a confirm and a release rule: shops answer it with 200 whether or
	// not they have the order. Default: GET.
	Method string `json:"method,omitempty"`
	// Body is a JSON object, of a POST. In strings of it may stand {id} and {ref}; all other braces but {env.…}
	// and {file.…} are literal. Default: none.
	Body string `json:"body,omitempty"`
	// Rules decide by the answer; the first that matches counts, and they may name the
	// gate's Answers. confirm: the shop has the order. release: the shop does not have it,
	// which counts only if the question came after the hold's deadline, and twice. Without a
	// confirm rule 200 confirms, without a release rule 404 releases. After any other
	// answer, or none, the shop is asked again.
	Rules []outcome.Rule `json:"rules,omitempty"`
	// Every is the wait after the first question, at least 100ms and `timeout`; it doubles with each. Default: 5s.
	Every caddy.Duration `json:"every,omitempty"`
	// Longest is the longest wait. Default: 5m, or `every` if that is longer.
	Longest caddy.Duration `json:"longest,omitempty"`
	// Tries is how often the shop is asked about a hold, 2 to 1,000; then it stays in doubt. Default: 20.
	//
	// They must last beyond the deadline of a hold that is in doubt from its first moment.
	Tries int `json:"tries,omitempty"`
	// Timeout bounds one question with its answer. Default: 5s.
	Timeout caddy.Duration `json:"timeout,omitempty"`
	// Header is sent with each question, such as an API key.
	//
	// Values may be or contain placeholders such as {env.SHOP_KEY}, which stay out of config dumps.
	Header map[string]string `json:"header,omitempty"`
}

const (
	defaultProbeEvery   = 5 * time.Second
	defaultProbeLongest = 5 * time.Minute
	defaultProbeTries   = 20
	defaultProbeTimeout = 5 * time.Second
	leastProbeEvery     = 100 * time.Millisecond
	leastProbeTries     = 2 // absent counts twice
	mostProbeTries      = 1000
	mostProbeWait       = 24 * time.Hour
)

// conflict reports options that have no use without a URL.
func (d *InDoubt) conflict() error {
	if d.Probe == "" && (d.Method != "" || d.Body != "" || len(d.Rules) > 0 || d.Every != 0 || d.Longest != 0 || d.Tries != 0 || d.Timeout != 0 || len(d.Header) > 0) {
		return errors.New("in_doubt: no URL to ask: write `in_doubt probe <url>`")
	}
	switch {
	case d.Method != "" && d.Method != http.MethodGet && d.Method != http.MethodPost:
		return fmt.Errorf("in_doubt: the method %q: there are GET and POST", d.Method)
	case d.Body != "" && d.Method != http.MethodPost:
		return errors.New("in_doubt: a GET has no body: write `in_doubt probe POST <url> <body>`")
	case d.Method == http.MethodPost && !(d.decides("confirm") && d.decides("release")):
		return errors.New("in_doubt: a probe by POST needs confirm and release, because shops answer it with 200 whether or not they have the order: say what the answer means, such as `confirm @there` and `release @gone`")
	}
	return nil
}

// decides reports whether a rule has this outcome.
func (d *InDoubt) decides(then string) bool {
	return slices.ContainsFunc(d.Rules, func(r outcome.Rule) bool { return r.Outcome == then })
}

// Gate is the gate whose holds a probe is about.
type Gate struct {
	Name    string
	ByRef   bool // it reads a ref
	HoldFor time.Duration
	Answers map[string]outcome.AnswerMatcher
	// MaxAnswer is how many bytes of an answer are read. Default: outcome.DefaultMaxBody.
	MaxAnswer int
	Log       *zap.Logger
}

// Compile makes the probe of a gate; nil: the gate has none.
func (d *InDoubt) Compile(g *Gate) (*Probe, error) {
	p, err := d.prepare(g)
	if err != nil || p == nil {
		return nil, err
	}
	if err := p.compileQuestion(d, g); err != nil {
		return nil, err
	}
	if p.header, err = d.compileHeader(); err != nil {
		return nil, fmt.Errorf("in_doubt: %w", err)
	}
	p.client = shopurl.NewClient(probeAtOnce, maxHeader)
	return p, nil
}

// Check reports what Compile would, wherever the configuration loads; nil: there is no such option.
func (d *InDoubt) Check(g *Gate) error {
	if d == nil {
		return nil
	}
	p, err := d.prepare(g)
	if err != nil || p == nil || shopurl.NeedsEnvironment(d.Probe) || shopurl.NeedsEnvironment(d.Body) {
		return err
	}
	return p.compileQuestion(d, g)
}

// prepare makes a probe without its question.
func (d *InDoubt) prepare(g *Gate) (*Probe, error) {
	if err := d.conflict(); err != nil || d.Probe == "" {
		return nil, err
	}
	p := &Probe{gate: g.Name, log: g.Log, maxAnswer: cmp.Or(g.MaxAnswer, outcome.DefaultMaxBody)}
	var err error
	if p.rules, err = d.compileRules(g.Answers); err != nil {
		return nil, fmt.Errorf("in_doubt: %w", err)
	}
	if err := d.checkHeader(); err != nil {
		return nil, fmt.Errorf("in_doubt: %w", err)
	}
	p.timeout = cmp.Or(time.Duration(d.Timeout), defaultProbeTimeout)
	p.plan.Wait = cmp.Or(time.Duration(d.Every), defaultProbeEvery)
	p.plan.LongestWait = cmp.Or(time.Duration(d.Longest), max(defaultProbeLongest, p.plan.Wait))
	p.plan.Tries = cmp.Or(d.Tries, defaultProbeTries)
	p.plan.AtOnce = probeAtOnce
	if err := checkProbePlan(p.plan, p.timeout, g.HoldFor); err != nil {
		return nil, fmt.Errorf("in_doubt: %w", err)
	}
	return p, nil
}

func checkProbePlan(plan reservation.ProbePlan, timeout, holdFor time.Duration) error {
	switch {
	case timeout < 0 || timeout > time.Minute:
		return fmt.Errorf("timeout %v is outside 0 to 1m", timeout)
	case plan.Wait < leastProbeEvery || plan.Wait > mostProbeWait:
		return fmt.Errorf("every %v is outside %v to %v", plan.Wait, leastProbeEvery, mostProbeWait)
	case plan.Wait < timeout:
		return fmt.Errorf("every %v is shorter than the timeout %v: the shop would be asked again before it has answered", plan.Wait, timeout)
	case plan.LongestWait < plan.Wait || plan.LongestWait > mostProbeWait:
		return fmt.Errorf("longest %v is outside every (%v) to %v", plan.LongestWait, plan.Wait, mostProbeWait)
	case plan.Tries < leastProbeTries || plan.Tries > mostProbeTries:
		return fmt.Errorf("tries %d is outside %d to %d", plan.Tries, leastProbeTries, mostProbeTries)
	}
	// The last two questions must come after the deadline of a hold that is in doubt
	// from its first moment: no other answer releases it.
	until, wait := time.Duration(0), plan.Wait
	for range plan.Tries - leastProbeTries {
		until += wait
		wait = min(2*wait, plan.LongestWait)
		if until > holdFor {
			return nil
		}
	}
	return fmt.Errorf("%d tries are over before hold_for %v is, and only after it may the shop's no release a hold: raise tries, every or longest", plan.Tries, holdFor)
}

// compileRules compiles the rules with the defaults behind them.
func (d *InDoubt) compileRules(answers map[string]outcome.AnswerMatcher) (*outcome.Rules, error) {
	list := slices.Clone(d.Rules)
	for _, one := range []outcome.Rule{{Outcome: "confirm", When: []string{"200"}}, {Outcome: "release", When: []string{"404"}}} {
		if !d.decides(one.Outcome) {
			list = append(list, one)
		}
	}
	// Only the answers that rules name: the others may need bodies.
	named := make(map[string]outcome.AnswerMatcher)
	for _, r := range d.Rules {
		for _, word := range r.When {
			name, ok := strings.CutPrefix(word, "@")
			if a, there := answers[name]; ok && there {
				named[name] = a
			}
		}
	}
	return outcome.Compile(list, named, false)
}

// reservedHeaders are set by the HTTP client itself.
var reservedHeaders = map[string]bool{"Host": true, "Connection": true, "Content-Length": true, "Transfer-Encoding": true, "Trailer": true, "Upgrade": true, "Accept-Encoding": true}

// checkHeader checks the fields, but not what their placeholders stand for.
func (d *InDoubt) checkHeader() error {
	for _, name := range slices.Sorted(maps.Keys(d.Header)) {
		switch {
		case !isToken(name) || reservedHeaders[http.CanonicalHeaderKey(name)]:
			return fmt.Errorf("header %q is no field that can be set", name)
		case d.Header[name] == "":
			return fmt.Errorf("header %s has no value", name)
		}
	}
	return nil
}

func (d *InDoubt) compileHeader() (http.Header, error) {
	repl := caddy.NewReplacer()
	h := http.Header{"Accept-Encoding": {"identity"}, "User-Agent": {"stockgate"}}
	for name, value := range d.Header {
		text := repl.ReplaceKnown(value, "")
		switch {
		case text == "":
			return nil, fmt.Errorf("header %s is empty; is the variable or file that it names there?", name)
		case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return nil, fmt.Errorf("header %s has a control character in its value; does the file that it names end in a line break?", name)
		}
		h[http.CanonicalHeaderKey(name)] = []string{text}
	}
	return h, nil
}

// isToken reports whether text is a token (RFC 9110, section 5.6.2).
func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return text != ""
}

// Fingerprint is equal for gates that probe their holds in the same way.
func (d *InDoubt) Fingerprint(answers map[string]outcome.AnswerMatcher) string {
	if d == nil || d.Probe == "" {
		return "keep"
	}
	text, err := json.Marshal(struct {
		*InDoubt
		Answers map[string]outcome.AnswerMatcher
	}{d, answers})
	if err != nil {
		return err.Error() // strings, numbers and maps of them: it cannot fail
	}
	return string(text)
}
