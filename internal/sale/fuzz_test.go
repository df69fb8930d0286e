package sale_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
)

// FuzzParse: no input makes Parse panic or fail without saying what is wrong;
// what it takes survives the way through Redis, and is fit for everything else.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		double11, with("{sku: 020, stock: 0}"), with("{sku: a, regions: {b: 1, \"c.d\": 2}, min: 2}"),
		head + "items:\n- sku: |-\n    a\n  stock: 1\n", head + "items: [&a {sku: a, stock: 1}, *a, {<<: *a}]\n",
		head + oneItem + "---\n" + head, limited("{per: buyer, every: sale, count: units, max: 1, sku: a}"),
		limited("{per: [phone, buyer], every: week, count: orders, max: 1}") + "missing: skip\n", limitsOfAllKinds, head + oneItem + "max_hold: 1h30m\n", head + oneItem + "max_hold: 3600s\n",
		head + oneItem + "unpaid: off\n", head + oneItem + "unpaid: {per: [ip, buyer], at_once: 2, ended: 3, within: 90m}\n", head + oneItem + "unpaid: {}\n",
		"{\"id\":\"s\",\n\t\"starts_at\":\"2026-11-11T00:00:00.5+08:00\",\"ends_at\":\"2026-11-12T00:00:00Z\",\"items\":[{\"sku\":1e3,\"stock\":1}]}",
		"{", "[", "? {", "- - - -", "%YAML 1.1\n---\n{}", "\ufeff{}", "{\"a\":", "!!binary x", "a: >\n\t", "{? [a]: b}", "#", "...", "--- ---",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := sale.Parse(data)
		if err != nil {
			problems, ok := errors.AsType[sale.Problems](err)
			if !ok || len(problems) == 0 || len(problems) > 101 {
				t.Fatalf("%T: %v", err, err)
			}
			for _, p := range problems {
				if p.Text == "" || p.Line < 0 || len(p.String()) > 1000 {
					t.Errorf("a poor problem: %+v", p)
				}
			}
			return
		}
		stored, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := sale.Decode(stored)
		if err != nil {
			t.Fatalf("cannot be decoded: %v\n%s", err, stored)
		}
		again, err := json.Marshal(decoded)
		if err != nil || string(again) != string(stored) || !decoded.Equal(s) {
			t.Fatalf("decoded to another sale (%v):\n%s\n%s", err, stored, again)
		}
		here := *s
		here.MovedIn = nil
		if written, err := sale.Parse(s.YAML("")); err != nil || !written.Equal(&here) {
			t.Errorf("written as %s, it is another sale (%v)", s.YAML(""), err)
		}
		if err := s.Validate(); err != nil {
			t.Errorf("Validate refuses what Parse took: %v", err)
		}
		change, err := sale.Plan(s, sale.Closed, decoded, false)
		if err != nil || !change.Same {
			t.Errorf("a change of nothing: %+v, %v", change, err)
		}
		if _, err := sale.Plan(nil, sale.Draft, s, false); err != nil {
			t.Errorf("cannot be applied: %v", err)
		}
	})
}
