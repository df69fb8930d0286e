package attempt

import (
	"slices"
	"strings"
)

// ScanJSON tells whether a body passes the scanner when no source reads it but
// an object is wanted.
func ScanJSON(body []byte) bool {
	s := scanner{data: body, scratch: new(scratch)}
	return s.document(nil, true)
}

// MaxDepth is how deep a JSON body may nest.
const MaxDepth = maxDepth

// PairAlike reports whether the first pair of a query is simple, and reads it in both ways
// then. alike: they give the same.
func (rd *Reader) PairAlike(query string) (simple, alike bool) {
	pair, name, simple := nextPair(query)
	if !simple {
		return false, true
	}
	before, value, _ := strings.Cut(pair, "=")
	if before != name || badPair(inQuery, pair) != "" || decode(pair) != pair {
		return true, false
	}
	short := params{names: rd.params, folded: rd.method, got: make([]found, rd.slots)}
	long := params{names: rd.params, folded: rd.method, got: make([]found, rd.slots)}
	f, g := short.simplePair(inQuery, name, value), long.pair(inQuery, name, value)
	return true, f == g && short.query == long.query && slices.Equal(short.got, long.got)
}
