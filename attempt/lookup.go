package attempt

import (
	"strings"

	"github.com/stockgate/stockgate/sale"
)

// readLookup takes the sources that are in what the shop says about the attempt. What is
// wrong there is not the client's fault: the attempt is unavailable.
func (rd *Reader) readLookup(a *sale.Attempt, sc *scratch, env *Env) *sale.Refusal {
	if !rd.needs.Has(NeedLookup) {
		return nil
	}
	early := sale.Attempt{}
	if no := rd.composeEarly(&early, sc.got, env); no != nil {
		return no
	}
	if env.Lookup == nil {
		return &sale.Refusal{Reason: sale.Unavailable, Detail: "the shop cannot be asked about the order"}
	}
	document, no := env.Lookup(&early)
	if no != nil {
		*a = early
		return no
	}
	s := scanner{data: document, scratch: sc}
	if !s.document(rd.looked, true) {
		what := s.fault.input
		if what == "the body" {
			what = "the answer"
		}
		return env.unread(what + ": " + s.fault.what)
	}
	switch {
	case !rd.rowsLookedUp:
	case len(sc.rows) == 0:
		if !sc.listed && !sc.nulled {
			env.unread(rd.rows.label + ": it is not there")
		}
		*a = early
		return sale.Refuse(sale.NoCart)
	case !sc.namesItems():
		return env.unread(rd.rowSKU.label + ": no line has it")
	}
	return nil
}

// namesItems says whether any line says what its SKU is, be it null.
func (sc *scratch) namesItems() bool {
	for rows := sc.rows; len(rows) > 0; rows = rows[rowLen:] {
		if rows[rowSKU].state != absent {
			return true
		}
	}
	return false
}

// unread reports why what the shop says cannot be read. The client does not hear it: it says
// where the configuration reads.
func (env *Env) unread(why string) *sale.Refusal {
	if env.Unread != nil {
		env.Unread(why)
	}
	return &sale.Refusal{Reason: sale.Unavailable, Detail: UnreadLookup}
}

// UnreadLookup is the detail of the refusal where what the shop says cannot be read.
const UnreadLookup = "what the shop says about the order cannot be read"

// readArgument takes the lines from an argument of the operation.
func (rd *Reader) readArgument(sc *scratch, env *Env) fault {
	if rd.argument == "" {
		return fault{}
	}
	if env.Argument != nil {
		if list, ok := env.Argument(rd.argument); ok {
			s := scanner{data: list, scratch: sc}
			s.value(rd.rows, 0)
			return s.fault
		}
	}
	return fault{rd.rows.label, "it has no value that can be read here"}
}

// composeEarly composes what the request alone says.
func (rd *Reader) composeEarly(a *sale.Attempt, got []found, env *Env) *sale.Refusal {
	if f, label := first(rd.buyer, got, env); f.text != "" {
		if what := checkBuyer(f.text); what != "" {
			return malformed(label, what)
		}
		a.Buyer = f.text
	}
	if no := rd.identify(a, got, env); no != nil {
		return no
	}
	if no := rd.count(a, got, env); no != nil {
		return no
	}
	if no := rd.repeat(a, got, env); no != nil {
		return no
	}
	f, _ := first(rd.sale, got, env)
	if f.text != "" && checkSale(f.text) == "" {
		a.Sale = f.text
	}
	return nil
}

// addLookedUp adds one line of what the shop says. An item that has no SKU there, or one that
// no sale can list, has none here either: it is an unlisted item.
func (rd *Reader) addLookedUp(a *sale.Attempt, sku, quantity found) (over bool, _ *sale.Refusal) {
	n := int64(1)
	if rd.rowQuantity != nil {
		var ok bool
		if n, ok = parseQuantity(quantity.text); !ok {
			return false, malformed(rd.rowQuantity.label, quantityWhat)
		}
	}
	if checkItemName(sku.text) != "" {
		sku.text = ""
	}
	return mergeLine(a, sku.text, n), nil
}

// ofLookup turns a refusal of what the shop says into one of an attempt that cannot be judged
// now: the client has sent nothing wrong.
func ofLookup(no *sale.Refusal, env *Env) *sale.Refusal {
	if no != nil && no.Reason == sale.Malformed && strings.HasPrefix(no.Detail, "lookup.") {
		return env.unread(no.Detail)
	}
	return no
}
