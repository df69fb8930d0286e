package attempt

import (
	"bytes"
	"mime"
	"net/http"
	"strings"

	"github.com/stockgate/stockgate/filters/route"
	"github.com/stockgate/stockgate/internal/sale"
)

// Reader reads attempts as one Spec says.
type Reader struct {
	sale, buyer, region []input
	identities          []identity
	rules               sale.IdentityRules
	lines               []lineSource
	rates               []rateKey
	ref, key            []input
	refShared           bool
	// rows is the lines array, if the lines are one; then its fields.
	rows, rowSKU, rowQuantity *node
	formRows                  *formRows // the array is in a form; nil: it is elsewhere
	rowsLookedUp              bool      // the array is in what a lookup answers
	argument                  string    // the path that Env.Argument is given; empty: rows are elsewhere

	// What fills the slots.
	headers, cookies, paths []source
	params                  []param
	root                    *node
	// jsonName maps the root's members to params; -1: no source reads it.
	jsonName []int
	slots    int
	// bearer is where the bearer token is; claims are those of its claims that are
	// sources.
	bearer       input
	bearerCookie bool
	claims       *node
	// looked has the sources in what a lookup answers.
	looked *node

	method      string // methodParam as sameParam compares it
	needs       Needs
	headersRead nameSet
	maxBody     int64
	// bodyIgnored: the shop does not read the body of an order, so it may say anything.
	bodyIgnored bool
}

// Env is what the caller knows about a request.
type Env struct {
	// ClientIP is the client's address: {client_ip}.
	ClientIP string
	// Replace fills in the placeholders of a text. It is called once for each
	// such value, and what it returns is taken as it is. nil: all are empty.
	Replace func(string) string
	// Claims verifies the request's bearer token and returns its claims, one JSON
	// object, or why the attempt is refused. It is called at most once, when
	// nothing else of the request is malformed as far as it has been read. nil:
	// there are no claims.
	Claims func(token string) ([]byte, *sale.Refusal)
	// Argument returns the list at a path of the arguments of the request's operation, as one
	// JSON value. ok is false where it has none that can be read. nil: there is none.
	Argument func(path string) (list []byte, ok bool)
}

// Needs returns the parts of a request that the reader's values read.
func (rd *Reader) Needs() Needs { return rd.needs }

// MaxBody is how many bytes a body may have.
func (rd *Reader) MaxBody() int64 { return rd.maxBody }

// ReadBody is ReadBody with the Spec's bound.
func (rd *Reader) ReadBody(r *http.Request) ([]byte, *sale.Refusal, error) {
	return ReadBody(r, rd.maxBody)
}

// Read reads the attempt. body is what ReadBody returned. A refusal is malformed, the one of Env.Claims,
// no_cart for an empty lines array, no_buyer, unknown_sale for an id that no sale can have, or quantity,
// in this order. Unless it is malformed the attempt is returned too, as far as it could be read. For a
// reader with values of a lookup use ReadRequest.
func (rd *Reader) Read(r *http.Request, body []byte, env Env) (sale.Attempt, *sale.Refusal) {
	var a sale.Attempt
	no := rd.read(&a, r, body, env, false)
	return a, no
}

// Borrow is Read for a caller that is done with the attempt before the memory of
// request and body is reused: the attempt shares that memory. It also reuses into's
// memory and overwrites what it held. Print, which only a call of Redis needs, stays empty.
func (rd *Reader) Borrow(into *sale.Attempt, r *http.Request, body []byte, env Env) *sale.Refusal {
	clear(into.Identities)
	*into = sale.Attempt{Lines: into.Lines[:0], Identities: into.Identities, RateKeys: into.RateKeys[:0]}
	return rd.read(into, r, body, env, true)
}

func (rd *Reader) read(a *sale.Attempt, r *http.Request, body []byte, env Env, borrow bool) *sale.Refusal {
	sc := takeScratch(rd.slots)
	sc.borrow = borrow
	defer sc.giveBack()
	refusal := rd.gather(r, body, sc, &env)
	if refusal != nil && refusal.Reason == sale.Malformed {
		return refusal
	}
	no := rd.compose(a, sc, &env)
	if no != nil && no.Reason == sale.Malformed {
		*a = sale.Attempt{}
		return no
	}
	if a.Key != "" && !borrow {
		a.Print = printOf(r, body)
	}
	if refusal != nil {
		return refusal
	}
	return no
}

// gather reads all sources that are in the request and its token.
func (rd *Reader) gather(r *http.Request, body []byte, sc *scratch, env *Env) *sale.Refusal {
	if f := rd.fill(r, body, sc); f.bad() {
		return f.refusal()
	}
	if f := rd.readArgument(sc, env); f.bad() {
		return f.refusal()
	}
	return rd.readClaims(sc, env)
}

// fill reads the sources in the request itself.
func (rd *Reader) fill(r *http.Request, body []byte, sc *scratch) fault {
	if f := rd.readHeaders(r.Header, sc.got); f.bad() {
		return f
	}
	if f := rd.readCookies(r.Header["Cookie"], sc.got); f.bad() {
		return f
	}
	if f := rd.readPath(r, sc.got); f.bad() {
		return f
	}
	ps := params{names: rd.params, folded: rd.method, got: sc.got, rows: rd.formRows, scratch: sc}
	if f := ps.read(inQuery, r.URL.RawQuery); f.bad() {
		return f
	}
	return rd.readBody(r.Header, body, &ps, sc)
}

// readBody reads a body by its type. Types that no source reads are checked too where
// frameworks would merge their names with the query's.
func (rd *Reader) readBody(h http.Header, body []byte, ps *params, sc *scratch) fault {
	if len(body) == 0 || rd.bodyIgnored {
		return rd.queryCharset(h)
	}
	m, f := mediaOf(h)
	if f.bad() {
		return f
	}
	switch m {
	case mediaNone:
		return fault{contentType, "a body needs one: some frameworks take it for a form without"}
	case mediaJSON, mediaJSONLike:
		if m == mediaJSONLike && rd.needs.Has(NeedBody) || !rd.reads(NeedJSON) {
			return rd.wrongType()
		}
		return rd.readJSON(body, ps, sc)
	case mediaForm:
		if !rd.reads(NeedForm) {
			return rd.wrongType()
		}
		if bytes.HasPrefix(body, byteOrderMark) {
			return fault{"the body", markWhat}
		}
		if f := ps.read(inForm, sc.text(body)); f.bad() {
			return f
		}
		return ps.endRows()
	case mediaMultipart:
		if rd.needs.Has(NeedForm) {
			return ps.readMultipart(h[contentType][0], body)
		}
		if rd.needs.Has(NeedBody) {
			return rd.wrongType()
		}
		if what := MultipartBody(h[contentType][0], body, func(part FormPart) string { return rd.misplaced(part.Name) }); what != "" {
			return fault{"the body", what}
		}
	default:
		if rd.needs.Has(NeedBody) {
			return rd.wrongType()
		}
		// A lenient parser would find the query's names in it.
		if len(rd.params) > 0 {
			return fault{contentType, "a body of this type could carry the query's names too: send JSON or a form, or configure `body ignored`"}
		}
	}
	return fault{}
}

// queryCharset refuses a charset that would be the query's too: Django decodes the query
// by the Content-Type, body or none.
func (rd *Reader) queryCharset(h http.Header) fault {
	if !rd.needs.Has(NeedQuery) || len(h[contentType]) == 0 {
		return fault{}
	}
	value := h[contentType][0]
	if !strings.Contains(strings.ToLower(value), "charset") {
		return fault{}
	}
	if _, attrs, err := mime.ParseMediaType(value); err != nil || !IsUTF8(attrs["charset"]) {
		return fault{contentType, "the charset is not utf-8"}
	}
	return fault{}
}

// reads tells whether a body may be of a kind: a source reads that kind, or
// none reads the body at all.
func (rd *Reader) reads(kind Needs) bool {
	return rd.needs.Has(kind) || !rd.needs.Has(NeedBody)
}

func (rd *Reader) wrongType() fault {
	switch rd.needs & NeedBody {
	case NeedJSON:
		return fault{contentType, "the body must be application/json"}
	case NeedForm:
		return fault{contentType, "the body must be application/x-www-form-urlencoded or multipart/form-data"}
	}
	return fault{contentType, "the body must be application/json, application/x-www-form-urlencoded or multipart/form-data"}
}

// readJSON reads a JSON body and compares its names with the query's.
func (rd *Reader) readJSON(body []byte, ps *params, sc *scratch) fault {
	s := scanner{data: body, scratch: sc}
	if !s.document(rd.root, rd.needs.Has(NeedJSON)) {
		return s.fault
	}
	for i, at := range rd.jsonName {
		if at >= 0 && s.root&(1<<i) != 0 && ps.query&(1<<at) != 0 {
			return fault{rd.params[at].label, "the name is in the query and in the body"}
		}
	}
	return fault{}
}

// misplaced says what is wrong with the name of a field in a body that no source
// reads: frameworks would merge it with the query's. Empty: nothing is.
func (rd *Reader) misplaced(name string) string {
	if route.ReachesPrototype(name) {
		return prototypeWhat
	}
	if sameParam(name, rd.method) {
		return methodWhat
	}
	for i := range rd.params {
		if sameParam(name, rd.params[i].folded) {
			return "it has a field by a name that the query has"
		}
	}
	return ""
}
