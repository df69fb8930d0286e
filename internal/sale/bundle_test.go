package sale_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/token"
)

// bundles is a sale file of two bundles; more is added to its end.
func bundles(more string) string {
	return `id: wine
starts_at: 2026-11-11T00:00:00Z
ends_at: 2026-11-12T00:00:00Z
items:
- {sku: bottle, ids: [v1], stock: 100}
- {sku: glass, regions: {eu: 10, us: 20}}
- {sku: opener, regions: {eu: 5}}
- {sku: carton, ids: [v9], components: [{sku: bottle, units: 12}]}
- {sku: gift, max: 3, components: [{sku: bottle}, {sku: glass, units: 2}, {sku: opener}]}
` + more
}

func parsed(t *testing.T, file string) *sale.Sale {
	t.Helper()
	s, err := sale.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A bundle is reserved as the units of its components, and the token has both.
func TestBundles(t *testing.T) {
	s := parsed(t, bundles(""))
	line := func(sku string, n int64, region ...string) sale.Line {
		return sale.Line{SKU: sku, Quantity: n, Region: strings.Join(region, "")}
	}
	type of struct {
		region  string
		lines   []sale.Line
		held    []sale.Line
		ordered []sale.Line
		bundles []token.Bundle
		refused sale.Reason
	}
	for name, c := range map[string]of{
		"one": {lines: []sale.Line{line("carton", 1)}, held: []sale.Line{line("bottle", 12)},
			ordered: []sale.Line{line("carton", 1)}, bundles: []token.Bundle{{SKU: "carton", Components: []sale.Line{line("bottle", 12)}}}},
		"by its id, beside its component by its id, twice": {lines: []sale.Line{line("v1", 1), line("v9", 1), line("carton", 2)}, held: []sale.Line{line("bottle", 37)},
			ordered: []sale.Line{line("bottle", 1), line("carton", 3)}, bundles: []token.Bundle{{SKU: "carton", Components: []sale.Line{line("bottle", 36)}}}},
		"in a region": {region: "eu", lines: []sale.Line{line("gift", 2)}, held: []sale.Line{line("bottle", 2), line("glass", 4, "eu"), line("opener", 2, "eu")},
			ordered: []sale.Line{line("gift", 2)}, bundles: []token.Bundle{{SKU: "gift", Components: []sale.Line{line("bottle", 2), line("glass", 4, "eu"), line("opener", 2, "eu")}}}},
		"two bundles":              {lines: []sale.Line{line("gift", 1, "eu"), line("carton", 1)}, held: []sale.Line{line("bottle", 13), line("glass", 2, "eu"), line("opener", 1, "eu")}},
		"none":                     {lines: []sale.Line{line("bottle", 3)}, held: []sale.Line{line("bottle", 3)}, ordered: []sale.Line{line("bottle", 3)}},
		"without a region":         {lines: []sale.Line{line("gift", 1)}, refused: sale.UnknownRegion},
		"where a component is not": {region: "us", lines: []sale.Line{line("gift", 1)}, refused: sale.UnknownRegion},
		"more than its max":        {region: "eu", lines: []sale.Line{line("gift", 4)}, refused: sale.Quantity},
		"more units than a line":   {lines: []sale.Line{line("carton", 834)}, refused: sale.Quantity},
		"as many as a line has":    {lines: []sale.Line{line("carton", 833)}, held: []sale.Line{line("bottle", 9996)}},
		"none of it":               {lines: []sale.Line{line("carton", 0)}, refused: sale.Quantity},
	} {
		t.Run(name, func(t *testing.T) {
			a := &sale.Attempt{Region: c.region, Lines: c.lines}
			held, no := s.Resolve(a)
			if c.refused != "" {
				if no == nil || no.Reason != c.refused {
					t.Fatalf("%v, %+v, want %s", held, no, c.refused)
				}
				return
			}
			if no != nil || !reflect.DeepEqual(held, c.held) {
				t.Fatalf("%v, %+v, want %v", held, no, c.held)
			}
			ordered, of := s.Ordered(a, held)
			if c.ordered != nil && (!reflect.DeepEqual(ordered, c.ordered) || !reflect.DeepEqual(of, c.bundles)) {
				t.Errorf("ordered %v of %v, want %v of %v", ordered, of, c.ordered, c.bundles)
			}
			if back := s.Unbundle(inRegion(c.lines, c.region)); c.bundles != nil && !reflect.DeepEqual(named(s, back), held) {
				t.Errorf("its lines are %v, want %v", back, held)
			}
			// the file may have changed since: the token has what is held
			if lines, of := s.Ordered(a, []sale.Line{line("bottle", 1_000)}); of != nil || lines[0].Quantity != 1_000 && c.bundles != nil {
				t.Errorf("other units: %v of %v", lines, of)
			}
		})
	}
}

func inRegion(lines []sale.Line, region string) (out []sale.Line) {
	for _, l := range lines {
		l.Region = region
		out = append(out, l)
	}
	return out
}

// named sums lines by the SKUs of their items.
func named(s *sale.Sale, lines []sale.Line) (out []sale.Line) {
	for _, l := range lines {
		item, _ := s.Item(l.SKU)
		if i := len(out) - 1; i >= 0 && out[i].SKU == item.SKU {
			out[i].Quantity += l.Quantity
		} else {
			out = append(out, sale.Line{SKU: item.SKU, Quantity: l.Quantity, Region: l.Region})
		}
	}
	return out
}

// An order of many bundles has more cells than a reservation may have.
func TestManyComponents(t *testing.T) {
	file := "id: s\nstarts_at: 2026-11-11T00:00:00Z\nends_at: 2026-11-12T00:00:00Z\nitems:\n"
	var lines []sale.Line
	for i := range 6 {
		parts := ""
		for j := range 10 {
			file += fmt.Sprintf("- {sku: c%d-%d, stock: 1}\n", i, j)
			parts += fmt.Sprintf("{sku: c%d-%d}, ", i, j)
		}
		file += fmt.Sprintf("- {sku: b%d, components: [%s]}\n", i, strings.TrimSuffix(parts, ", "))
		lines = append(lines, sale.Line{SKU: fmt.Sprintf("b%d", i), Quantity: 1})
	}
	s := parsed(t, file)
	if got, no := s.Resolve(&sale.Attempt{Lines: lines[:5]}); no != nil || len(got) != sale.MaxLines {
		t.Errorf("50 components: %v, %+v", got, no)
	}
	if got, no := s.Resolve(&sale.Attempt{Lines: lines}); no == nil || no.Reason != sale.Malformed {
		t.Errorf("60 components: %v, %+v", got, no)
	}
}

// A bundle loads nothing, and there are as many of it as its scarcest component makes.
func TestOffers(t *testing.T) {
	s := parsed(t, bundles(""))
	cells := s.Cells()
	if len(cells) != 4 || len(s.Lines()) != 4 {
		t.Errorf("it loads %v, lines %v", cells, s.Lines())
	}
	got := ""
	for _, o := range s.Bundles() {
		got += fmt.Sprintf("%s@%s %d; ", o.SKU, o.Region, o.Of(func(cell string) int64 { return cells[cell] }))
	}
	if want := "carton@ 8; gift@eu 5; "; got != want {
		t.Errorf("there are %s, want %s", got, want)
	}
	// a sale that is read without its rules, as for its stock, has no index yet
	text, err := json.Marshal(s)
	var read sale.Sale
	if err != nil || json.Unmarshal(text, &read) != nil || !reflect.DeepEqual(read.Bundles(), s.Bundles()) {
		t.Errorf("the sale's JSON has the bundles %v, %v", read.Bundles(), err)
	}
}

// What can never be sold is an error, and the sale's JSON keeps the bundles.
func TestBundleProblems(t *testing.T) {
	for file, want := range map[string]string{
		bundles("- {sku: b, stock: 1, components: [{sku: bottle}]}"):                                 "items[5].components: cannot stand beside stock or regions: a bundle has the stock of its components",
		bundles("- {sku: b, regions: {eu: 1}, components: [{sku: bottle}]}"):                         "items[5].components: cannot stand beside stock or regions: a bundle has the stock of its components",
		bundles("- {sku: b, components: []}"):                                                        "items[5].components: must have at least one component: leave it out where the item has stock of its own",
		bundles("- {sku: b, components: bottle}"):                                                    `items[5].components: must be a list, not "bottle"`,
		bundles("- {sku: b, components: [bottle]}"):                                                  `items[5].components[0]: must be a mapping (name: value), not "bottle"`,
		bundles("- {sku: b, components: [{units: 2}]}"):                                              "items[5].components[0].sku: is missing: name an item of this sale",
		bundles("- {sku: b, components: [{sku: bottle, units: 0}]}"):                                 "items[5].components[0].units: must be 1 to 10000",
		bundles("- {sku: b, components: [{sku: bottle, units: 1.5}]}"):                               `items[5].components[0].units: must be a whole number in plain digits such as 1000, not "1.5"`,
		bundles("- {sku: b, components: [{sku: bottle, quantity: 2}]}"):                              "items[5].components[0].quantity: there is no such field: known are sku, units",
		bundles("- {sku: b, components: [{sku: cork}]}"):                                             `items[5].components[0].sku: no item of this sale has the sku "cork"`,
		bundles("- {sku: b, components: [{sku: v1}]}"):                                               `items[5].components[0].sku: "v1" is an id of the item "bottle": name the sku`,
		bundles("- {sku: b, components: [{sku: b}]}"):                                                `items[5].components[0].sku: "b" is a bundle itself: name what it is made of`,
		bundles("- {sku: b, components: [{sku: carton, units: 2}]}"):                                 `items[5].components[0].sku: "carton" is a bundle itself: name what it is made of`,
		bundles("- {sku: b, components: [{sku: bottle}, {sku: bottle}]}"):                            `items[5].components[1].sku: names "bottle" again, after components[0]: give the sum of the units`,
		bundles("- {sku: b, max: 834, components: [{sku: bottle, units: 12}]}"):                      "items[5].max: must be at most 833: an order takes at most 10000 units of an item, and each bundle takes 12",
		bundles("- {sku: us, regions: {us: 1}}\n- {sku: b, components: [{sku: opener}, {sku: us}]}"): "items[6].components: have no region in common: there is no region in which this bundle could be sold",
	} {
		if _, err := sale.Parse([]byte(file)); err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	s := parsed(t, bundles(""))
	text, err := s.Items[4].MarshalJSON()
	if want := `{"sku":"gift","components":[{"sku":"bottle","units":1},{"sku":"glass","units":2},{"sku":"opener","units":1}],"min":1,"max":3}`; err != nil || string(text) != want {
		t.Errorf("its JSON is %s, %v\nwant %s", text, err, want)
	}
	again, err := sale.New(*s)
	if err != nil || !again.Equal(s) {
		t.Errorf("a copy is another sale: %v", err)
	}
}

// The components of a bundle stay once buyers may have bought it.
func TestPlanOfBundles(t *testing.T) {
	was := parsed(t, bundles(""))
	will := parsed(t, strings.Replace(bundles("- {sku: six, components: [{sku: bottle, units: 6}]}"), "units: 12", "units: 11", 1))
	for status, want := range map[sale.Status]string{
		sale.Draft:  "",
		sale.Paused: "item carton: stays a bundle of 12 of bottle once the sale has been opened, because its orders are compared with their reservations by that: sell the other one under a SKU of its own",
	} {
		change, err := sale.Plan(was, status, will, false)
		if got := fmt.Sprint(err); want != "" && got != want || want == "" && err != nil {
			t.Errorf("%s: %v", status, err)
		}
		if err != nil {
			continue
		}
		if want := []string{"item carton: a bundle of 12 of bottle → a bundle of 11 of bottle", "item carton: max 833 → 909", "new item six: a bundle of 6 of bottle"}; len(change.Deltas) != 0 || !sameTexts(change.Notes, want) {
			t.Errorf("changes %v, notes %q", change.Deltas, change.Notes)
		}
	}
	// a bundle may come and go at any time, an item may not become one
	change, err := sale.Plan(will, sale.Open, was, false)
	if err == nil || change != nil {
		t.Errorf("a carton of 11 became one of 12: %v", change)
	}
	plain := parsed(t, strings.Replace(bundles(""), "components: [{sku: bottle, units: 12}]", "stock: 8", 1))
	if _, err := sale.Plan(plain, sale.Open, was, false); err == nil || !strings.Contains(err.Error(), "item carton: stays stock 8") {
		t.Errorf("an item became a bundle: %v", err)
	}
	without := parsed(t, strings.Replace(bundles(""), "- {sku: carton, ids: [v9], components: [{sku: bottle, units: 12}]}\n", "", 1))
	if change, err := sale.Plan(was, sale.Open, without, false); err != nil || len(change.Deltas) != 0 || !strings.Contains(fmt.Sprint(change.Notes), "leave it in the file while it has orders") {
		t.Errorf("the carton was taken out: %+v, %v", change, err)
	}
}

func sameTexts(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }

// Limits that no order can keep, and those that count a bundle by its units, are named.
func TestAdviceOnLimits(t *testing.T) {
	for limit, want := range map[string]string{
		"{per: buyer, every: sale, count: units, max: 6, sku: bottle}":  "the item carton cannot be bought: an order of it counts at least 12 units, and the limit of units per buyer and sale of item bottle is 6",
		"{per: buyer, every: sale, count: units, max: 24, sku: bottle}": "",
		"{per: buyer, every: sale, count: units, max: 1, sku: carton}":  "",
		"{per: buyer, every: sale, count: orders, max: 1}":              "",
		"{per: buyer, every: sale, count: units, max: 24}":              "the limit of units per buyer and sale counts one carton as the 12 units of its components; to count bundles, narrow a limit with sku: carton (and so with 1 more)",
	} {
		s := parsed(t, bundles("limits: ["+limit+"]\n"))
		if got := strings.Join(s.Advice(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)), "\n"); got != want {
			t.Errorf("%s: %s\nwant %s", limit, got, want)
		}
	}
	alone := parsed(t, strings.Replace(bundles("limits: [{per: buyer, every: order, count: units, max: 3, sku: bottle}]\n"), "ids: [v1]", "min: 4", 1))
	if got := alone.Advice(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)); len(got) != 1 || !strings.HasSuffix(got[0], "(and so with 1 more)") || !strings.HasPrefix(got[0], "the item bottle cannot be bought: an order of it counts at least 4 units") {
		t.Errorf("a min above a limit: %q", got)
	}
}
