package judge

import (
	"net/http"

	"github.com/stockgate/stockgate/internal/sale"
)

// rules is the order in which attempts are judged, and the only place that has it. Gates and checks walk all of
// it, the listener wrapper walks it from memory, and `caddy stockgate try` and gates in shadow walk it without
// counting. The first refusal is the answer. A test compares the names with the order in docs/filters.md.
var rules = []rule{
	// The rules of this edge come first. Their refusals reveal nothing about an order, and a flood of
	// repeats must cost neither Redis nor the shop anything, but for the lookup of a listed client in a
	// list in Redis.
	{name: "denylists", of: (*Judge).denies, needs: aRequest, judge: (*Judge).denied},
	{name: "rates of this edge", of: (*Judge).counts, needs: aRequest, counts: true, judge: (*Judge).takeRates, memory: (*Judge).foreseeRates, settle: (*Judge).settleRates},
	{name: "challenge", of: (*Judge).challenges, needs: aRequest, counts: true, judge: (*Judge).challenged, memory: (*Judge).foreseeChallenge, settle: (*Judge).settleChallenge},
	{name: "one at a time", of: (*Judge).TakesTurns, needs: aRequest, judge: (*Judge).TakeTurn, memory: (*Judge).leaves},

	// No flood of attempts may reach the shop: rules that need no cart come before the lookup.
	{name: "edge", of: (*Judge).looksUp, needs: aRequest, judge: (*Judge).reachedBeforeLookup, memory: (*Judge).leaves},
	{name: "shared rates", of: (*Judge).looksUp, needs: aRequest, counts: true, judge: (*Judge).takeShared, memory: (*Judge).leaves},
	{name: "sales", of: (*Judge).looksUp, needs: aRequest, judge: (*Judge).noneSells, memory: (*Judge).leaves},
	{name: "credentials", of: (*Judge).looksUp, needs: aRequest, judge: (*Judge).lacksCredentials, memory: (*Judge).leaves},
	{name: "denylists", of: (*Judge).looksUp, needs: aCart, judge: (*Judge).denied}, // the shop may have said who buys

	// A buyer who has bought must not get the answer that the sale has ended. Shared rates come behind,
	// so that a repeat costs one call to Redis and not two.
	{name: "edge", needs: aCart, judge: (*Judge).reached, memory: (*Judge).foreseeEdge},
	{name: "earlier purchase", of: (*Judge).sells, needs: aCart, judge: (*Judge).repeats, memory: (*Judge).goesOn},
	{name: "shared rates", of: (*Judge).countsShared, needs: aCart, counts: true, newOnly: true, judge: (*Judge).takeShared, memory: (*Judge).leaves},
	{name: "unlisted items", of: (*Judge).passesOthers, needs: aCart, judge: (*Judge).passUnlisted},
	{name: "sale", needs: aCart, newOnly: true, judge: (*Judge).chooseSale, memory: (*Judge).foreseeSale},
	{name: "sold out", needs: aCart, newOnly: true, judge: (*Judge).unitsGone, memory: (*Judge).foreseeUnits},
	{name: "late rates", of: (*Judge).counts, needs: aCart, counts: true, newOnly: true, judge: (*Judge).takeLate, memory: (*Judge).goesOn},
	{name: "token", of: (*Judge).sells, needs: aCart, judge: (*Judge).outgrowsToken, memory: (*Judge).goesOn},

	// The gate meets these when it takes a slot for the attempt, and when it asks Redis for the stock.
	{name: "in-flight slots", of: (*Judge).sells, needs: aCart, newOnly: true, memory: (*Judge).foreseeSlot},
	{name: "room at Redis", of: (*Judge).sells, needs: aCart, newOnly: true, memory: (*Judge).foreseeRoom},
}

// rule is a reason not to hold stock for an attempt.
type rule struct {
	name string
	// of reports whether a gate has the rule; nil: each has it.
	of func(*Judge) bool
	// needs is how much must have been read.
	needs knowledge
	// judge refuses an attempt. ends: the attempt is decided, and no further rule judges it. nil: the rule
	// is for memory only.
	judge func(*Judge, *http.Request, *Case) (no *sale.Refusal, ends bool)
	// memory is judge for an attempt whose request Caddy's server has not read: it counts nothing, and asks
	// neither Redis nor the shop. leave: only the gate can decide. nil: it is as judge.
	memory func(*Judge, *http.Request, *Foresight) (no *sale.Refusal, leave bool)
	// settle counts an attempt that was refused from memory by this or a later rule, and returns its
	// refusal. nil: the rule counts nothing.
	settle func(*Judge, *Foresight, *sale.Refusal) *sale.Refusal
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

// compileRules finds the rules of the judge.
func (j *Judge) compileRules() {
	set := &j.rules
	for _, one := range rules {
		switch {
		case one.of != nil && !one.of(j):
		case j.filters.Lookup != nil && one.needs == aRequest:
			set.beforeLookup = append(set.beforeLookup, one)
		default:
			set.rest = append(set.rest, one)
		}
	}
}

// walk judges an attempt by rules in their order.
func (j *Judge) walk(r *http.Request, p *Case, rules []rule) *sale.Refusal {
	for i := range rules {
		one := &rules[i]
		if one.judge == nil || one.counts && p.Purpose == Trying {
			continue
		}
		no, ends := one.judge(j, r, p)
		switch {
		case no != nil && one.newOnly && p.Earlier != nil && p.Named():
			return p.Earlier.Unless(r, no)
		case no != nil:
			p.Recheck.End()
			return no
		case ends:
			return nil
		}
	}
	return nil
}
