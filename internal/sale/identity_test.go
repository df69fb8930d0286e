package sale_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
)

func TestUnion(t *testing.T) {
	for _, test := range []struct {
		kinds []string
		want  sale.Identities
		json  string
	}{
		{[]string{"phone"}, "phone", `"phone"`},
		{[]string{"phone", "buyer", "address"}, "address+buyer+phone", `["address","buyer","phone"]`},
		{[]string{"buyer", "buyer"}, "buyer", `"buyer"`},
		{nil, "", `""`},
	} {
		got := sale.Union(test.kinds...)
		if got != test.want || got.IsUnion() != strings.Contains(test.json, "[") {
			t.Errorf("%v: got %q, want %q", test.kinds, got, test.want)
		}
		data, err := json.Marshal(got)
		if err != nil || string(data) != test.json {
			t.Errorf("%v: JSON is %s (%v), want %s", test.kinds, data, err, test.json)
		}
		var again sale.Identities
		if err := json.Unmarshal(data, &again); err != nil || again != got {
			t.Errorf("%s is read as %q (%v)", data, again, err)
		}
	}
	for _, text := range []string{`"a+b"`, `{}`, `[1]`, `7`} {
		var i sale.Identities
		if err := json.Unmarshal([]byte(text), &i); err == nil {
			t.Errorf("%s is read as %q", text, i)
		}
	}
	if got := slices.Collect(sale.Identities("buyer+ip").All); !slices.Equal(got, []string{"buyer", "ip"}) {
		t.Errorf("all are %q", got)
	}
	for first := range sale.Identities("buyer+ip").All {
		if first != "buyer" {
			t.Errorf("the first is %q", first)
		}
		break
	}
}

func TestUnionsInAFile(t *testing.T) {
	text := func(per string) string {
		return limited("{per: " + per + ", every: day, count: units, max: 1}")
	}
	for per, want := range map[string]string{
		"phone": `"phone"`, "[phone]": `"phone"`, `"ip"`: `"ip"`, "[phone, buyer]": `["buyer","phone"]`, "[ip, device, address, phone, buyer]": `["address","buyer","device","ip","phone"]`,
	} {
		s := mustParse(t, text(per))
		data, err := json.Marshal(s)
		if err != nil || !strings.Contains(string(data), `"limits":[{"per":`+want+`,"every":"day","max":1,"count":"units"}]}`) {
			t.Errorf("per: %s is stored as %s (%v)", per, data, err)
		}
		again, err := sale.Decode(data)
		if err != nil || !again.Equal(s) {
			t.Errorf("per: %s: decoded %+v, %v", per, again, err)
		}
	}
	if a, b := mustParse(t, text("[phone, buyer]")), mustParse(t, text("[buyer, phone]")); !a.Equal(b) || a.Limits[0] != b.Limits[0] {
		t.Error("the order of a union's identities makes a difference")
	}
}

func TestUnionIsAKindOfItsOwn(t *testing.T) {
	id := func(per sale.Identities) string {
		return sale.Limit{Per: per, Every: "day", Count: "units"}.ID()
	}
	if got, want := id("phone+buyer"), "buyer+phone:day:units"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	seen := map[string]sale.Identities{}
	for _, per := range []sale.Identities{"buyer", "phone", "buyer+phone", "buyer+phone+ip", "buyer%2Bphone", "buyer:phone"} {
		if other, twice := seen[id(per)]; twice {
			t.Errorf("%s and %s are both %s", per, other, id(per))
		}
		seen[id(per)] = per
	}
}

func TestMissing(t *testing.T) {
	for text, want := range map[string]sale.Missing{"": "refuse", "missing: refuse\n": "refuse", "missing: skip\n": "skip", "missing: \"skip\"\n": "skip"} {
		s := mustParse(t, head+oneItem+text)
		if s.Missing != want {
			t.Errorf("%q is read as %q, want %q", text, s.Missing, want)
		}
		data, err := json.Marshal(s)
		if err != nil || strings.Contains(string(data), "missing") != (want == "skip") {
			t.Errorf("%q is stored as %s (%v)", text, data, err)
		}
		again, err := sale.Decode(data)
		if err != nil || again.Missing != want || !again.Equal(s) {
			t.Errorf("%q is decoded to %+v, %v", text, again, err)
		}
	}
	literal := sale.Sale{}
	if refuse := (sale.Sale{Missing: sale.RefuseMissing}); !literal.Equal(&refuse) {
		t.Error("the default makes a difference")
	}
	if skip := (sale.Sale{Missing: sale.SkipMissing}); literal.Equal(&skip) {
		t.Error("skip makes no difference")
	}
}
