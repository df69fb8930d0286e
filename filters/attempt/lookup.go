package attempt

import (
	"net/http"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/internal/sale"
)

// Reading is a request that was read as far as the request alone says what it is about. The rest is
// in the cart, which the shop tells.
type Reading struct {
	// Early is the attempt without its lines.
	Early   sale.Attempt
	reader  *Reader
	request *http.Request
	body    []byte
	env     Env
	inputs  scratch
}

// ReadRequest is Read for a reader with values of a lookup: it reads what the request alone says. A
// refusal is malformed, or comes from Env.Claims.
func (rd *Reader) ReadRequest(r *http.Request, body []byte, env Env) (*Reading, *sale.Refusal) {
	sc := takeScratch(rd.slots)
	defer sc.giveBack()
	if no := rd.gather(r, body, sc, &env); no != nil {
		return nil, no
	}
	g := &Reading{reader: rd, request: r, body: body, env: env}
	if no := rd.composeEarly(&g.Early, sc.got, &env); no != nil {
		return nil, no
	}
	g.inputs = scratch{got: slices.Clone(sc.got), rows: slices.Clone(sc.rows), listed: sc.listed, nulled: sc.nulled}
	return g, nil
}

// ReadCart reads the attempt, with what the shop says about its cart, one JSON object. It may be called
// again with another one. The refusals are those of Read, and unavailable where what the shop says
// cannot be read. unread is the fault in the document, which is not for the client; with no_cart, that it has no
// lines array. Empty: there is none.
func (g *Reading) ReadCart(document []byte) (a sale.Attempt, no *sale.Refusal, unread string) {
	rd, sc := g.reader, takeScratch(g.reader.slots)
	defer sc.giveBack()
	copy(sc.got, g.inputs.got)
	sc.rows, sc.listed, sc.nulled = append(sc.rows, g.inputs.rows...), g.inputs.listed, g.inputs.nulled
	s := scanner{data: document, scratch: sc}
	if !s.document(rd.looked, true) {
		what := s.fault.input
		if what == "the body" {
			what = "the answer"
		}
		return a, refuseUnread(), what + ": " + s.fault.what
	}
	switch {
	case !rd.rowsLookedUp:
	case len(sc.rows) == 0:
		if !sc.listed && !sc.nulled {
			unread = rd.rows.label + ": it is not there"
		}
		return g.Early, sale.Refuse(sale.NoCart), unread
	case !sc.namesItems():
		return a, refuseUnread(), rd.rowSKU.label + ": no line has it"
	}
	no = rd.compose(&a, sc, &g.env)
	switch {
	case no == nil || no.Reason != sale.Malformed:
	case strings.HasPrefix(no.Detail, "lookup."): // the client has sent nothing wrong
		no, unread = refuseUnread(), no.Detail
	default:
		return sale.Attempt{}, no, ""
	}
	if a.Key != "" {
		a.Print = printOf(g.request, g.body)
	}
	return a, no, unread
}

// namesItems reports whether any line says what its SKU is, be it null.
func (sc *scratch) namesItems() bool {
	for rows := sc.rows; len(rows) > 0; rows = rows[rowLen:] {
		if rows[rowSKU].state != absent {
			return true
		}
	}
	return false
}

// refuseUnread is the refusal where what the shop says cannot be read. The client does not hear why: that
// says where the configuration reads.
func refuseUnread() *sale.Refusal {
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
	if no := rd.buy(a, got, env); no != nil {
		return no
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
