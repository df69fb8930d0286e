package attempt

import "fmt"

// input is one alternative of a configured value, ready to be looked up.
type input struct {
	kind  ValueKind
	label string
	text  string // of Constant and Text
	slot  int    // where the sources put the rest; -1
}

// source is a header, a cookie or a path segment that some value reads.
type source struct {
	label  string
	name   string
	folded string
	index  int
	slot   int
}

// identity is where one identity is found.
type identity struct {
	name string
	in   []input
}

// lineSource is where one line is found.
type lineSource struct {
	sku, quantity []input
	constant      bool // the SKU is the same in all requests
	absent        Absent
}

// eachIndex marks the node of every element of the lines array.
const eachIndex = -2

// compiler gathers the sources of all values: each is read once for a request,
// however many values use it.
type compiler struct {
	reader *Reader
	slots  map[string]int
	roots  []*node // of the documents that are read
}

func newCompiler(spec Spec) *compiler {
	rd := &Reader{
		root:     &node{label: "json", want: wantObject, index: -1, slot: -1},
		claims:   &node{label: "jwt", want: wantObject, index: -1, slot: -1},
		looked:   &node{label: "lookup", want: wantObject, index: -1, slot: -1},
		method:   foldParam(methodParam),
		maxBody:  spec.MaxBody,
		jsonName: []int{},
	}
	if rd.maxBody <= 0 {
		rd.maxBody = DefaultMaxBody
	}
	return &compiler{reader: rd, slots: map[string]int{}, roots: []*node{rd.root, rd.claims, rd.looked}}
}

// values compiles the alternatives of one configured value. Constants are
// checked at once.
func (c *compiler) values(role string, vs Values, check func(string) string) ([]input, error) {
	ins := make([]input, 0, len(vs))
	for _, v := range vs {
		if v.kind == Constant {
			if what := check(v.text); what != "" {
				return nil, fmt.Errorf("%s: the constant %q: %s", role, v.text, what)
			}
		}
		in, err := c.value(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", role, err)
		}
		if in.slot < 0 {
			in.label = "the " + role
		}
		ins = append(ins, in)
	}
	return ins, nil
}

// value compiles one alternative.
func (c *compiler) value(v Value) (input, error) {
	c.reader.needs |= v.Needs()
	in := input{kind: v.kind, label: v.String(), text: v.text, slot: -1}
	for _, inner := range v.inner {
		if _, err := c.value(inner); err != nil {
			return in, err
		}
	}
	if v.kind == Constant || v.kind == Text || v.kind == ClientIP {
		return in, nil
	}
	slot, ok := c.slots[in.label]
	if !ok {
		slot = len(c.slots)
		c.slots[in.label] = slot
		c.reader.slots = len(c.slots)
		if err := c.source(v, slot); err != nil {
			return in, err
		}
	}
	in.slot = slot
	return in, nil
}

// source registers what fills a slot.
func (c *compiler) source(v Value, slot int) error {
	rd := c.reader
	s := source{label: v.String(), name: v.name, index: v.index, slot: slot}
	switch v.kind {
	case Header:
		rd.headers = append(rd.headers, s)
	case Cookie:
		s.folded = foldParam(v.name)
		for _, other := range rd.cookies {
			if sameParam(v.name, other.folded) {
				return fmt.Errorf("%s and %s are one name to some servers: no request could have both", other.label, s.label)
			}
		}
		rd.cookies = append(rd.cookies, s)
	case Path:
		rd.paths = append(rd.paths, s)
	case JSON:
		return rd.root.leaf(v, slot)
	case JWT:
		return rd.claims.leaf(v, slot)
	case Lookup:
		return rd.looked.leaf(v, slot)
	case Form, Param, Query:
		return c.param(v, slot)
	}
	return nil
}

// leaf makes the place of a JSON value or a claim below its root.
func (n *node) leaf(v Value, slot int) error {
	n, err := n.grow(v.path)
	if err != nil {
		return err
	}
	if err := n.become(wantScalar); err != nil || n.each != nil || len(n.kids) > 0 {
		return fmt.Errorf("%s: another value reads inside of it", v)
	}
	n.slot = slot
	return nil
}

// param registers a name of the query or of a form.
func (c *compiler) param(v Value, slot int) error {
	p, err := c.name(v.name, v.String())
	if err != nil {
		return err
	}
	switch v.kind {
	case Query:
		p.query, p.inQuery = slot, true
	case Form:
		p.form, p.inForm = slot, true
	case Param:
		p.param, p.inQuery, p.inForm = slot, true, true
	}
	return nil
}

// name finds or makes the entry of a parameter's name.
func (c *compiler) name(name, label string) (*param, error) {
	rd := c.reader
	for i := range rd.params {
		p := &rd.params[i]
		if p.name == name {
			return p, nil
		}
		if sameParam(name, p.folded) {
			return nil, fmt.Errorf("%s and %s are one name to some servers: no request could have both", p.label, label)
		}
	}
	if len(rd.params) == maxNames {
		return nil, fmt.Errorf("%s: more than %d names are read from query and body", label, maxNames)
	}
	rd.params = append(rd.params, param{
		name: name, folded: foldParam(name), label: label, query: -1, form: -1, param: -1,
	})
	return &rd.params[len(rd.params)-1], nil
}

// maxNames leaves room for _method among the 64 members that a node may have.
const maxNames = 63

// names makes the names of the query and those at the root of a JSON body one
// set, since frameworks merge the two: each name is forbidden where no source
// reads it.
func (c *compiler) names() error {
	rd := c.reader
	for _, kid := range rd.root.kids {
		p, err := c.name(kid.name, kid.label)
		if err != nil {
			return err
		}
		p.inJSON = true
	}
	for _, p := range rd.params {
		if !p.inJSON {
			if err := c.forbid(p.name, p.label); err != nil {
				return err
			}
		}
	}
	if err := c.forbid(methodParam, methodParam); err != nil {
		return err
	}
	for _, kid := range rd.root.kids {
		at := -1
		for i, p := range rd.params {
			if p.inJSON && p.name == kid.name {
				at = i
			}
		}
		rd.jsonName = append(rd.jsonName, at)
	}
	return nil
}

// forbid makes a name at the root of a JSON body a fault.
func (c *compiler) forbid(name, label string) error {
	kid, err := c.reader.root.kid(segment{name: name, index: -1})
	if err != nil {
		return err
	}
	kid.label, kid.want = label, wantAbsent
	return nil
}
