package sale

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// reader makes a document from a syntax tree and reports values of the wrong form.
type reader struct{ findings }

var (
	saleFields      = []string{"id", "starts_at", "ends_at", "timezone", "items", "stock_from", "bought_from", "limits", "missing", "unpaid", "waitlist", "max_hold", "moved_in"}
	itemFields      = []string{"sku", "ids", "stock", "regions", "components", "min", "max"}
	limitFields     = []string{"per", "every", "max", "count", "sku", "shadow"}
	stockFromFields = []string{"dsn", "query", "timeout", "redis", "key", "total", "ordered", "left", "absent"}
)

// refuseReferences reports anchors, aliases, merge keys and explicit tags: they
// let a small file mean a huge or a surprising one.
func (r *reader) refuseReferences(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		r.add(n.Line, "", "aliases such as %s are not supported: write the value out", quote("*"+n.Value))
		return
	case n.Anchor != "":
		r.add(n.Line, "", "anchors such as %s are not supported: write the value out where it is used", quote("&"+n.Anchor))
	case n.Tag == "!!merge":
		r.add(n.Line, "", "merge keys (<<) are not supported: write the fields out")
	case n.Style&yaml.TaggedStyle != 0:
		r.add(n.Line, "", "tags such as %s are not supported: leave the tag out", quote(n.Tag))
	}
	for _, child := range n.Content {
		r.refuseReferences(child)
	}
}

func (r *reader) document(n *yaml.Node) *document {
	d := &document{line: n.Line}
	r.mapping(n, "", saleFields, func(name string, v *yaml.Node) {
		switch name {
		case "id":
			d.id = r.text(v, name)
		case "timezone":
			d.timezone = r.text(v, name)
		case "starts_at":
			d.startsAt = r.time(v, name)
		case "ends_at":
			d.endsAt = r.time(v, name)
		case "items":
			if isItemsFile(v) {
				d.itemsFile = r.text(v, name)
				return
			}
			d.items = list(r, v, name, MaxItems, r.item)
		case "stock_from":
			d.stockFrom = r.stockFrom(v, name)
		case "bought_from":
			d.boughtFrom = r.boughtFrom(v, name)
		case "limits":
			d.limits = list(r, v, name, MaxLimits, r.limit)
		case "missing":
			d.missing = r.text(v, name)
		case "unpaid":
			d.unpaid = r.unpaid(v, name)
		case "waitlist":
			d.waitlist = r.waitlist(v, name)
		case "max_hold":
			d.maxHold = r.span(v, name)
		case "moved_in":
			d.movedIn = r.movedIn(v, name)
		}
	})
	return d
}

func (r *reader) item(n *yaml.Node, path string) itemEntry {
	e := itemEntry{line: n.Line}
	e.bad = !r.mapping(n, path, itemFields, func(name string, v *yaml.Node) {
		switch path := path + "." + name; name {
		case "sku":
			e.sku = r.text(v, path)
		case "ids":
			e.ids = list(r, v, path, MaxItemIDs, r.text)
		case "stock":
			e.stock = r.number(v, path)
		case "regions":
			e.regions = r.regions(v, path)
		case "components":
			e.components = list(r, v, path, MaxComponents, r.component)
		case "min":
			e.min = r.number(v, path)
		case "max":
			e.max = r.number(v, path)
		}
	})
	return e
}

func (r *reader) regions(n *yaml.Node, path string) field[[]regionEntry] {
	f := field[[]regionEntry]{line: n.Line, set: true}
	f.bad = !r.mapping(n, path, nil, func(name string, v *yaml.Node) {
		f.val = append(f.val, regionEntry{
			name:  field[string]{val: name, line: v.Line, set: true},
			units: r.number(v, within(path, name)),
		})
	})
	return f
}

func (r *reader) limit(n *yaml.Node, path string) limitEntry {
	e := limitEntry{line: n.Line}
	e.bad = !r.mapping(n, path, limitFields, func(name string, v *yaml.Node) {
		switch path := path + "." + name; name {
		case "per":
			e.per, e.union = r.identities(v, path)
		case "every":
			e.every = r.text(v, path)
		case "count":
			e.count = r.text(v, path)
		case "sku":
			e.sku = r.text(v, path)
		case "max":
			e.max = r.number(v, path)
		case "shadow":
			e.shadow = r.flag(v, path)
		}
	})
	return e
}

// identities reads one identity or a list of them. True: it is a list.
func (r *reader) identities(n *yaml.Node, path string) (f field[[]field[string]], several bool) {
	switch n.Kind {
	case yaml.SequenceNode:
		return list(r, n, path, len(identityKinds), r.text), true
	case yaml.MappingNode:
		r.add(n.Line, path, "must be an identity or a list of them, not %s", form(n))
		return field[[]field[string]]{line: n.Line, set: true, bad: true}, false
	}
	one := r.text(n, path)
	return field[[]field[string]]{val: []field[string]{one}, line: n.Line, set: true, bad: one.bad}, false
}

// mapping visits the fields of n, each once. Without names, any field is allowed.
// False: n is not a mapping.
func (r *reader) mapping(n *yaml.Node, path string, names []string, visit func(name string, v *yaml.Node)) bool {
	if n.Kind != yaml.MappingNode {
		r.add(n.Line, path, "must be a mapping (name: value), not %s", form(n))
		return false
	}
	first := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!null" || k.ShortTag() == "!!bool" {
			r.add(k.Line, path, "a name before a colon must be text: put it in quotes")
			continue
		}
		if line, twice := first[k.Value]; twice {
			r.add(k.Line, within(path, k.Value), "is given twice, first in line %d", line)
			continue
		}
		first[k.Value] = k.Line
		if names != nil && !slices.Contains(names, k.Value) {
			r.unknown(k, path, names)
			continue
		}
		visit(k.Value, v)
	}
	return true
}

func (r *reader) unknown(k *yaml.Node, path string, names []string) {
	at := within(path, k.Value)
	if path == "" && k.Value == "status" {
		r.add(k.Line, at, "a file never changes the status: leave it out and use sale open, pause or close")
		return
	}
	if len(k.Value) == 3 && strings.Trim(k.Value, "0123456789") == "" {
		r.add(k.Line, path, "YAML reads the comma in a number such as 1,%s as the end of it: write the number without commas", k.Value)
		return
	}
	if meant := nearest(k.Value, names); meant != "" {
		r.add(k.Line, at, "there is no such field: did you mean %s?", meant)
		return
	}
	r.add(k.Line, at, "there is no such field: known are %s", strings.Join(names, ", "))
}

func list[T any](r *reader, n *yaml.Node, path string, most int, entry func(*yaml.Node, string) T) field[[]T] {
	f := field[[]T]{line: n.Line, set: true}
	if n.Kind != yaml.SequenceNode {
		r.add(n.Line, path, "must be a list, not %s", form(n))
		f.bad = true
		return f
	}
	if tooMany(&r.findings, n.Line, path, len(n.Content), most) {
		f.bad = true
		return f
	}
	f.val = make([]T, len(n.Content))
	for i, child := range n.Content {
		f.val[i] = entry(child, path+"["+strconv.Itoa(i)+"]")
	}
	return f
}

// text reads a scalar as text, so that a numeric SKU needs no quotes. Only values that
// YAML does not read as text or number (null, true) are refused.
func (r *reader) text(n *yaml.Node, path string) field[string] {
	f := field[string]{val: n.Value, line: n.Line, set: true}
	switch {
	case n.Kind != yaml.ScalarNode, n.ShortTag() == "!!null":
		r.add(n.Line, path, "must be text, not %s", form(n))
		f.bad = true
	case n.ShortTag() == "!!bool":
		r.add(n.Line, path, "must be text, not %s: put it in quotes if that is the name", form(n))
		f.bad = true
	}
	return f
}

// number accepts plain decimal digits only. YAML readers disagree about 010, 1_000 and
// 0x10, so none of them is accepted.
func (r *reader) number(n *yaml.Node, path string) field[int64] {
	f := field[int64]{line: n.Line, set: true, bad: true}
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	switch digits := n.Value; {
	case n.Kind != yaml.ScalarNode, n.ShortTag() == "!!null":
		r.add(n.Line, path, "must be a whole number, not %s", form(n))
	case quoted:
		r.add(n.Line, path, "must be a whole number without quotes, not %s", quote(digits))
	case len(digits) > 1 && digits[0] == '-' && onlyDigits(digits[1:]):
		r.add(n.Line, path, "must not be negative, got %s", quote(digits))
	case !onlyDigits(digits) || (len(digits) > 1 && digits[0] == '0'):
		r.add(n.Line, path, "must be a whole number in plain digits such as 1000, not %s", quote(digits))
	default:
		v, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			v = math.MaxInt64 // the field's own bound says what is too much
		}
		f.val, f.bad = v, false
	}
	return f
}

// flag accepts true and false only. YAML readers disagree about yes and on.
func (r *reader) flag(n *yaml.Node, path string) field[bool] {
	f := field[bool]{line: n.Line, set: true}
	plain := n.Kind == yaml.ScalarNode && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	if f.bad = !plain || n.Value != "true" && n.Value != "false"; f.bad {
		r.add(n.Line, path, "must be true or false, not %s", form(n))
	}
	f.val = n.Value == "true"
	return f
}

func (r *reader) time(n *yaml.Node, path string) field[time.Time] {
	f := field[time.Time]{line: n.Line, set: true, bad: true}
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		r.add(n.Line, path, "must be a time such as 2026-11-11T00:00:00+08:00, not %s", form(n))
		return f
	}
	t, err := parseTime(n.Value)
	if err != nil {
		r.add(n.Line, path, "%v", err)
		return f
	}
	f.val, f.bad = t, false
	return f
}

func (r *reader) span(n *yaml.Node, path string) field[Span] {
	f := field[Span]{line: n.Line, set: true, bad: true}
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		r.add(n.Line, path, "must be a length of time such as 30m, not %s", form(n))
		return f
	}
	s, err := ParseSpan(n.Value)
	if err != nil {
		r.add(n.Line, path, "%v", err)
		return f
	}
	f.val, f.bad = s, false
	return f
}

// form names a node's type, for messages.
func form(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!null":
		return "nothing: give a value or leave the field out"
	}
	return quote(n.Value)
}

// within is the path of a field; a name that could be mistaken for a path is quoted.
func within(path, name string) string {
	if name == "" || len(name) > 40 || !IsName(name) || strings.ContainsAny(name, `.[]":`) {
		return path + "[" + quote(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func onlyDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
