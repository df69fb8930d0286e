package identity

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/sale"
)

// Key is the binding field of a buyer's idempotency key. It does not reveal the key.
func (s *Secret) Key(buyer, key string) string {
	var room [identityRoom]byte
	return s.hashText(KeyField, append(appendBuyer(s.begin(room[:0], "key"), buyer), key...))
}

// appendBuyer appends a buyer before another value. The length separates the end of the buyer
// from the beginning of the value.
func appendBuyer(b []byte, buyer string) []byte {
	return append(append(strconv.AppendInt(b, int64(len(buyer)), 10), ':'), buyer...)
}

// Single is the binding field of an attempt without a key: the same buyer and the same lines,
// in any order, give the same field.
func (s *Secret) Single(buyer string, lines []sale.Line) string {
	var room [identityRoom]byte
	b := appendBuyer(s.begin(room[:0], "single"), buyer)
	if len(lines) == 1 {
		b = append(append(b, lines[0].Cell()...), ' ')
		return s.hashText(SingleField, strconv.AppendInt(b, lines[0].Quantity, 10))
	}
	words := make([]string, len(lines))
	for i, l := range lines {
		words[i] = l.Cell() + " " + strconv.FormatInt(l.Quantity, 10)
	}
	slices.Sort(words)
	return s.hashText(SingleField, append(b, strings.Join(words, " ")...))
}

// Prefixes of the binding fields of idempotency keys, and of buyers and lines. These fields are
// not looked up before an attempt reserves.
const (
	KeyField    = "k|"
	SingleField = "d|"
)
