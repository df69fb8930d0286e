package attempt

import (
	"fmt"
	"strings"

	"github.com/stockgate/stockgate/filters/route"
	"github.com/stockgate/stockgate/internal/sale"
)

// want is the JSON type that a node must have. null is as good as absent.
type want uint8

const (
	wantScalar want = iota // a string or a whole number: the value of a source
	wantObject
	wantArray
	wantAbsent // the name must not appear
)

// rowLen is how many fields of each element of the lines array are read: SKU
// and quantity.
const (
	rowLen      = 2
	rowSKU      = 0
	rowQuantity = 1
)

// node is one location in a JSON document that a source reads or passes through.
type node struct {
	label  string // what messages call it, such as "json.items.sku"
	want   want
	name   string // the member's name …
	folded string // … and its folded form
	index  int    // or the element's index; -1 for a member
	// kids are members or elements by index, at most 64 of them.
	kids []*node
	// each describes every element of the lines array.
	each *node
	// slot is where a scalar goes: in the row of its element, or in got.
	slot int
	row  bool
}

// member finds a name among the members of a node. -1: it is none of them;
// what: the name is wrong, whether or not it is found.
func (n *node) member(name []byte, escaped bool) (i int, what string) {
	if escaped {
		var space [64]byte
		var ok bool
		if name, ok = unescape(space[:0], name); !ok {
			return -1, "a name holds NUL or half of a surrogate pair"
		}
	}
	for i, kid := range n.kids {
		switch {
		case string(name) == kid.name:
			if kid.want == wantAbsent {
				return i, absentWhat(kid.label)
			}
			return i, ""
		case route.SameFold(name, kid.folded):
			return i, "the name appears in another spelling"
		}
	}
	if route.IsPrototype(name) {
		return -1, prototypeWhat
	}
	return -1, ""
}

func absentWhat(label string) string {
	if label == methodParam {
		return methodWhat
	}
	return "the name is in the body too"
}

// blame names a node's member in a message; -1: the node itself.
func (n *node) blame(i int) string {
	if i < 0 {
		return n.label
	}
	return n.kids[i].label
}

// element is the node of an array's element i, or nil.
func (n *node) element(i int) *node {
	if n.each != nil {
		return n.each
	}
	for _, kid := range n.kids {
		if kid.index == i {
			return kid
		}
	}
	return nil
}

// become fixes the type of a node, or fails if it already has another one.
func (n *node) become(w want) error {
	if n.want == w || n.want == wantScalar && n.slot < 0 && len(n.kids) == 0 {
		n.want = w
		return nil
	}
	return fmt.Errorf("%s: two values read it as different types", n.label)
}

// grow adds the nodes of a path below n and returns the last one.
func (n *node) grow(path []segment) (*node, error) {
	for _, seg := range path {
		w := wantObject
		if seg.index >= 0 {
			w = wantArray
		}
		if err := n.become(w); err != nil {
			return nil, err
		}
		if n.each != nil {
			return nil, fmt.Errorf("%s: the lines are read from it, so its elements cannot be values", n.label)
		}
		kid, err := n.kid(seg)
		if err != nil {
			return nil, err
		}
		n = kid
	}
	return n, nil
}

// kid finds or makes one child.
func (n *node) kid(seg segment) (*node, error) {
	for _, k := range n.kids {
		if k.name == seg.name && k.index == seg.index {
			return k, nil
		}
		if k.folded == route.Fold(seg.name) {
			return nil, fmt.Errorf("%s and %s differ only in case: no request could have both", k.label, n.join(seg.name))
		}
	}
	if len(n.kids) == 64 {
		return nil, fmt.Errorf("%s: more than 64 values are read from it", n.label)
	}
	k := &node{label: n.join(seg.name), name: seg.name, folded: route.Fold(seg.name), index: seg.index, slot: -1}
	n.kids = append(n.kids, k)
	return k, nil
}

// checkElements finds an array of which an element is read and one before it is not: all requests
// that have the one would be refused for the other.
func (n *node) checkElements() error {
	if n.each != nil {
		return n.each.checkElements()
	}
	for i, kid := range n.kids {
		if n.want == wantArray && n.element(i) == nil {
			return fmt.Errorf("%s: a later element is read and element %d is not, so every request that has both would be refused: read all elements from 0, or use `lines`", n.label, i)
		}
		if err := kid.checkElements(); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) join(name string) string {
	return n.label + "." + strings.ReplaceAll(name, ".", `\.`)
}

// addRow begins the fields of one more line.
func (s *scanner) addRow(n *node) bool {
	if len(s.rows) == rowLen*sale.MaxLines {
		return s.fail(n.label, "it has more than 50 elements")
	}
	s.rows = append(s.rows, found{}, found{})
	return true
}

func (s *scanner) keepString(n *node, raw []byte, escaped bool) bool {
	if n.want != wantScalar {
		return s.mistyped(n)
	}
	if !escaped {
		s.keep(n, found{present, s.text(raw)})
		return true
	}
	text, ok := unescape(make([]byte, 0, len(raw)), raw)
	if !ok {
		return s.fail(n.label, "it holds NUL or half of a surrogate pair")
	}
	s.keep(n, found{present, string(text)})
	return true
}

// keepNumber takes a number by its text. Beyond 2^53 it is no longer the same
// number everywhere: JavaScript and others read doubles (RFC 8259, section 6).
func (s *scanner) keepNumber(n *node, raw []byte, integer bool) bool {
	const largest = "9007199254740991" // 2^53 - 1
	if n.want != wantScalar || !integer {
		return s.mistyped(n)
	}
	if len(raw) > len(largest) || len(raw) == len(largest) && string(raw) > largest {
		return s.fail(n.label, "the number is above 2^53: send it as a string")
	}
	s.keep(n, found{present, s.text(raw)})
	return true
}

func (s *scanner) keepNull(n *node) bool {
	switch {
	case n.want == wantScalar:
		s.keep(n, found{state: null})
	case n.want == wantObject && n.index == eachIndex:
		return s.mistyped(n)
	default:
		s.nullBelow(n)
	}
	return true
}

// nullBelow notes which of the lines array and the SKU of a line are below a null: they are
// known to be nothing, and not missing.
func (s *scanner) nullBelow(n *node) {
	s.nulled = s.nulled || n.each != nil
	for _, kid := range n.kids {
		if kid.row && kid.slot == rowSKU {
			s.keep(kid, found{state: null})
		}
		s.nullBelow(kid)
	}
}

func (s *scanner) keep(n *node, f found) {
	if n.row {
		s.rows[len(s.rows)-rowLen+n.slot] = f
		return
	}
	s.got[n.slot] = f
}

func (s *scanner) mistyped(n *node) bool {
	switch n.want {
	case wantObject:
		return s.fail(n.label, "it is not an object")
	case wantArray:
		return s.fail(n.label, "it is not an array")
	default:
		return s.fail(n.label, "it is neither a string nor a whole number")
	}
}
