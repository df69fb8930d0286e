package sale_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
)

type schemaObject struct {
	Required             []string
	Properties           map[string]map[string]any
	AdditionalProperties *bool
	Defs                 map[string]schemaObject `json:"$defs"`
}

// The schema has the fields of the sale file and no other, and its bounds.
func TestSchema(t *testing.T) {
	var root schemaObject
	if err := json.Unmarshal(sale.Schema, &root); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		object schemaObject
		of     any
		more   []string
	}{
		"a sale":  {root, sale.Sale{}, []string{"stock_from", "bought_from"}},
		"an item": {root.Defs["item"], sale.Item{}, nil},
		"a limit": {root.Defs["limit"], sale.Limit{}, nil},
	} {
		want := c.more
		for _, f := range reflect.VisibleFields(reflect.TypeOf(c.of)) {
			if field, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); field != "" {
				want = append(want, field)
			}
		}
		var have []string
		for field := range c.object.Properties {
			have = append(have, field)
		}
		slices.Sort(want)
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%s has %q, the schema %q", name, want, have)
		}
		if c.object.AdditionalProperties == nil || *c.object.AdditionalProperties {
			t.Errorf("the schema of %s takes unknown fields", name)
		}
	}
	for what, c := range map[string]struct {
		got  any
		want float64
	}{
		"items":  {root.Properties["items"]["maxItems"], sale.MaxItems},
		"limits": {root.Properties["limits"]["maxItems"], sale.MaxLimits},
		"stock":  {root.Defs["item"].Properties["stock"]["maximum"], sale.MaxUnits},
		"max":    {root.Defs["item"].Properties["max"]["maximum"], sale.MaxQuantity},
	} {
		if c.got != c.want {
			t.Errorf("%s: the schema has %v, want %v", what, c.got, c.want)
		}
	}
}
