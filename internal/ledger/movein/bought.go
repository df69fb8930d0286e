package movein

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/sale"
)

const (
	// MaxPurchases bounds the records that are read, and with them the memory.
	MaxPurchases = 5_000_000
	// maxRecord is the longest value that is read, maxBuyer the longest identity, maxName the
	// longest key with its member.
	maxRecord, maxBuyer, maxName = 64 << 10, 512, 2048
	// page is about how many records one call reads.
	page = 1000
)

// records reads purchases by the forms of a file.
type records struct {
	from               redis.UniversalClient
	keys               *sale.BoughtKeys
	key, member, value Pattern
	skip               Pattern         // nil: none
	listed             map[string]bool // by SKU
	only               string          // the SKU, where the file has a single one and no form names it
}

func newRecords(from *sale.MoveFrom) (*records, error) {
	b := from.Bought
	r := &records{keys: b, listed: from.SKUs()}
	var err error
	if r.key, err = ParsePattern(b.Key, "sku", "buyer", other); err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	value := b.Value
	if value == "" && b.JSON == nil {
		value = "{units}"
	}
	if r.value, err = ParsePattern(value, "buyer", "units", "sku", other); err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	member := b.Member
	if member == "" {
		if member = "{buyer}"; b.JSON["buyer"] != "" || r.key.Has("buyer") || r.value.Has("buyer") {
			member = "{other}"
		}
	}
	if r.member, err = ParsePattern(member, "buyer", "units", "sku", other); err != nil {
		return nil, fmt.Errorf("member: %w", err)
	}
	if b.Skip != "" {
		if r.skip, err = ParsePattern(b.Skip, other); err != nil {
			return nil, fmt.Errorf("skip: %w", err)
		}
	}
	if b.Value == "" && r.member.Has("units") {
		r.value = Pattern{{name: other}}
	}
	if r.key.Has(other) && !r.key.Has("buyer") {
		return nil, errors.New("key: {other} goes with {buyer}, where each buyer has a key")
	}
	for _, form := range []struct {
		where, text string
		pattern     Pattern
	}{{"key", b.Key, r.key}, {"member", member, r.member}, {"value", value, r.value}} {
		if err := r.endsRight(form.text, form.pattern); err != nil {
			return nil, fmt.Errorf("%s: %w", form.where, err)
		}
	}
	return r, r.check()
}

// endsRight refuses an item whose SKU ends too early in a form: its records would be left out as
// those of another item.
func (r *records) endsRight(text string, p Pattern) error {
	for _, sku := range slices.Sorted(maps.Keys(r.listed)) {
		if end := p.cuts("sku", sku); end != "" {
			return fmt.Errorf("in %s a SKU ends at the first %s, which begins inside of %s: its buyers could buy again. "+
				"Sell that item in a sale of its own, whose file has the SKU in place of {sku}", shown(text), shown(end), shown(sku))
		}
	}
	return nil
}

// check refuses forms that say nothing, or the same twice.
func (r *records) check() error {
	for _, name := range []string{"buyer", "units", "sku"} {
		var where []string
		for place, has := range map[string]bool{"key": r.key.Has(name), "member": r.member.Has(name), "value": r.value.Has(name), "json": r.keys.JSON[name] != ""} {
			if has {
				where = append(where, place)
			}
		}
		slices.Sort(where)
		switch {
		case len(where) > 1:
			return fmt.Errorf("{%s} is in %s: one place must say it", name, strings.Join(where, " and in "))
		case len(where) == 1:
		case name == "buyer":
			return errors.New("nothing says who the buyer is: put {buyer} into member, key or value, or its path into json")
		case name == "sku" && len(r.listed) != 1:
			return errors.New("nothing says of which item a record is: put {sku} into key, member or value, or its path into json")
		case name == "sku":
			for sku := range r.listed {
				r.only = sku
			}
		}
	}
	return nil
}

// page makes purchases of what one call has read.
func (r *records) page(seen *once, key string, pairs []string, form string) (list []sale.MovePurchase, skipped int64, err error) {
	step := 2
	if form == "set" {
		step = 1
	}
	for i := 0; i+step <= len(pairs); i += step {
		member, value := pairs[i], ""
		if form == "hash" || form == "string" {
			value = pairs[i+1]
		}
		name := key + "\x00" + member
		if form == "string" {
			name = key
		}
		isNew, err := seen.isNew(name)
		if err != nil {
			return nil, skipped, err
		}
		if !isNew {
			continue
		}
		if r.skip != nil && form != "string" && r.skip.match(member, func(string, string) {}) {
			skipped++
			continue
		}
		p, err := r.read(key, member, value, form)
		if err != nil {
			where := quoteKey(key)
			if form != "string" {
				where += ", member " + shown(member) + ","
			}
			return nil, skipped, fmt.Errorf("%s %w", where, err)
		}
		if !r.listed[p.SKU] || p.Units == 0 {
			skipped++
			continue
		}
		if p.Name = name; len(name) > maxName {
			return nil, skipped, fmt.Errorf("%s has a member of more than %d bytes", quoteKey(key), maxName)
		}
		list = append(list, p)
	}
	return list, skipped, nil
}

// read makes a purchase of a record.
func (r *records) read(key, member, value, form string) (sale.MovePurchase, error) {
	p := sale.MovePurchase{SKU: r.only, Units: 1}
	counted := ""
	set := func(name, text string) {
		switch name {
		case "buyer":
			p.Buyer = text
		case "sku":
			p.SKU = text
		case "units":
			counted = text
		}
	}
	if r.key.Has("sku") || r.key.Has("buyer") {
		if !r.key.match(key, set) {
			return p, fmt.Errorf("has not the form %s", r.keys.Key)
		}
	}
	if form != "string" && !r.member.match(member, set) {
		return p, errors.New("has not the form of member in bought_from; if such members are no purchases, give their form in skip")
	}
	if form == "hash" || form == "string" {
		if len(value) > maxRecord {
			return p, fmt.Errorf("has %d bytes, and may have %d", len(value), maxRecord)
		}
		if err := r.readValue(value, set); err != nil {
			return p, err
		}
	}
	if counted != "" {
		n, err := units(counted)
		if err != nil {
			return p, err
		}
		p.Units = n
	}
	return p, complete(&p, r.keys)
}

// complete checks the buyer of a purchase, and counts its orders.
func complete(p *sale.MovePurchase, b *sale.BoughtKeys) error {
	switch {
	case p.Buyer == "" || len(p.Buyer) > maxBuyer:
		return fmt.Errorf("gives a buyer of %d bytes: it must have 1 to %d", len(p.Buyer), maxBuyer)
	case !utf8.ValidString(p.Buyer):
		return fmt.Errorf("gives the buyer %s, which is no text%s", shown(p.Buyer), serialised(p.Buyer))
	case sale.NormaliseIdentity(b.Identity, p.Buyer) == "":
		return fmt.Errorf("gives %s, which is no %s", shown(p.Buyer), b.Identity)
	}
	if p.Orders = 1; b.Orders {
		p.Orders = p.Units
	}
	return nil
}

func (r *records) readValue(value string, set func(name, text string)) error {
	if r.keys.JSON == nil {
		if len(r.value) == 1 && r.value[0].name == "units" { // its errors say more
			if value == "" {
				return errors.New("has an empty value, and should have a number")
			}
			set("units", value)
			return nil
		}
		if len(r.value) == 1 && r.value[0].name == other || r.value.match(value, set) {
			return nil
		}
		return fmt.Errorf("has the value %s, which has not the form of value in bought_from", shown(value))
	}
	var document any
	decoder := json.NewDecoder(bytes.NewReader([]byte(value)))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil || decoder.More() {
		return fmt.Errorf("has the value %s, which is no JSON%s", shown(value), serialised(value))
	}
	for name, path := range r.keys.JSON {
		at := document
		for step := range strings.SplitSeq(path, ".") {
			object, _ := at.(map[string]any)
			at = object[step]
		}
		switch v := at.(type) {
		case string:
			set(name, v)
		case json.Number:
			set(name, v.String())
		default:
			return fmt.Errorf("has no text or number at %s in its JSON", shown(path))
		}
	}
	return nil
}
