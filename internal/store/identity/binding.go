package identity

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/sale"
)

// Key is the binding field of a buyer's idempotency key. It does not reveal the key.
func (s *Secret) Key(buyer, key string) string {
	var field [KeyLength]byte
	return string(s.AppendKey(field[:0], buyer, key))
}

// AppendKey appends Key, which is KeyLength bytes long, to b.
func (s *Secret) AppendKey(b []byte, buyer, key string) []byte {
	var room [identityRoom]byte
	return s.appendHash(append(b, KeyField...), append(appendBuyer(s.begin(room[:0], "key"), buyer), key...))
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

// KeyLength is the length of the binding field of an idempotency key.
const KeyLength = len(KeyField) + hashLength
