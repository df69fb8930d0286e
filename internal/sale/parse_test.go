package sale_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

const double11 = `
id: double11
starts_at: 2026-11-11T00:00:00+08:00
ends_at:   "2026-11-12T00:00:00+08:00"   # the quotes make no difference
timezone:  Asia/Shanghai
items:
  - {sku: "20002001", stock: 100, min: 1, max: 2}
  - {sku: 20002002, regions: {beijing: 40, shanghai: 60}}
limits:
  - {per: buyer, every: sale, max: 2, count: units}
  - {per: buyer, every: sale, max: 1, count: orders, sku: 20002001}
`

func beijing(value string) time.Time {
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		panic(err)
	}
	return t
}

func double11Value() sale.Sale {
	return sale.Sale{
		ID:       "double11",
		StartsAt: beijing("2026-11-11T00:00:00+08:00"),
		EndsAt:   beijing("2026-11-12T00:00:00+08:00"),
		Timezone: "Asia/Shanghai",
		Items: []sale.Item{
			{SKU: "20002001", Stock: 100, Min: 1, Max: 2},
			{SKU: "20002002", Regions: map[string]int64{"beijing": 40, "shanghai": 60}},
		},
		Limits: []sale.Limit{
			{Per: "buyer", Every: "sale", Max: 2, Count: "units"},
			{Per: "buyer", Every: "sale", Max: 1, Count: "orders", SKU: "20002001"},
		},
	}
}

func mustParse(t *testing.T, text string) *sale.Sale {
	t.Helper()
	s, err := sale.Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse:\n%v\nof\n%s", err, text)
	}
	return s
}

func mustNew(t *testing.T, value sale.Sale) *sale.Sale {
	t.Helper()
	s, err := sale.New(value)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return s
}

func TestParseReadsAWholeSale(t *testing.T) {
	got, want := mustParse(t, double11), mustNew(t, double11Value())
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if min, max := got.Items[1].Min, got.Items[1].Max; min != 1 || max != sale.MaxQuantity {
		t.Errorf("defaults of min and max are %d and %d, want 1 and %d", min, max, sale.MaxQuantity)
	}
}

func TestParseReadsJSONAsItReadsYAML(t *testing.T) {
	for name, text := range map[string]string{
		"plain": `{"id":"double11","starts_at":"2026-11-11T00:00:00+08:00","ends_at":"2026-11-12T00:00:00+08:00",
			"timezone":"Asia/Shanghai","items":[{"sku":"20002001","stock":100,"min":1,"max":2},
			{"sku":20002002,"regions":{"beijing":40,"shanghai":60}}],"limits":[{"per":"buyer","every":"sale","max":2,"count":"units"},
			{"per":"buyer","every":"sale","max":1,"count":"orders","sku":"20002001"}]}`,
		"tabs, escapes, white space and a byte order mark": "\ufeff\t\r\n {\t\"id\"\t:\t\"double11\",\n\t\"starts_at\": \"2026-11-11T00:00:00+08:00\",\n" +
			"\t\"ends_at\": \"2026-11-12T00:00:00+08:00\",\n\t\"timezone\": \"Asia\\/Shanghai\",\n\t\"items\": [\n" +
			"\t\t{\"s\\u006bu\": \"\\u00320002001\", \"stock\": 100, \"min\": 1, \"max\": 2},\n" +
			"\t\t{\"sku\": 20002002, \"regions\": {\"beijing\": 40, \"shanghai\": 60}}],\n\t\"limits\": [" +
			"{\"per\":\"buyer\",\"every\":\"sale\",\"max\":2,\"count\":\"units\"},\n" +
			"\t{\"per\":\"buyer\",\"every\":\"sale\",\"max\":1,\"count\":\"orders\",\"sku\":\"20002001\"}]\n}\t\n",
		"YAML that begins like JSON": `{id: double11, starts_at: 2026-11-11T00:00:00+08:00, # not JSON
			ends_at: 2026-11-12T00:00:00+08:00, timezone: Asia/Shanghai, items: [{sku: "20002001", stock: 100, max: 2},
			{sku: 20002002, regions: {beijing: 40, shanghai: 60}}], limits: [{per: buyer, every: sale, max: 2, count: units},
			{per: buyer, every: sale, max: 1, count: orders, sku: 20002001}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := mustParse(t, text), mustNew(t, double11Value()); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

// with is a sale whose only item is written like this.
func with(item string) string {
	return "id: s\nstarts_at: 2026-11-11T00:00:00Z\nends_at: 2026-11-12T00:00:00Z\nitems:\n  - " + item + "\n"
}

func TestNamesAreTakenByTheirText(t *testing.T) {
	for text, want := range map[string]string{
		"20002001": "20002001", "020": "020", "1e3": "1e3", "0x1F": "0x1F", "0o17": "0o17", "1_000": "1_000", "007.50": "007.50",
		"+5": "+5", "-5": "-5", ".inf": ".inf", "2026-11-11": "2026-11-11", "no": "no", "y": "y", `"true"`: "true", `'020'`: "020",
		`"null"`: "null", "a@b": "a@b", "a|b": "a|b", `"<<"`: "<<", "9007199254740993": "9007199254740993",
	} {
		s := mustParse(t, with("{sku: "+text+", stock: 1}"))
		if got := s.Items[0].SKU; got != want {
			t.Errorf("sku: %s is read as %q, want %q", text, got, want)
		}
		s = mustParse(t, with("{sku: x, regions: {"+text+": 7}}"))
		if units, ok := s.Items[0].Regions[want]; !ok || units != 7 {
			t.Errorf("region %s is read as %v, want %q", text, s.Items[0].Regions, want)
		}
	}
	for text, want := range map[string]string{"20002001": "20002001", "1e3": "1e3", "-5": "-5", "1.50": "1.50"} {
		s := mustParse(t, `{"id":"s","starts_at":"2026-11-11T00:00:00Z","ends_at":"2026-11-12T00:00:00Z","items":[{"sku":`+text+`,"stock":1}]}`)
		if got := s.Items[0].SKU; got != want {
			t.Errorf("JSON sku %s is read as %q, want %q", text, got, want)
		}
	}
}

func TestTimesKeepTheirOffset(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-11T00:00:00+08:00":      "2026-11-11T00:00:00+08:00",
		`"2026-11-11T00:00:00+08:00"`:    "2026-11-11T00:00:00+08:00",
		"2026-11-11T00:00:00.125-03:30":  "2026-11-11T00:00:00.125-03:30",
		"2026-11-11T00:00:00+00:00":      "2026-11-11T00:00:00Z",
		"2026-11-11T00:00:00.000000001Z": "2026-11-11T00:00:00.000000001Z",
	} {
		s := mustParse(t, "id: s\nstarts_at: "+text+"\nends_at: 2026-11-13T00:00:00Z\nitems: [{sku: a, stock: 0}]\n")
		if got := s.StartsAt.Format(time.RFC3339Nano); got != want {
			t.Errorf("%s is kept as %s, want %s", text, got, want)
		}
	}
}

func TestJSONIsCanonical(t *testing.T) {
	const want = `{"id":"double11","starts_at":"2026-11-11T00:00:00+08:00","ends_at":"2026-11-12T00:00:00+08:00",` +
		`"timezone":"Asia/Shanghai","items":[{"sku":"20002001","stock":100,"min":1,"max":2},` +
		`{"sku":"20002002","regions":{"beijing":40,"shanghai":60},"min":1,"max":10000}],` +
		`"limits":[{"per":"buyer","every":"sale","max":2,"count":"units"},{"per":"buyer","every":"sale","max":1,"count":"orders","sku":"20002001"}]}`
	s := mustParse(t, double11)
	got, err := json.Marshal(s)
	if err != nil || string(got) != want {
		t.Fatalf("got  %s (%v)\nwant %s", got, err, want)
	}
	again, err := sale.Decode(got)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again, s) {
		t.Errorf("decoded %+v\nwant    %+v", again, s)
	}

	bare := mustParse(t, with("{sku: a, stock: 0}"))
	const wantBare = `{"id":"s","starts_at":"2026-11-11T00:00:00Z","ends_at":"2026-11-12T00:00:00Z","timezone":"UTC","items":[{"sku":"a","stock":0,"min":1,"max":10000}]}`
	if got, err := json.Marshal(bare); err != nil || string(got) != wantBare {
		t.Errorf("got  %s (%v)\nwant %s", got, err, wantBare)
	}
}

// The ids of an item stay, in their order, and its JSON has them.
func TestIDs(t *testing.T) {
	s := mustParse(t, head+"items:\n  - {sku: a, ids: [7, b], stock: 1}\n  - {sku: c, stock: 1}\n")
	text, err := json.Marshal(s)
	if err != nil || !strings.Contains(string(text), `{"sku":"a","ids":["7","b"],"stock":1,`) || !strings.Contains(string(text), `{"sku":"c","stock":1,`) {
		t.Fatalf("%s, %v", text, err)
	}
	decoded, err := sale.Decode(text)
	if err != nil || !decoded.Equal(s) {
		t.Fatalf("%+v, %v", decoded, err)
	}
	copied := mustNew(t, *s)
	if !copied.Equal(s) {
		t.Fatalf("%+v", copied)
	}
	for _, name := range []string{"a", "7", "b"} {
		for _, s := range []*sale.Sale{s, decoded, copied, {Items: s.Items}} {
			if item, ok := s.Item(name); !ok || item.SKU != "a" {
				t.Errorf("%s is %+v", name, item)
			}
		}
	}
	copied.Items[0].IDs[1] = "d"
	if copied.Equal(s) {
		t.Error("sales with other ids are equal")
	}
}

func TestDecodeTakesOnlyJSON(t *testing.T) {
	for _, text := range []string{double11, "", "null", "[]", `{"id":"s",}`, `{} {}`, with("{sku: a, stock: 1}")} {
		if s, err := sale.Decode([]byte(text)); err == nil {
			t.Errorf("Decode took %q: %+v", text, s)
		}
	}
}

func TestNewCopiesAndFillsIn(t *testing.T) {
	value := double11Value()
	value.Timezone = ""
	value.StartsAt = time.Now().In(time.FixedZone("home", 3600)) // with a monotonic clock
	value.EndsAt = value.StartsAt.Add(time.Hour)
	s := mustNew(t, value)
	value.Items[0].Stock = 7
	value.Items[1].Regions["beijing"] = 7
	value.Limits[0].Max = 7
	if s.Items[0].Stock != 100 || s.Items[1].Regions["beijing"] != 40 || s.Limits[0].Max != 2 {
		t.Errorf("New shares memory with its argument: %+v", s)
	}
	if s.Timezone != "UTC" || s.Items[1].Min != 1 || s.Items[1].Max != sale.MaxQuantity {
		t.Errorf("defaults are missing: %+v", s)
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := sale.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again, s) {
		t.Errorf("decoded %+v\nwant    %+v", again, s)
	}
	if err := (&value).Validate(); err != nil {
		t.Errorf("Validate: %v", err)
	}
	if value.Timezone != "" || value.Items[1].Max != 0 {
		t.Errorf("Validate changed the sale: %+v", value)
	}
}

func TestEveryZoneIsKnownWithoutTheSystem(t *testing.T) {
	t.Setenv("ZONEINFO", "")
	for _, zone := range []string{"UTC", "Asia/Shanghai", "America/Argentina/Buenos_Aires", "Asia/Kathmandu"} {
		mustParse(t, strings.Replace(with("{sku: a, stock: 1}"), "items:", "timezone: "+zone+"\nitems:", 1))
	}
}

func TestTheLargestSale(t *testing.T) {
	text := bigSale()
	s := mustParse(t, string(text))
	if len(s.Items) != sale.MaxItems || len(s.Cells()) != sale.MaxItems {
		t.Fatalf("%d items, %d cells", len(s.Items), len(s.Cells()))
	}
	last := fmt.Sprintf("p-%d", sale.MaxItems-1)
	if item, ok := s.Item(last); !ok || item.SKU != last || item.Stock != sale.MaxUnits {
		t.Errorf("the last item: %+v, %v", item, ok)
	}
	_, err := sale.Parse([]byte(head + "items:\n" + strings.Repeat("- {}\n", sale.MaxItems+1)))
	if want := "line 5: items: must have at most 100000 entries, not 100001"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
