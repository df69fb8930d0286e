package gate

import (
	"net/http"

	"github.com/stockgate/stockgate/sale"
)

// rules is the order in which attempts are judged, and the only place that has it: gates and checks walk
// it; the listener wrapper walks it from memory, and `caddy stockgate try` and gates in shadow without
// counting. The first refusal is the answer. docs/filters.md has it for operators.
var rules = []rule{
	// The rules of this edge come first. Their refusals reveal nothing about an order, and a flood of
	// repeats must cost neither Redis nor the shop anything, but for the lookup of a listed client in a
	// list in Redis.
	{name: "denylists", of: (*Gate).denies, needs: aRequest, judge: (*Gate).denied},
	{name: "rates of this edge", of: (*Gate).counts, needs: aRequest, counts: true, judge: (*Gate).takeRates, memory: (*Gate).foreseeRates, settle: (*Gate).settleRates},
	{name: "challenge", of: (*Gate).challenges, needs: aRequest, counts: true, judge: (*Gate).challenged, memory: (*Gate).foreseeChallenge, settle: (*Gate).settleChallenge},
	{name: "one at a time", of: (*Gate).takesTurns, needs: aRequest, judge: (*Gate).takeTurn, memory: (*Gate).leaves},

	// No flood of attempts may reach the shop: what is known without the cart comes before the lookup.
	{name: "edge", of: (*Gate).looksUp, needs: aRequest, judge: (*Gate).reachedBeforeLookup, memory: (*Gate).leaves},
	{name: "shared rates", of: (*Gate).looksUp, needs: aRequest, counts: true, judge: (*Gate).takeShared, memory: (*Gate).leaves},
	{name: "sales", of: (*Gate).looksUp, needs: aRequest, judge: (*Gate).noneSells, memory: (*Gate).leaves},
	{name: "credentials", of: (*Gate).looksUp, needs: aRequest, judge: (*Gate).lacksCredentials, memory: (*Gate).leaves},
	{name: "denylists", of: (*Gate).looksUp, needs: aCart, judge: (*Gate).denied}, // the shop may have said who buys

	// A buyer who has bought must not get the answer that the sale has ended. Shared rates come behind,
	// so that a repeat costs one call to Redis and not two.
	{name: "edge", needs: aCart, judge: (*Gate).reached, memory: (*Gate).foreseeEdge},
	{name: "earlier order", of: (*Gate).sells, needs: aCart, judge: (*Gate).repeats, memory: (*Gate).goesOn},
	{name: "shared rates", of: (*Gate).countsShared, needs: aCart, counts: true, newOnly: true, judge: (*Gate).takeShared, memory: (*Gate).leaves},
	{name: "unlisted items", of: (*Gate).passesOthers, needs: aCart, judge: (*Gate).passUnlisted},
	{name: "sale and allowlists", needs: aCart, newOnly: true, judge: (*Gate).chooseSale, memory: (*Gate).foreseeSale},
	{name: "units that are gone", needs: aCart, newOnly: true, judge: (*Gate).unitsGone, memory: (*Gate).foreseeUnits},
	{name: "late rates", of: (*Gate).counts, needs: aCart, counts: true, newOnly: true, judge: (*Gate).takeLate, memory: (*Gate).goesOn},
	{name: "token", of: (*Gate).sells, needs: aCart, judge: (*Gate).outgrowsToken, memory: (*Gate).goesOn},

	// The gate meets these when it takes a slot for the attempt, and when it asks Redis for the stock.
	{name: "in-flight slot", of: (*Gate).sells, needs: aCart, newOnly: true, memory: (*Gate).foreseeSlot},
	{name: "room at Redis", of: (*Gate).sells, needs: aCart, newOnly: true, memory: (*Gate).foreseeRoom},
}

// rule is a reason not to hold stock for an attempt.
type rule struct {
	name string
	// of reports whether a gate has the rule; nil: each has it.
	of func(*Gate) bool
	// needs is what the rule must know.
	needs knowledge
	// judge refuses an attempt. ends: the attempt is decided, and no further rule judges it. nil: the rule
	// is for memory only.
	judge func(*Gate, *http.Request, *purchase) (no *sale.Refusal, ends bool)
	// memory is judge for an attempt whose request Caddy's server has not read: it counts nothing, and asks
	// neither Redis nor the shop. leave: only the gate can decide. nil: it is as judge.
	memory func(*Gate, *http.Request, *Foresight) (no *sale.Refusal, leave bool)
	// settle counts an attempt that was refused from memory by this or a later rule, and returns its
	// refusal. nil: the rule counts nothing.
	settle func(*Gate, *Foresight, *sale.Refusal) *sale.Refusal
	// counts: the rule does nothing but count, and so is left out where nothing may be counted.
	counts bool
	// newOnly: an attempt that repeats an earlier one gets its answer instead of the refusal.
	newOnly bool
}

// knowledge is a stage of reading.
type knowledge uint8

const (
	aRequest knowledge = iota // what the request alone says
	aCart                     // what the attempt is about
)

// ruleSet are the rules of a gate: those that judge an attempt before its cart is looked up, and all others.
type ruleSet struct{ beforeLookup, rest []rule }

// compileRules finds the rules of the gate.
func (g *Gate) compileRules() (set ruleSet) {
	for _, one := range rules {
		switch {
		case one.of != nil && !one.of(g):
		case g.lookup != nil && one.needs == aRequest:
			set.beforeLookup = append(set.beforeLookup, one)
		default:
			set.rest = append(set.rest, one)
		}
	}
	return set
}

// walk judges an attempt by rules in their order.
func (g *Gate) walk(r *http.Request, p *purchase, rules []rule) *sale.Refusal {
	for i := range rules {
		one := &rules[i]
		if one.judge == nil || one.counts && p.purpose == trying {
			continue
		}
		no, ends := one.judge(g, r, p)
		switch {
		case no != nil && one.newOnly:
			return g.unlessRepeat(r, p, no)
		case no != nil:
			p.ask.End()
			return no
		case ends:
			return nil
		}
	}
	return nil
}
