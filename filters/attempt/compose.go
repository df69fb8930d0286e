package attempt

import (
	"slices"
	"strings"

	"github.com/stockgate/stockgate/internal/sale"
)

// compose builds the attempt in a, reusing its memory. Malformed input is reported
// first: a request that cannot be read unambiguously has no buyer, sale or quantity
// either.
func (rd *Reader) compose(a *sale.Attempt, sc *scratch, env *Env) *sale.Refusal {
	got := sc.got
	if f, label := first(rd.region, got, env); f.text != "" {
		if what := checkItemName(f.text); what != "" {
			return malformed(label, what)
		}
		a.Region = f.text
	}
	if refusal := rd.buy(a, got, env); refusal != nil {
		return refusal
	}
	if refusal := rd.identify(a, got, env); refusal != nil {
		return refusal
	}
	if refusal := rd.count(a, got, env); refusal != nil {
		return refusal
	}
	if refusal := rd.repeat(a, got, env); refusal != nil {
		return refusal
	}
	tooMany, refusal := rd.order(a, sc, env)
	if refusal != nil {
		return refusal
	}
	if a.Buyer == "" && len(rd.buyer) > 0 {
		return sale.Refuse(sale.NoBuyer)
	}
	if f, _ := first(rd.sale, got, env); f.text != "" {
		if checkSale(f.text) != "" {
			return sale.Refuse(sale.UnknownSale)
		}
		a.Sale = f.text
	}
	if tooMany != "" {
		a.Lines = nil // no line of such a request may be sold
		return &sale.Refusal{
			Reason: sale.Quantity, SKU: tooMany,
			Detail: "the quantity: it is above 10000",
		}
	}
	return nil
}

// buy adds the buyer, in the form in which all that comes later knows them: limits, lists, refs and the token.
func (rd *Reader) buy(a *sale.Attempt, got []found, env *Env) *sale.Refusal {
	f, label := first(rd.buyer, got, env)
	if f.text == "" {
		return nil
	}
	buyer := f.text
	if rd.rules.IsEmail(buyer) {
		if buyer = rd.rules.Normalise("buyer", buyer); buyer == "" {
			return malformed(label, emailWhat)
		}
	}
	if what := checkBuyer(buyer); what != "" {
		return malformed(label, what)
	}
	a.Buyer = buyer
	return nil
}

// identify adds the identities that the request has.
func (rd *Reader) identify(a *sale.Attempt, got []found, env *Env) *sale.Refusal {
	for i := range rd.identities {
		id := &rd.identities[i]
		f, label := first(id.in, got, env)
		if what := checkIdentity(oneLine(f.text)); what != "" {
			return malformed(label, what)
		}
		// lists and limits use the same normal form
		text := rd.rules.Normalise(id.name, f.text)
		if text == "" && id.name == "email" && strings.TrimSpace(f.text) != "" {
			return malformed(label, emailWhat)
		}
		if text == "" {
			continue
		}
		if a.Identities == nil {
			a.Identities = make(map[string]string, len(rd.identities))
		}
		a.Identities[id.name] = text
	}
	return nil
}

// order adds the lines. tooMany is a SKU whose quantity is above
// sale.MaxQuantity; empty: there is none.
func (rd *Reader) order(a *sale.Attempt, sc *scratch, env *Env) (tooMany string, _ *sale.Refusal) {
	if rd.rows != nil {
		return rd.orderRows(a, sc)
	}
	got := sc.got
	a.Lines = slices.Grow(a.Lines[:0], len(rd.lines))
	none := false // a line has no units
	for i := range rd.lines {
		l := &rd.lines[i]
		sku, label := first(l.sku, got, env)
		quantity, qlabel := given(l.quantity, got, env)
		if l.lacksUnits(sku, quantity) {
			none = true
			continue
		}
		if sku.text == "" && (quantity.state == absent || allConstant(l.quantity)) && len(rd.lines) > 1 {
			continue // this line is not in the request
		}
		over, refusal := addLine(a, sku, label, quantity, qlabel)
		if refusal != nil {
			return "", refusal
		}
		a.AssumedOne = a.AssumedOne || quantity.state == absent && len(l.quantity) > 0 && l.absent == AbsentAssumed
		if over {
			tooMany = sku.text
		}
	}
	switch {
	case len(a.Lines) > 0:
	case none:
		return "", malformed("the order", noUnitsWhat)
	default:
		return "", malformed(rd.lines[0].sku[0].label, "it is missing")
	}
	return tooMany, nil
}

const noUnitsWhat = "no line of it has a quantity above 0"

// lacksUnits reports whether a request has no units of a line. For an item that the request names
// itself, a quantity of 0 is malformed. Of several values for the quantity, one behind an empty
// one may have it.
func (l *lineSource) lacksUnits(sku, quantity found) bool {
	none := isNone(quantity) && (quantity.text != "" || len(l.quantity) == 1)
	if l.constant {
		return none || quantity.state == absent && l.absent == AbsentIsNone
	}
	return none && sku.text == ""
}

// isNone reports whether a quantity is present and is 0 or empty, as forms send it for items that are
// not ordered.
func isNone(quantity found) bool {
	return quantity.state == present && (quantity.text == "" || quantity.text == "0")
}

// allConstant tells whether a value is fixed, so that it says nothing about
// whether a request has the line.
func allConstant(in []input) bool {
	for i := range in {
		if in[i].kind != Constant {
			return false
		}
	}
	return true
}

// orderRows adds the lines of the lines array.
func (rd *Reader) orderRows(a *sale.Attempt, sc *scratch) (tooMany string, _ *sale.Refusal) {
	rows := sc.rows
	if len(rows) == 0 && sc.listed {
		return "", sale.Refuse(sale.NoCart)
	}
	if len(rows) == 0 {
		return "", malformed(rd.rows.label, "there is no line in it")
	}
	quantityLabel := ""
	if rd.rowQuantity != nil {
		quantityLabel = rd.rowQuantity.label
	}
	a.Lines = slices.Grow(a.Lines[:0], len(rows)/rowLen)
	for ; len(rows) > 0; rows = rows[rowLen:] {
		if isNone(rows[rowQuantity]) {
			continue
		}
		var over bool
		var refusal *sale.Refusal
		if rd.rowsLookedUp {
			over, refusal = rd.addLookedUp(a, rows[rowSKU], rows[rowQuantity])
		} else {
			over, refusal = addLine(a, rows[rowSKU], rd.rowSKU.label, rows[rowQuantity], quantityLabel)
		}
		if refusal != nil {
			return "", refusal
		}
		a.AssumedOne = a.AssumedOne || rows[rowQuantity].state == absent && rd.rowQuantity != nil
		if over {
			tooMany = rows[rowSKU].text
		}
	}
	switch {
	case len(a.Lines) > 0:
	case rd.rowsLookedUp:
		return "", sale.Refuse(sale.NoCart)
	default:
		return "", malformed(rd.rows.label, noUnitsWhat)
	}
	return tooMany, nil
}

// addLine adds one line, to an equal one if there is any. over: that line's
// quantity is above sale.MaxQuantity.
func addLine(a *sale.Attempt, sku found, label string, quantity found, qlabel string) (over bool, _ *sale.Refusal) {
	if what := checkItemName(sku.text); what != "" {
		return false, malformed(label, what)
	}
	n := int64(1)
	if quantity.state != absent {
		var ok bool
		if n, ok = parseQuantity(quantity.text); !ok {
			return false, malformed(qlabel, quantityWhat)
		}
	}
	return mergeLine(a, sku.text, n), nil
}

// mergeLine adds units to the line of a SKU. over: it has more than sale.MaxQuantity.
func mergeLine(a *sale.Attempt, sku string, n int64) (over bool) {
	for i := range a.Lines {
		if l := &a.Lines[i]; l.SKU == sku {
			l.Quantity += n
			return l.Quantity > sale.MaxQuantity
		}
	}
	a.Lines = append(a.Lines, sale.Line{SKU: sku, Quantity: n, Region: a.Region})
	return n > sale.MaxQuantity
}

// first returns the first alternative that is not empty, else nothing under the
// first one's label.
func first(in []input, got []found, env *Env) (found, string) {
	for i := range in {
		if f := in[i].find(got, env); f.text != "" {
			return f, in[i].label
		}
	}
	if len(in) == 0 {
		return found{}, ""
	}
	return found{}, in[0].label
}

// given returns the first alternative that is present: an empty quantity, and null,
// differ from an absent one.
func given(in []input, got []found, env *Env) (found, string) {
	for i := range in {
		if f := in[i].find(got, env); f.state != absent {
			return f, in[i].label
		}
	}
	return found{}, ""
}

// find looks one alternative up.
func (in *input) find(got []found, env *Env) found {
	text := in.text
	switch in.kind {
	case Constant:
	case ClientIP:
		text = env.ClientIP
	case Text:
		text = ""
		if env.Replace != nil {
			text = env.Replace(in.text)
		}
	default:
		return got[in.slot]
	}
	if text == "" {
		return found{}
	}
	return found{present, text}
}
