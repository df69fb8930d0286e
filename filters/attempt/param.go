package attempt

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/stockgate/stockgate/filters/route"
)

// methodParam is the parameter by which frameworks let a form change the
// request's method. It would turn a gated route into another one.
const (
	methodParam = "_method"
	methodWhat  = "a request cannot change its method"
)

// maxPairs bounds the parameters of a query or a form, empty ones among them, and the cookies. PHP
// and others stop reading at 1,000, so only the gate would read the rest.
const maxPairs = 1000

// param is one name that a source reads from the query or the body. The same name must
// not appear anywhere else, whichever source reads it: frameworks merge the query with
// the body, and disagree on which of them counts.
type param struct {
	name   string
	folded string // as sameParam compares it
	label  string // what messages call it
	// inQuery, inForm, inJSON: where sources read it.
	inQuery, inForm, inJSON bool
	// slots receive the value; -1: no source of this kind reads the name.
	query, form, param int
	rows               rowsKind // the name is an array of a form with lines
}

// place is where parameters stand.
type paramLocation uint8

const (
	inQuery paramLocation = iota
	inForm
)

func (p paramLocation) String() string {
	if p == inQuery {
		return "the query"
	}
	return "the body"
}

// params reads the pairs of one query or urlencoded body. The masks have a bit
// for each name that was seen, in this place and in those before.
type params struct {
	names  []param
	folded string // of methodParam
	got    []found
	// query and form have a bit for each of names that was seen there.
	query, form uint64
	rows        *formRows // nil: no line is in an array of a form
	scratch     *scratch  // receives the lines
}

// read scans the pairs of a query or of a form. All of them must be well-formed,
// not only those of sources: a parser that gives up on one may drop others.
func (ps *params) read(where paramLocation, s string) fault {
	count := 0
	for s != "" {
		pair, name, simple := nextPair(s)
		s = s[min(len(pair)+1, len(s)):]
		if count++; count > maxPairs {
			return fault{where.String(), "it has more than 1000 parameters"}
		}
		if pair == "" {
			continue
		}
		value := pair[min(len(name)+1, len(pair)):]
		var f fault
		if simple {
			f = ps.simplePair(where, name, value)
		} else if what := badPair(where, pair); what != "" {
			return fault{where.String(), what}
		} else {
			f = ps.pair(where, name, value)
		}
		if f.bad() {
			return f
		}
	}
	return fault{}
}

// nextPair returns the text before the first &, and its name. simple: every parser
// reads it literally, because nothing in it is encoded or rewritten.
func nextPair(s string) (pair, name string, simple bool) {
	end, equals, seen := len(s), -1, uint8(0)
	for i := range len(s) {
		c := s[i]
		if c == '&' {
			end = i
			break
		}
		if c == '=' && equals < 0 {
			equals = i
		}
		seen |= pairBytes[c]
	}
	if equals < 0 {
		equals = end
	}
	return s[:end], s[:equals], seen == 0
}

// pairBytes has a bit for each byte that makes a pair other than simple.
var pairBytes = func() (odd [256]uint8) {
	for c := range odd {
		if c < ' ' || c >= 0x7f {
			odd[c] = 1
		}
	}
	for _, c := range ";#%+ .[]" {
		odd[c] = 1
	}
	return odd
}()

// badPair says what is wrong with the bytes of a pair; empty: nothing.
func badPair(where paramLocation, pair string) string {
	for i := 0; i < len(pair); i++ {
		switch pair[i] {
		case ';':
			return "a semicolon separates parameters for some parsers: send it as %3B"
		case '#':
			if where == inQuery {
				return "a number sign ends the query for some parsers: send it as %23"
			}
		case '%':
			if i+2 >= len(pair) {
				return badPercent
			}
			_, high := unhex(pair[i+1])
			_, low := unhex(pair[i+2])
			if !high || !low {
				return badPercent
			}
			i += 2
		}
	}
	return ""
}

const badPercent = "the percent-encoding is broken"

// decode undoes the encoding of a name or value whose escapes are valid.
func decode(s string) string {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s
	}
	d, err := url.QueryUnescape(s)
	if err != nil {
		return s
	}
	return d
}

// pair takes one pair, if a source reads its name.
func (ps *params) pair(where paramLocation, raw, value string) fault {
	return ps.named(where, raw, decode(raw), value)
}

// named takes the value of a name, which is raw before its decoding. Without raw the value is decoded, too.
func (ps *params) named(where paramLocation, raw, name, value string) fault {
	if !plain(name) {
		return fault{where.String(), "a parameter's name is not UTF-8 or holds a control character"}
	}
	if sameParam(name, ps.folded) {
		return fault{methodParam, methodWhat}
	}
	for i := range ps.names {
		p := &ps.names[i]
		if name == p.name {
			if escapesLetters(raw) { // nginx's $arg_ does not decode names
				return fault{p.label, "the name is encoded without need in " + where.String()}
			}
			if where == inQuery && !(isASCII(raw) && isASCII(value)) { // Werkzeug takes it for Latin-1
				return fault{p.label, "a byte beyond ASCII stands in the query: percent-encode it"}
			}
			return ps.take(where, i, valueOf(raw, value))
		}
		if !sameParam(name, p.folded) {
			continue
		}
		if p.rows == noRows || where != inForm || escapesLetters(raw) {
			return fault{p.label, "the name appears in another spelling in " + where.String()}
		}
		return ps.row(p, name, valueOf(raw, value))
	}
	if route.ReachesPrototype(name) {
		return fault{where.String(), prototypeWhat}
	}
	return fault{}
}

func valueOf(raw, value string) string {
	if raw == "" {
		return value
	}
	return decode(value)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// escapesLetters reports whether a percent-encoding stands for a byte that needs none.
func escapesLetters(raw string) bool {
	for i := 0; i+2 < len(raw); i++ {
		if raw[i] != '%' {
			continue
		}
		high, _ := unhex(raw[i+1])
		low, _ := unhex(raw[i+2])
		if isUnreserved(high<<4 | low) {
			return true
		}
		i += 2
	}
	return false
}

// simplePair is pair for one that is simple.
func (ps *params) simplePair(where paramLocation, name, value string) fault {
	if len(name) == len(ps.folded) && route.SameFold(name, ps.folded) {
		return fault{methodParam, methodWhat}
	}
	for i := range ps.names {
		p := &ps.names[i]
		if name == p.name {
			return ps.take(where, i, value)
		}
		if len(name) == len(p.folded) && route.SameFold(name, p.folded) { // ASCII only folds to ASCII
			return fault{p.label, "the name appears in another spelling in " + where.String()}
		}
	}
	if route.IsPrototype(name) {
		return fault{where.String(), prototypeWhat}
	}
	return fault{}
}

// take keeps the value of a source's name, if it may stand here.
func (ps *params) take(where paramLocation, i int, value string) fault {
	p, bit := &ps.names[i], uint64(1)<<i
	if p.rows != noRows {
		return fault{p.label, "it is not an array of a form here"}
	}
	if where == inQuery {
		if ps.query&bit != 0 {
			return fault{p.label, "the name appears twice"}
		}
		if !p.inQuery {
			return fault{p.label, "the name is in the query too"}
		}
		ps.query |= bit
		ps.put(p.query, value)
	} else {
		if ps.form&bit != 0 {
			return fault{p.label, "the name appears twice"}
		}
		if !p.inForm {
			return fault{p.label, "the name is in the body too"}
		}
		if ps.query&bit != 0 {
			return fault{p.label, "the name is in the query and in the body"}
		}
		ps.form |= bit
		ps.put(p.form, value)
	}
	ps.put(p.param, value)
	return fault{}
}

func (ps *params) put(slot int, value string) {
	if slot >= 0 {
		ps.got[slot] = found{present, value}
	}
}
