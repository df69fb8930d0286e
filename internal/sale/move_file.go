package sale

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// boughtFrom is BoughtKeys as written.
type boughtFrom struct {
	redis, key, member, skip, value, identity, counts, absent field[string]
	// dsn and query name a database, instead of keys.
	dsn, query field[string]

	json    field[map[string]string]
	timeout field[Span]
}

var (
	boughtFromFields = []string{"dsn", "query", "redis", "key", "member", "skip", "value", "json", "identity", "counts", "absent", "timeout"}
	boughtJSONFields = []string{"buyer", "units", "sku"}
	movedInFields    = []string{"purchases", "units", "done"}
)

func (r *reader) boughtFrom(n *yaml.Node, path string) field[boughtFrom] {
	f := field[boughtFrom]{line: n.Line, set: true}
	f.bad = !r.mapping(n, path, boughtFromFields, func(name string, v *yaml.Node) {
		path := path + "." + name
		texts := map[string]*field[string]{
			"redis": &f.val.redis, "key": &f.val.key, "member": &f.val.member, "skip": &f.val.skip, "value": &f.val.value, "identity": &f.val.identity,
			"counts": &f.val.counts, "absent": &f.val.absent, "dsn": &f.val.dsn, "query": &f.val.query,
		}
		switch name {
		case "timeout":
			f.val.timeout = r.span(v, path)
		case "json":
			f.val.json = field[map[string]string]{line: v.Line, set: true, val: make(map[string]string)}
			f.val.json.bad = !r.mapping(v, path, boughtJSONFields, func(name string, v *yaml.Node) {
				f.val.json.val[name] = r.text(v, path+"."+name).val
			})
		default:
			*texts[name] = r.text(v, path)
		}
	})
	return f
}

func (r *reader) movedIn(n *yaml.Node, path string) field[MovedIn] {
	f := field[MovedIn]{line: n.Line, set: true}
	f.bad = !r.mapping(n, path, movedInFields, func(name string, v *yaml.Node) {
		switch path := path + "." + name; name {
		case "purchases":
			f.val.Purchases = r.number(v, path).val
		case "units":
			f.val.Units = r.number(v, path).val
		case "done":
			f.val.Done = r.flag(v, path).val
		}
	})
	return f
}

func describeMoved(m *MovedIn) field[MovedIn] {
	if m == nil {
		return field[MovedIn]{}
	}
	return given(*m)
}

func buildMoved(f field[MovedIn]) *MovedIn {
	if !f.set {
		return nil
	}
	return &f.val
}

func (d *document) checkStockKeys(found *findings) {
	f := &d.stockFrom
	for name, sql := range map[string]field[string]{"dsn": f.val.dsn, "query": f.val.query} {
		if sql.set {
			found.add(sql.line, "stock_from."+name, "cannot stand beside redis: take the stock from one of them")
		}
	}
	needText(found, f.val.redis, f.line, "stock_from.redis", "give the address of the shop's Redis, such as redis://:{env.SHOP_REDIS}@host:6379/0")
	needText(found, f.val.keys, f.line, "stock_from.key", "give the key of an item, such as store_{sku}")
	if f.val.left.set && (f.val.total.set || f.val.ordered.set) {
		found.add(f.val.left.line, "stock_from.left", "cannot stand beside total and ordered: give the field with the units that are left, or these two")
	}
	checkAbsent(found, f.val.absent, "stock_from.absent")
	if !d.items.set {
		found.add(f.line, "stock_from", "needs items: list each sku, because keys of a Redis have no list of them")
	}
}

// checkMoving checks what the file says about purchases of before.
func (d *document) checkMoving(found *findings) {
	f := &d.boughtFrom
	if !f.set || f.bad {
		return
	}
	if f.val.query.set || f.val.dsn.set {
		d.checkBoughtQuery(found)
	} else {
		d.checkBoughtKeys(found)
	}
	if t := f.val.timeout; t.set && !t.bad && (t.val < leastStockTimeout || t.val > mostStockTimeout) {
		found.add(t.line, "bought_from.timeout", "must be %s to %s", leastStockTimeout, mostStockTimeout)
	}
	if f.val.identity.set {
		checkWord(found, f.val.identity, f.line, "bought_from.identity", identityKinds...)
	}
	if f.val.counts.set {
		checkWord(found, f.val.counts, f.line, "bought_from.counts", "units", "orders")
	}
	checkAbsent(found, f.val.absent, "bought_from.absent")
}

func (d *document) checkBoughtKeys(found *findings) {
	f := &d.boughtFrom
	if !f.val.redis.set && !d.stockFrom.val.redis.set {
		found.add(f.line, "bought_from.redis", "is missing: give the address of the shop's Redis, such as redis://:{env.SHOP_REDIS}@host:6379/0, or dsn and query for a database")
	}
	needText(found, f.val.key, f.line, "bought_from.key", "give the key that says who has bought, such as bought_{sku}")
	if f.val.value.set && f.val.json.set {
		found.add(f.val.json.line, "bought_from.json", "cannot stand beside value: a value is JSON, or a text of that form")
	}
}

func (d *document) checkBoughtQuery(found *findings) {
	f := &d.boughtFrom
	for name, line := range map[string]field[string]{"redis": f.val.redis, "key": f.val.key, "member": f.val.member, "skip": f.val.skip, "value": f.val.value, "json": {line: f.val.json.line, set: f.val.json.set}} {
		if line.set {
			found.add(line.line, "bought_from."+name, "cannot stand beside query: what was bought is taken from one of them")
		}
	}
	needText(found, f.val.query, f.line, "bought_from.query", "give a query with the columns buyer, sku and units")
	if f.val.dsn.set || !d.stockFrom.val.dsn.set {
		needText(found, f.val.dsn, f.line, "bought_from.dsn", "give the address of the shop's database, such as postgres://…, mysql://… or sqlite:/…")
	}
}

func needText(found *findings, f field[string], line int, path, hint string) {
	if need(found, f, line, path, hint) && strings.TrimSpace(f.val) == "" {
		found.add(f.line, path, "is empty: %s", hint)
	}
}

func checkAbsent(found *findings, f field[string], path string) {
	if f.set {
		checkWord(found, f, f.line, path, "refuse", "none")
	}
}

// moveBundles adds the bundles: one with a component that has regions is as an item with regions.
func (d *document) moveBundles(from *MoveFrom) {
	for i := range d.items.val {
		e := &d.items.val[i]
		components := e.buildComponents()
		switch {
		case !e.components.set:
		case slices.ContainsFunc(components, func(c Component) bool { return from.Regional[c.SKU] }):
			from.Regional[e.sku.val] = true
		default:
			from.Bundles[e.sku.val] = components
		}
	}
}

// move asks for the keys, and puts the units among the items.
func (d *document) move(found *findings, ask func(MoveFrom) (*MovedStock, error)) error {
	from := MoveFrom{Sale: d.id.val, Listed: make(map[string]int64, len(d.items.val)), Bundles: make(map[string][]Component), Regional: make(map[string]bool)}
	s, b := &d.stockFrom.val, &d.boughtFrom.val
	line := d.boughtFrom.line
	if s.redis.set {
		line = d.stockFrom.line
		from.Stock = &StockKeys{
			Redis: s.redis.val, Key: s.keys.val, Left: s.left.val, Total: cmp.Or(s.total.val, "total"), Ordered: cmp.Or(s.ordered.val, "ordered"),
			AbsentIsNone: s.absent.val == "none", Timeout: timeoutOf(s.timeout),
		}
	}
	if d.boughtFrom.set {
		from.Bought = &BoughtKeys{
			DSN: b.dsn.val, Query: b.query.val, Redis: b.redis.val, Key: b.key.val, Member: b.member.val, Skip: b.skip.val, Value: b.value.val, JSON: b.json.val,
			Identity: cmp.Or(b.identity.val, "buyer"), Orders: b.counts.val == "orders", AbsentIsNone: b.absent.val == "none", Timeout: timeoutOf(b.timeout),
		}
		if from.Bought.Redis == "" {
			from.Bought.Redis = s.redis.val
		}
		if from.Bought.DSN == "" {
			from.Bought.DSN = s.dsn.val
		}
	}
	for i := range d.items.val {
		e := &d.items.val[i]
		switch {
		case e.regions.set:
			from.Regional[e.sku.val] = true
			continue
		case e.components.set:
			continue
		case !e.stock.set && from.Stock != nil:
			from.Counted = append(from.Counted, e.sku.val)
		}
		from.Listed[e.sku.val] = e.stock.val
	}
	d.moveBundles(&from)
	if from.Stock != nil && len(from.Counted) == 0 {
		found.add(line, "stock_from", "has nothing to read: every item has its stock in the file; leave stock out of the items that the shop's Redis counts")
		return nil
	}
	moved, err := ask(from)
	if err != nil {
		if strings.HasPrefix(err.Error(), "bought_from") {
			line = d.boughtFrom.line
		}
		return fmt.Errorf("line %d: %w", line, err)
	}
	d.stockFrom.val.filled = true
	for i := range d.items.val {
		if e := &d.items.val[i]; e.sku.set && !e.stock.set && !e.regions.set && !e.components.set && from.Stock != nil {
			e.stock = field[int64]{val: moved.Stock[e.sku.val], line: line, set: true}
		}
	}
	d.movedIn = given(moved.In)
	return nil
}
