package shop

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The rules, by name. Those that end a request exclude each other.
const (
	ruleDelay      = "delay"       // wait, then go on
	ruleDelayAfter = "delay-after" // write the order, wait, then go on
	ruleStatus     = "status"      // answer this status, no order
	ruleCode500    = "code500"     // answer 200 {"code":500}, no order
	ruleHang       = "hang"        // no answer, no order, until the client leaves or the shop closes
	ruleDropBefore = "drop-before" // close the connection, no order
	rulePanic      = "panic"       // the handler panics, no order
	rule500After   = "500-after"   // write the order, answer 500
	ruleDropAfter  = "drop-after"  // write the order, close the connection
	ruleDieAfter   = "die-after"   // write the order, end the process, close the connection
	ruleRedirect   = "redirect"    // write the order, answer 302
)

// maxDelay bounds delay and delay-after.
const maxDelay = 10 * time.Minute

// rule is one way to misbehave.
type rule struct {
	name        string
	wait        time.Duration // of delay and delay-after
	status      int           // of status
	probability float64
}

// rules are the rules of SetMisbehaviour, as text and parsed.
type rules struct {
	text string
	list []rule
}

// plan is the effect of the rules on one request.
type plan struct {
	delay, delayAfter time.Duration
	refuse            *answer // a decision not to sell
	end               rule    // how the request ends otherwise; zero: well
}

// SetMisbehaviour replaces the rules: comma-separated, each a name, with
// "=argument" where it has one, and ":probability" (default 1):
//
//	delay=200ms        wait before the order is written, even if the client leaves
//	delay-after=200ms  wait after it is written
//	status=409         answer 400 to 599, no order
//	code500            answer 200 {"code":500}, no order
//	hang               no answer, no order
//	drop-before        close the connection, no order
//	panic              panic, no order
//	500-after          write the order, answer 500
//	drop-after         write the order, close the connection without an answer
//	die-after          write the order, end the process
//	redirect           write the order, answer 302
//
// Every rule throws its dice for every order. Delays add up; of the others the
// first that hits decides: "delay=50ms:0.5,500-after:0.2,hang:0.1". "" and
// "none" mean a well-behaved shop. A status below 500 and code500 are
// decisions: that reservation is never sold afterwards, and one that has an
// order already gets the order's answer instead.
func (s *Shop) SetMisbehaviour(text string) error {
	parsed, err := s.parseRules(text)
	if err != nil {
		return err
	}
	s.rules.Store(parsed)
	return nil
}

func (s *Shop) parseRules(text string) (*rules, error) {
	text = strings.TrimSpace(text)
	parsed := &rules{text: text}
	if text == "" || text == "none" {
		parsed.text = "none"
		return parsed, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		one, err := parseRule(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("misbehaviour %q: %w", strings.TrimSpace(part), err)
		}
		if one.name == ruleDieAfter && s.die == nil {
			return nil, fmt.Errorf("misbehaviour %q: this shop was not given a way to die", one.name)
		}
		parsed.list = append(parsed.list, one)
	}
	return parsed, nil
}

func parseRule(text string) (rule, error) {
	text, chance, hasChance := strings.Cut(text, ":")
	name, argument, hasArgument := strings.Cut(text, "=")
	r := rule{name: name, probability: 1}
	if hasChance {
		var err error
		if r.probability, err = strconv.ParseFloat(chance, 64); err != nil || !(r.probability >= 0 && r.probability <= 1) {
			return rule{}, fmt.Errorf("the probability %q is not a number from 0 to 1", chance)
		}
	}
	switch name {
	case ruleDelay, ruleDelayAfter:
		var err error
		if r.wait, err = time.ParseDuration(argument); err != nil || r.wait < 0 || r.wait > maxDelay {
			return rule{}, fmt.Errorf("write %s=200ms, at most %s", name, maxDelay)
		}
	case ruleStatus:
		var err error
		if r.status, err = strconv.Atoi(argument); err != nil || r.status < 400 || r.status > 599 {
			return rule{}, fmt.Errorf("write %s=409, from 400 to 599", name)
		}
	case ruleCode500, ruleHang, ruleDropBefore, rulePanic, rule500After, ruleDropAfter, ruleDieAfter, ruleRedirect:
		if hasArgument {
			return rule{}, fmt.Errorf("%s takes no argument", name)
		}
	default:
		return rule{}, fmt.Errorf("unknown: use delay, delay-after, status, code500, hang, drop-before, panic, 500-after, drop-after, die-after or redirect")
	}
	return r, nil
}

// plan throws the dice for one request.
func (s *Shop) plan(r *http.Request) (plan, error) {
	in := s.rules.Load()
	if text := r.Header.Get("X-Misbehave"); text != "" && s.allow {
		var err error
		if in, err = s.parseRules(text); err != nil {
			return plan{}, err
		}
	}
	var p plan
	ended := false
	for _, one := range in.list {
		// Thrown even where an earlier rule has decided: how many numbers a
		// request uses must not depend on what they are.
		hit := s.dice.hit(one.probability)
		switch {
		case !hit:
		case one.name == ruleDelay:
			p.delay += one.wait
		case one.name == ruleDelayAfter:
			p.delayAfter += one.wait
		case ended:
		case one.name == ruleCode500:
			ended, p.refuse = true, &answer{Status: http.StatusOK, Code: 500, Msg: "told to fail"}
		case one.name == ruleStatus && one.status < 500:
			ended, p.refuse = true, &answer{Status: one.status, Code: one.status, Msg: "told to refuse"}
		default:
			ended, p.end = true, one
		}
	}
	return p, nil
}

// dice gives the same numbers for the same seed.
type dice struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{rnd: rand.New(rand.NewPCG(seed, seed))} }

func (d *dice) hit(probability float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.Float64() < probability
}

func (s *Shop) serveMisbehave(w http.ResponseWriter, _ *http.Request) {
	io.WriteString(w, s.rules.Load().text+"\n")
}

func (s *Shop) changeMisbehave(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4096))
	if err == nil {
		err = s.SetMisbehaviour(string(text))
	}
	if err != nil {
		answer{Status: http.StatusBadRequest, Code: 400, Msg: err.Error()}.write(w)
		return
	}
	s.serveMisbehave(w, r)
}
