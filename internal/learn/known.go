package learn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/internal/recipe"
)

// known is a shop whose configuration is tested.
type known struct {
	*recipe.Recipe
	text    string      // the configuration, with the addresses of the recording
	by      []*Exchange // requests by which the shop is known, the order first
	unknown []string    // requests to its API that these versions do not have
}

// leastKnown is how many kinds of requests a recording has of a known shop, beside the order.
const leastKnown = 2

// recognise looks for a shop whose configuration is tested. It must be the shop in all that the recording shows:
// what only resembles it is asked about.
func (l *learner) recognise() bool {
	for _, r := range recipe.All() {
		order := l.sent(l.order.Exchange)
		if !r.Resembles(order) {
			continue
		}
		k := &known{Recipe: r, by: []*Exchange{l.order.Exchange}}
		differs := l.differences(k, order)
		if len(differs) == 0 {
			l.plan.known = k
			return true
		}
		l.plan.lines = nil
		l.looks = fmt.Sprintf("The order request looks like one of %s, for which there is a tested configuration (docs/%s.md), but: %s. "+
			"So it was not taken. If the shop is %s %s, take it.", r.Name, r.ID, strings.Join(differs, "; "), r.Name, r.Versions)
	}
	return false
}

// askResembling asks about a shop that only resembles a known one.
func (l *learner) askResembling() {
	if l.looks != "" {
		l.question("Is this a known shop?", l.looks, "stockgate_guard")
	}
}

// sent describes a request for recipes.
func (l *learner) sent(x *Exchange) recipe.Sent {
	s := recipe.Sent{Method: x.Method, Path: x.segments()}
	if op, _ := l.documents.operation(x); op != nil && op.kind == "mutation" {
		s.Field, s.Arguments = op.field, op.arguments
	}
	return s
}

// differences says what is not as at the known shop, and collects the requests by which it is known.
func (l *learner) differences(k *known, order recipe.Sent) (found []string) {
	if !k.Places(order) {
		found = append(found, "its path is another one")
	}
	if !l.carries(k.Carries) {
		found = append(found, "it has none of these: "+strings.Join(k.Carries, ", "))
	}
	found = append(found, l.otherDoors(k)...)
	if len(k.by) <= leastKnown {
		found = append(found, "the recording has too few other requests of that shop")
	}
	if l.plan.lines = l.knownLines(k.Recipe); l.plan.lines == nil {
		found = append(found, "no answer before the order shows its items with their SKUs: record the product's page and the cart too")
	}
	return found
}

// otherDoors looks through all requests to the shop that may change something.
func (l *learner) otherDoors(k *known) (found []string) {
	seen := make(map[string]bool)
	for _, rec := range l.recordings {
		for _, x := range l.toHost(rec) {
			op, unknown := l.documents.operation(x)
			if unknown || op != nil && op.hashed {
				found = append(found, x.Name()+" sends the hash of a document")
			}
			s := l.sent(x)
			if unknown || !x.changes() || op != nil && op.kind == "query" || !k.Own(s) || seen[x.shown+" "+s.Field] {
				continue
			}
			seen[x.shown+" "+s.Field] = true
			switch {
			case l.isOrder(x):
			case k.Knows(s):
				k.by = append(k.by, x)
			case l.isRival(x):
				found = append(found, x.Name()+" looks like an order too, and these versions of the shop do not have it")
			default:
				k.unknown = append(k.unknown, x.Name())
			}
		}
	}
	return found[:min(len(found), 5)]
}

func (l *learner) isRival(x *Exchange) bool {
	op, _ := l.documents.operation(x)
	c := &candidate{Exchange: x, op: op}
	c.rate(l.site)
	return c.score >= leastScore
}

// carries reports whether the order has one of these: "header NAME", "cookie NAME".
func (l *learner) carries(any []string) bool {
	return slices.ContainsFunc(any, func(credential string) bool {
		kind, name, _ := strings.Cut(credential, " ")
		if kind == "cookie" {
			return l.order.cookies()[name] != ""
		}
		return l.order.Header.Get(name) != ""
	})
}
