package attempt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/internal/sale"
)

// DefaultMaxBody is how long a body may be unless a Spec says otherwise.
const DefaultMaxBody = 64 << 10

// Spec says where a gate finds what it needs in a request.
type Spec struct {
	// Sale is the sale's id. Optional; without it, the open sale that lists the items is used.
	Sale Values
	// Buyer is who buys. Required, unless Anonymous.
	Buyer Values
	// Anonymous: no buyer need be configured. If one is configured, every attempt must have it.
	Anonymous bool
	// Bearer is where the bearer token is. Required if a value reads a claim.
	Bearer *Bearer
	// Identities are further ways to recognise the person: phone, email, address,
	// device, ip. Optional, and optional in each request.
	Identities map[string]Values
	// Rules say which spellings of an identity are one person.
	Rules sale.IdentityRules
	// Region is where all lines are sold. Optional.
	Region Values
	// Line are the lines of an attempt, each with its own values. A line is left out where a
	// request has neither its SKU nor units of it, but at least one line must remain. Either
	// Line or Lines is required.
	Line []LineSpec
	// Lines are the lines of an attempt as an array in the body.
	Lines *Lines
	// Ref is the shop's own name of the order or cart, in the form of a SKU. Optional,
	// and optional in each request.
	Ref Values
	// RefShared: a ref names one order of the sale for all buyers. Default: each buyer
	// may have an order of that name.
	RefShared bool
	// Key is the idempotency key. Optional, and optional in each request.
	Key Values
	// Rates are where the keys of rates are found. Optional.
	Rates []RateKey
	// MaxBody is the largest body in bytes. Default: DefaultMaxBody.
	MaxBody int64
	// BodyIgnored: the shop does not read the body of an order, so its names cannot
	// contradict the query's and it is not checked. An error where a value reads the body.
	BodyIgnored bool
}

// RateKey is where the key of one rate is found.
type RateKey struct {
	// Key is optional in each request: attempts without it have the same, empty key. A value that
	// is also an identity counts in the identity's normal form.
	Key Values
	// IPv6Prefix is how many bits of an IPv6 address in {client_ip} count: a client
	// that has one address of a network usually has all of them. 0: the whole address.
	IPv6Prefix int
}

// LineSpec is where one line is found. A line of a constant SKU is in every request but those whose
// quantity is 0 or empty.
type LineSpec struct {
	SKU Values
	// Quantity is optional, and 1 where it is absent.
	Quantity Values
	// Absent is what it means that a request lacks the Quantity of a constant SKU: AbsentIsOne, or
	// AbsentIsNone. Default: one unit.
	Absent Absent
}

// Absent is what an absent quantity means.
type Absent uint8

const (
	AbsentAssumed Absent = iota // one unit: nothing says what the shop does
	AbsentIsOne                 // one unit: the shop sells one
	AbsentIsNone                // the request does not have the line
)

// Lines is an array with one object for each line, or two lists of a form.
type Lines struct {
	// Array is the array, of CompileArray: {json.items}, {lookup.items}, {graphql.inputs},
	// {form.items}, or the list of SKUs {form.sku[]}.
	Array Value
	// SKU and Quantity are paths inside an element, such as sku or
	// product.sku, in the form that a JSON value's path has. In an array of a form SKU may be KeyField:
	// the key of the element, as in quantity[A1]=2, and Quantity then ValueField. Of lists SKU is empty.
	SKU string
	// Quantity may be empty: each line is then for one unit. Of lists it is the list of quantities,
	// {form.quantity[]}.
	Quantity string
}

// The fields of an element that are the element itself.
const (
	KeyField   = "@key"
	ValueField = "@value"
)

// identities are the names that an identity may have; the buyer is apart.
var identities = []string{"phone", "email", "address", "device", "ip"}

// NewReader checks a Spec and compiles it.
func NewReader(spec Spec) (*Reader, error) {
	c := newCompiler(spec)
	rd := c.reader
	rd.rules = spec.Rules
	if len(spec.Buyer) == 0 && !spec.Anonymous {
		return nil, errors.New("buyer: say where the buyer is found, such as {http.auth.user.id}")
	}
	var err error
	if rd.buyer, err = c.values("buyer", spec.Buyer, checkBuyer); err != nil {
		return nil, err
	}
	if rd.sale, err = c.values("sale", spec.Sale, checkSale); err != nil {
		return nil, err
	}
	if rd.region, err = c.values("region", spec.Region, checkItemName); err != nil {
		return nil, err
	}
	for _, name := range identities {
		vs, ok := spec.Identities[name]
		if !ok {
			continue
		}
		in, err := c.values(name, vs, checkIdentity)
		if err != nil {
			return nil, err
		}
		rd.identities = append(rd.identities, identity{name, in})
	}
	for name := range spec.Identities {
		if !slices.Contains(identities, name) {
			return nil, fmt.Errorf("identity %q: it is one of phone, email, address, device and ip", name)
		}
	}
	if rd.ref, err = c.unique("ref", spec.Ref); err != nil {
		return nil, err
	}
	rd.refShared = spec.RefShared
	if rd.key, err = c.unique("idempotency key", spec.Key); err != nil {
		return nil, err
	}
	if err := c.lines(spec); err != nil {
		return nil, err
	}
	for _, r := range spec.Rates {
		if r.Key.Needs().Has(NeedLookup) {
			return nil, errors.New("rate: the lookup comes after the rates, so a rate cannot count by {lookup.…}")
		}
		in, err := c.values("rate's key", r.Key, checkIdentity)
		if err != nil {
			return nil, err
		}
		rd.rates = append(rd.rates, newRateKey(in, rd.persons(), r.IPv6Prefix))
	}
	if err := c.bearer(spec.Bearer); err != nil {
		return nil, err
	}
	if err := c.names(); err != nil {
		return nil, err
	}
	for _, root := range c.roots {
		if err := root.checkElements(); err != nil {
			return nil, err
		}
	}
	if rd.bodyIgnored = spec.BodyIgnored; rd.bodyIgnored && rd.needs.Has(NeedBody) {
		return nil, errors.New("body ignored: a value is read from the body, so the shop reads it too")
	}
	rd.noteHeaders()
	return rd, nil
}

// lines compiles where the lines are found.
func (c *compiler) lines(spec Spec) error {
	switch {
	case spec.Lines != nil && len(spec.Line) > 0:
		return errors.New("line and lines: use one of them")
	case spec.Lines != nil:
		return c.array(spec.Lines)
	case len(spec.Line) == 0:
		return errors.New("line: say where the item is found, such as {json.sku}")
	case len(spec.Line) > sale.MaxLines:
		return fmt.Errorf("line: at most %d lines", sale.MaxLines)
	}
	for _, l := range spec.Line {
		if len(l.SKU) == 0 {
			return errors.New("line: say where the item is found, such as {json.sku}")
		}
		sku, err := c.values("sku", l.SKU, checkItemName)
		if err != nil {
			return err
		}
		quantity, err := c.values("quantity", l.Quantity, checkQuantity)
		if err != nil {
			return err
		}
		compiled := lineSource{sku: sku, quantity: quantity, constant: allConstant(sku), absent: l.Absent}
		if l.Absent != AbsentAssumed && (!compiled.constant || allConstant(quantity)) {
			return errors.New("line: absent says what it means that a request lacks the quantity of a constant item, as in `line A1 {form.a1} absent 0`: this line has another item or no such quantity, so leave absent out")
		}
		c.reader.lines = append(c.reader.lines, compiled)
	}
	return nil
}

// array compiles the array that holds the lines.
func (c *compiler) array(l *Lines) error {
	root, needs := c.reader.root, NeedJSON
	switch l.Array.kind {
	case JSON:
	case Lookup:
		root, needs = c.reader.looked, NeedLookup
	case Form:
		return c.formRows(l)
	case Argument:
		root, needs = &node{label: "graphql", want: wantObject, index: -1, slot: -1}, NeedArgument
		c.reader.argument, c.roots = l.Array.name, append(c.roots, root)
	default:
		return errors.New("lines: the array is in the body or in a lookup, such as {json.items}, {form.items}, {lookup.items} or {graphql.inputs}")
	}
	if l.SKU == KeyField || l.Quantity == ValueField {
		return fmt.Errorf("lines: %s and %s read an array of a form, such as {form.quantity}: in JSON name the fields", KeyField, ValueField)
	}
	n, err := root.grow(l.Array.path)
	if err != nil {
		return fmt.Errorf("lines: %w", err)
	}
	if n == root { // the document is the array
		n.want = wantArray
	}
	if n.each != nil || len(n.kids) > 0 {
		return fmt.Errorf("lines: %s is read by another value too", n.label)
	}
	if err := n.become(wantArray); err != nil {
		return fmt.Errorf("lines: %w", err)
	}
	n.each = &node{label: n.label, want: wantObject, index: eachIndex, slot: -1}
	c.reader.rows, c.reader.rowsLookedUp = n, l.Array.kind == Lookup
	c.reader.needs |= needs
	if l.SKU == "" {
		return errors.New("lines: name the field of an element that holds the SKU")
	}
	if c.reader.rowSKU, err = c.field(n.each, l.SKU, rowSKU); err != nil || l.Quantity == "" {
		return err
	}
	c.reader.rowQuantity, err = c.field(n.each, l.Quantity, rowQuantity)
	return err
}

// field compiles one field of the lines array's elements.
func (c *compiler) field(each *node, p string, slot int) (*node, error) {
	if strings.ContainsAny(p, "{}") {
		return nil, fmt.Errorf("lines: %s: write the field of an element, such as sku, without braces", p)
	}
	path, err := parsePath(p)
	if err != nil {
		return nil, fmt.Errorf("lines: %s: %w", p, err)
	}
	n, err := each.grow(path)
	if err != nil {
		return nil, fmt.Errorf("lines: %w", err)
	}
	if n.slot >= 0 || len(n.kids) > 0 {
		return nil, fmt.Errorf("lines: %s: SKU and quantity must be fields of their own", p)
	}
	n.slot, n.row = slot, true
	return n, nil
}
