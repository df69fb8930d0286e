package outcome

import "strings"

// Risks returns warnings about rules in which a status alone decides the contrary of what shops mean by it.
// answers are those that the rules may name.
func Risks(rules []Rule, answers map[string]AnswerMatcher) (risks []string) {
	for _, r := range rules {
		for _, word := range r.When {
			for _, status := range statusesAlone(word, answers) {
				if why := risk(r.Outcome, status); why != "" {
					risks = append(risks, r.Outcome+" "+word+": "+why)
				}
			}
		}
	}
	return risks
}

// statusesAlone are the statuses for which a word of a rule matches, whatever else an answer has.
func statusesAlone(word string, answers map[string]AnswerMatcher) []string {
	name, named := strings.CutPrefix(word, "@")
	if !named {
		return []string{word}
	}
	a := answers[name]
	if len(a.Header) > 0 || len(a.JSON) > 0 {
		return nil
	}
	return a.Status
}

// risk is why a status should not have an outcome; empty: it may.
func risk(outcome, status string) string {
	switch {
	case outcome == "confirm" && (strings.HasPrefix(status, "4") || strings.HasPrefix(status, "5")):
		return "with the status " + status + " shops say that they have not taken an order, whose units count as sold then: name in an @answer what else shows that it was taken"
	case outcome == "release" && strings.HasPrefix(status, "2"):
		return "with the status " + status + " shops say that they have taken an order, whose units go back on sale then: name in an @answer what else shows that it was refused"
	case outcome == "release" && mayStand[status]:
		return "after the status " + status + " an order may stand all the same, and its units go back on sale: leave it out, so that such an order is not taken for one that was refused"
	}
	return ""
}

// mayStand are the statuses that come, from a shop or from a proxy before it, also after an order was written.
// One that a shop sends on purpose, such as 503, is its own matter.
var mayStand = map[string]bool{"5xx": true, "500": true, "502": true, "504": true}
