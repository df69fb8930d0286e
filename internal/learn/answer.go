package learn

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// findOutcome says what decides a reservation: the payment that follows, or the shop's answer.
func (l *learner) findOutcome() {
	if to := l.paymentPage(); to != nil {
		l.paysLater(to)
		return
	}
	if l.cart != nil && l.askOrder() {
		return
	}
	l.plan.confirms = true
	switch {
	case l.order.op != nil:
		l.graphQLAnswer()
	case l.order.Status >= 300 && l.order.Status < 400:
		l.redirectAnswer()
	case l.codeAnswer():
	default:
		l.statusAnswer()
	}
	l.shopsRefusal()
}

// answers writes the rules: tests that taken orders pass, and those that refused ones do.
func (l *learner) answers(taken, refused []string, why string) {
	p := l.plan
	p.add("@taken {\n\t"+strings.Join(taken, "\n\t")+"\n}", why)
	confirm := "confirm @taken"
	p.add(confirm, because("was taken", l.order.Exchange))
	if len(refused) == 0 {
		l.question("How does the shop refuse an order?", "No recording has an order that the shop refuses, so an answer that is neither @taken nor a 4xx leaves the units in doubt. "+
			"Give `learn` the recording of a refused order too, or write what its answer has: `@refused { … }` and `release @refused`.", confirm)
		return
	}
	p.add("@refused {\n\t"+strings.Join(refused, "\n\t")+"\n}", because("was refused", l.refused[0].Exchange))
	p.add("release @refused 400 401 403 404 422", because("was refused", l.refused[0].Exchange)+"; the codes say that HTTP refuses it")
	l.question("Are there other refusals?", "An answer that is neither @taken nor @refused leaves the units in doubt. Add the other codes with which the shop refuses an order.", "release @refused 400 401 403 404 422")
}

// redirectAnswer tells answers apart by where they lead.
func (l *learner) redirectAnswer() {
	test := func(x *Exchange) []string {
		return []string{"status " + strconv.Itoa(x.Status), "header Location " + l.whereTo(x)}
	}
	taken := test(l.order.Exchange)
	for _, c := range l.refused {
		if c.Status < 300 || c.Status >= 400 {
			continue
		}
		if refused := test(c.Exchange); refused[1] != taken[1] {
			l.answers(taken, refused, because("leads there", l.order.Exchange))
			return
		}
	}
	l.answers(taken, nil, because("leads there", l.order.Exchange))
}

// whereTo writes a Location, with * for what differs from order to order.
func (l *learner) whereTo(x *Exchange) string {
	to := &Exchange{URL: x.location()}
	if to.URL == nil {
		return "*"
	}
	pattern := to.pattern(l.hidden)
	if to.URL.RawQuery != "" && !strings.HasSuffix(pattern, "*") {
		pattern += "*"
	}
	if strings.HasPrefix(x.AnswerHeader.Get("Location"), "/") {
		return pattern
	}
	return "*" + pattern
}

// Names of fields, folded, that tell whether an order was taken.
var codeNames = []string{"code", "success", "ok", "status", "result", "errno", "errcode", "ret", "error", "state"}

// codeAnswer tells answers with the same status apart by a field at the root, or below one.
func (l *learner) codeAnswer() bool {
	tree := l.order.answerTree()
	path, value := l.codeIn(tree)
	if path == "" {
		return false
	}
	status := strconv.Itoa(l.order.Status)
	taken := []string{"status " + status, "json " + path + " " + value}
	var codes []string
	for _, c := range l.refused {
		code, _ := scalar(at(c.answerTree(), path))
		if code, ok := l.hidden.word(code); ok && c.Status == l.order.Status && code != value && !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	var refused []string
	if len(codes) > 0 {
		refused = []string{"json " + path + " " + strings.Join(codes, " ")}
	}
	l.answers(taken, refused, because("has this value", l.order.Exchange))
	return true
}

// codeIn finds the field that tells, best one that a refused answer has with another value.
func (l *learner) codeIn(tree any) (path, value string) {
	best := 1 << 10
	for _, leaf := range leavesOf(tree) {
		rank := slices.Index(codeNames, folded(leaf.name()))
		word, ok := l.hidden.word(leaf.text)
		if rank < 0 || !ok || len(leaf.path) > 2 || slices.ContainsFunc(leaf.path, isNumber) || !l.hidden.path(leaf.dotted()) || word == l.plan.ref {
			continue
		}
		if strings.Contains(folded(leaf.dotted()), "order") && folded(leaf.name()) == "code" {
			continue // a number of the order
		}
		rank += 20 * len(leaf.path)
		if len(l.refused) > 0 && !l.differs(leaf) {
			rank += 200
		}
		if rank < best {
			best, path, value = rank, leaf.dotted(), word
		}
	}
	return path, value
}

func (l *learner) differs(of leaf) bool {
	return slices.ContainsFunc(l.refused, func(c *candidate) bool {
		text, ok := scalar(at(c.answerTree(), of.dotted()))
		return ok && text != of.text
	})
}

// statusAnswer believes the status.
func (l *learner) statusAnswer() {
	status := strconv.Itoa(l.order.Status)
	line := "confirm " + status
	if l.order.LacksAnswer {
		l.question("What does the answer to an order say?", "The recording lacks its body, so only the status tells that the order was taken. Browsers drop bodies when a page is left: record with \"Preserve log\", or look "+
			"whether the answer has a code.", line)
	}
	l.plan.add(line, because("was answered with "+status, l.order.Exchange))
	if strings.HasPrefix(mediaType(l.order.AnswerHeader), "text/html") {
		l.question("What does the shop answer to an order that it refuses?", "It answers an order with a page and the status "+status+". If it shows refusals with the same status, they would count as sold: "+
			"then let the shop decide with `outcome backend`.", line)
	}
	for _, c := range l.refused {
		if c.Status < 400 || c.Status > 499 || c.Status == 408 || c.Status == 409 || c.Status == 499 {
			l.releaseStatus(c)
			return
		}
	}
	if len(l.refused) == 0 {
		l.question("How does the shop refuse an order?", "No recording has an order that the shop refuses. A 4xx, but for 408 and 409, releases the units; any other answer leaves them in doubt.", line)
	}
}

func (l *learner) releaseStatus(c *candidate) {
	if c.Status == l.order.Status || c.Status < 400 || c.Status == 408 {
		l.question("What tells a refused order from a taken one?", fmt.Sprintf("%s was refused, and its status and its JSON do not show it safely. Find a field that does, or let the shop decide with `outcome backend`.", c.Name()), "confirm "+strconv.Itoa(l.order.Status))
		return
	}
	codes := []string{"400", "401", "403", "404", "422"}
	if status := strconv.Itoa(c.Status); !slices.Contains(codes, status) {
		codes = append([]string{status}, codes...)
	}
	line := "release " + strings.Join(codes, " ")
	l.plan.add(line, because("was refused", c.Exchange))
	l.question("Are there other refusals?", "The recording has one of these codes; the others say that HTTP refuses a request. Any other answer leaves the units in doubt.", line)
}

// errorsInData are selections of documents whose answer may be an error of the shop's own.
var errorsInData = regexp.MustCompile(`\berrorCode\b|\buserErrors\b|\berrors\s*\{|\.\.\.\s*on\s`)

// graphQLAnswer reads only what clients cannot shape.
func (l *learner) graphQLAnswer() {
	inData := errorsInData.MatchString(l.order.op.document) || slices.ContainsFunc(leavesOf(l.order.answerTree()), func(leaf leaf) bool {
		name := folded(leaf.name())
		return len(leaf.path) > 1 && (name == "errorcode" || name == "usererrors")
	})
	hasErrors := func(c *candidate) bool { return at(c.answerTree(), "errors") != nil }
	if inData || slices.ContainsFunc(l.refused, func(c *candidate) bool { return !hasErrors(c) }) {
		l.plan.confirms, l.plan.backend = false, true
		l.plan.add("outcome backend", because("refusals are in the data, which clients shape", l.order.Exchange))
		l.question("How does the shop tell which orders it has taken?", "This server answers refusals in the data, whose names clients choose, so the answer decides nothing. "+
			"Let the shop call stockgate_api (docs/api.md), or ask it with `outcome ask` (docs/carts.md).", "outcome backend")
		return
	}
	l.plan.add("@taken {\n\tstatus 200\n\tjson !errors\n}", because("has no errors", l.order.Exchange))
	l.plan.add("confirm @taken", because("was taken", l.order.Exchange))
	l.question("Is every refusal in `errors`?", "A GraphQL server answers 200 also where it refuses. The gate takes an answer without `errors` for a sold order. If the shop reports refusals in the data, "+
		"let it decide with `outcome backend` or `outcome ask`. An answer with `errors` leaves the units in doubt, because an error behind the order does not undo it.", "confirm @taken")
}
