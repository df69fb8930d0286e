package attempt_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
)

// want in these tables is "" for a pass, else how the refusal begins.
type jsonCase struct {
	body, want string
}

func runJSON(t *testing.T, rd *attempt.Reader, cases map[string]jsonCase) {
	t.Helper()
	for name, tc := range cases {
		r := request("POST", "/api/order", jsonType, tc.body)
		_, refusal := whole(t, rd, r, attempt.Env{})
		got := describe(refusal)
		if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestJSONDocuments(t *testing.T) {
	runJSON(t, lineReader(t, "{json.sku}", "{json.quantity}"), map[string]jsonCase{
		"plain":                 {`{"sku":"a","quantity":2}`, ""},
		"space all around":      {" \t\r\n{ \"sku\" : \"a\" , \"quantity\" : 2 } \n", ""},
		"other names of a kind": {`{"sku":"a","x":1e309,"y":[{},[],null,true,false,-0.5e-3],"x":2}`, ""},
		"escaped name":          {`{"\u0073ku":"a"}`, ""},
		"empty body":            {"", "malformed json.sku: it is missing"},
		"only space":            {" ", "malformed the body: it is not a JSON object"},
		"empty object":          {"{}", "malformed json.sku: it is missing"},
		"array":                 {`[{"sku":"a"}]`, "malformed the body: it is not a JSON object"},
		"string":                {`"sku"`, "malformed the body: it is not a JSON object"},
		"null":                  {`null`, "malformed the body: it is not a JSON object"},
		"byte order mark":       {"\xef\xbb\xbf{\"sku\":\"a\"}", "malformed the body: it begins with a byte order mark"},
		"UTF-16":                {"\xff\xfe{\x00}\x00", "malformed the body: it is not UTF-8"},
		"invalid UTF-8":         {"{\"sku\":\"a\",\"note\":\"\xff\"}", "malformed the body: it is not UTF-8"},
		"overlong UTF-8":        {"{\"sku\":\"a\",\"\xc1\xb3ku\":\"b\"}", "malformed the body: it is not UTF-8"},
		"two documents":         {`{"sku":"a"}{"sku":"b"}`, "malformed the body: there is more"},
		"junk behind":           {`{"sku":"a"}x`, "malformed the body: there is more"},
		"NUL behind":            {"{\"sku\":\"a\"}\x00", "malformed the body: there is more"},
		"truncated":             {`{"sku":"a","quantity":`, "malformed the body: the JSON document ends early"},
		"truncated string":      {`{"sku":"a`, "malformed the body: the JSON document ends early"},
		"trailing comma":        {`{"sku":"a",}`, "malformed the body: it is not valid JSON"},
		"comment":               {`{"sku":"a"/**/}`, "malformed the body: it is not valid JSON"},
		"single quotes":         {`{'sku':'a'}`, "malformed the body: it is not valid JSON"},
		"bare name":             {`{sku:"a"}`, "malformed the body: it is not valid JSON"},
		"leading zero":          {`{"sku":"a","x":01}`, "malformed the body: it is not valid JSON"},
		"NaN":                   {`{"sku":"a","x":NaN}`, "malformed the body: it is not valid JSON"},
		"raw newline in string": {"{\"sku\":\"a\",\"x\":\"\n\"}", "malformed the body: a control character"},
		"bad escape":            {`{"sku":"\x41"}`, "malformed the body: it is not valid JSON"},
		"bad unicode escape":    {`{"sku":"\u00g1"}`, "malformed the body: it is not valid JSON"},
		"32 levels":             {nested(31), ""},
		"33 levels":             {nested(32), "malformed the body: it nests deeper"},
		"10,000 levels":         {nested(10_000), "malformed the body: it nests deeper"},
		"10,000 open":           {strings.Repeat(`{"a":`, 10_000), "malformed the body: it nests deeper"},
	})
}

// nested is a document with n arrays inside of its object.
func nested(n int) string {
	return `{"sku":"a","x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}"
}

func TestJSONNames(t *testing.T) {
	runJSON(t, lineReader(t, "{json.order.sku}", "{json.order.quantity}"), map[string]jsonCase{
		"once":                   {`{"order":{"sku":"a"}}`, ""},
		"twice":                  {`{"order":{"sku":"a","sku":"a"}}`, "malformed json.order.sku: the name appears twice"},
		"twice, once escaped":    {`{"order":{"sku":"a","\u0073ku":"b"}}`, "malformed json.order.sku: the name appears twice"},
		"in another case":        {`{"order":{"sku":"a","SKU":"b"}}`, "malformed json.order.sku: the name appears in another spelling"},
		"in another case alone":  {`{"order":{"sku":"a","Quantity":5}}`, "malformed json.order.quantity: the name appears in another spelling"},
		"Kelvin sign":            {"{\"order\":{\"sku\":\"a\",\"s\u212au\":\"b\"}}", "malformed json.order.sku: the name appears in another spelling"},
		"long s":                 {`{"order":{"sku":"a","\u017fku":"b"}}`, "malformed json.order.sku: the name appears in another spelling"},
		"dotless i":              {"{\"order\":{\"sku\":\"a\",\"quant\u0131ty\":5}}", "malformed json.order.quantity: the name appears in another spelling"},
		"dotted capital I":       {"{\"order\":{\"sku\":\"a\",\"quant\u0130ty\":5}}", "malformed json.order.quantity: the name appears in another spelling"},
		"the object twice":       {`{"order":{"sku":"a"},"order":{"sku":"b"}}`, "malformed json.order: the name appears twice"},
		"the object in case":     {`{"Order":{"sku":"b"},"order":{"sku":"a"}}`, "malformed json.order: the name appears in another spelling"},
		"NUL in a name":          {`{"order":{"sku":"a","sku\u0000":"b"}}`, "malformed json.order: a name holds NUL"},
		"half a surrogate":       {`{"order":{"sku":"a","sku\ud800":"b"}}`, "malformed json.order: a name holds NUL or half"},
		"the same name outside":  {`{"sku":"b","order":{"sku":"a"},"SKU":"c"}`, ""},
		"twice beside the path":  {`{"x":1,"X":2,"x":3,"order":{"sku":"a","x":1,"x":2}}`, ""},
		"_method":                {`{"order":{"sku":"a"},"_method":"PUT"}`, "malformed _method: a request cannot change its method"},
		"_Method":                {`{"order":{"sku":"a"},"\u005fMethod":"PUT"}`, "malformed _method:"},
		"_method, not a root's":  {`{"order":{"sku":"a","_method":"PUT"}}`, ""},
		"an object, not a value": {`{"order":{"sku":{"a":1}}}`, "malformed json.order.sku: it is neither"},
		"an array for an object": {`{"order":[{"sku":"a"}]}`, "malformed json.order: it is not an object"},
		"a text for an object":   {`{"order":"sku"}`, "malformed json.order: it is not an object"},
		"null for an object":     {`{"order":null}`, "malformed json.order.sku: it is missing"},
	})
}

func TestJSONPrototypes(t *testing.T) {
	const refused = ": it names a JavaScript object's prototype"
	runJSON(t, lineReader(t, "{json.order.sku}", "{json.order.quantity}"), map[string]jsonCase{
		"in a source's object":  {`{"order":{"sku":"a","__proto__":{"quantity":5}}}`, "malformed json.order" + refused},
		"around it":             {`{"order":{"sku":"a"},"constructor":{"prototype":{"quantity":5}}}`, "malformed json" + refused},
		"escaped":               {`{"order":{"sku":"a","\u005f_proto__":{"quantity":5}}}`, "malformed json.order" + refused},
		"prototype":             {`{"order":{"sku":"a","prototype":1}}`, "malformed json.order" + refused},
		"where no source reads": {`{"order":{"sku":"a"},"page":{"constructor":"x","__proto__":1}}`, ""},
		"in another case":       {`{"order":{"sku":"a","Constructor":1}}`, ""},
		"as a value":            {`{"order":{"sku":"__proto__"}}`, ""},
	})
	lines := mustReader(t, attempt.Spec{
		Buyer: values(t, "{header.X-User-Id}"),
		Lines: &attempt.Lines{Array: values(t, "{json.items}")[0], SKU: "sku", Quantity: "count"},
	})
	runJSON(t, lines, map[string]jsonCase{
		"in a line": {`{"items":[{"sku":"a"},{"sku":"b","__proto__":{"count":5}}]}`, "malformed json.items" + refused},
	})
}

func TestJSONSKU(t *testing.T) {
	runJSON(t, lineReader(t, "{json.sku}", ""), map[string]jsonCase{
		"string":          {`{"sku":"20002001"}`, ""},
		"whole number":    {`{"sku":20002001}`, ""},
		"zero":            {`{"sku":0}`, ""},
		"2^53-1":          {`{"sku":9007199254740991}`, ""},
		"2^53":            {`{"sku":9007199254740992}`, "malformed json.sku: the number is above 2^53"},
		"long number":     {`{"sku":12345678901234567890}`, "malformed json.sku: the number is above 2^53"},
		"long digits":     {`{"sku":"12345678901234567890"}`, ""},
		"escapes":         {`{"sku":"\u0061\/b"}`, ""},
		"negative":        {`{"sku":-1}`, "malformed json.sku: it is neither"},
		"minus zero":      {`{"sku":-0}`, "malformed json.sku: it is neither"},
		"fraction":        {`{"sku":1.0}`, "malformed json.sku: it is neither"},
		"exponent":        {`{"sku":1e1}`, "malformed json.sku: it is neither"},
		"1e309":           {`{"sku":1e309}`, "malformed json.sku: it is neither"},
		"true":            {`{"sku":true}`, "malformed json.sku: it is neither"},
		"false":           {`{"sku":false}`, "malformed json.sku: it is neither"},
		"null":            {`{"sku":null}`, "malformed json.sku: it is missing"},
		"empty":           {`{"sku":""}`, "malformed json.sku: it is missing"},
		"array":           {`{"sku":["a"]}`, "malformed json.sku: it is neither"},
		"object":          {`{"sku":{}}`, "malformed json.sku: it is neither"},
		"NUL":             {`{"sku":"a\u0000b"}`, "malformed json.sku: it holds NUL"},
		"half surrogate":  {`{"sku":"a\udc00"}`, "malformed json.sku: it holds NUL or half"},
		"surrogates":      {`{"sku":"\ud83d\ude00"}`, "malformed json.sku: it is not printable ASCII"},
		"not ASCII":       {`{"sku":"ä"}`, "malformed json.sku: it is not printable ASCII"},
		"space":           {`{"sku":"a b"}`, "malformed json.sku: it is not printable ASCII"},
		"space around":    {`{"sku":" a"}`, "malformed json.sku: it is not printable ASCII"},
		"newline":         {`{"sku":"a\n"}`, "malformed json.sku: it is not printable ASCII"},
		"delete":          {"{\"sku\":\"a\x7f\"}", "malformed json.sku: it is not printable ASCII"},
		"128 characters":  {`{"sku":"` + strings.Repeat("a", 128) + `"}`, ""},
		"129 characters":  {`{"sku":"` + strings.Repeat("a", 129) + `"}`, "malformed json.sku: it is longer"},
		"much too long":   {`{"sku":"` + strings.Repeat("a", 60_000) + `"}`, "malformed json.sku: it is longer"},
		"the whole limit": {`{"sku":"` + strings.Repeat("a", 70_000) + `"}`, "body_too_large"},
	})
}

func TestJSONQuantity(t *testing.T) {
	const bad = "malformed json.quantity: it is not a whole number"
	const typed = "malformed json.quantity: it is neither"
	rd := lineReader(t, "{json.sku}", "{json.quantity}")
	for literal, tc := range map[string]struct {
		want     string
		quantity int64
	}{
		`1`: {"", 1}, `"1"`: {"", 1}, `10000`: {"", 10_000}, `"10000"`: {"", 10_000}, `"\u0031"`: {"", 1},
		`0`: {bad, 0}, `"0"`: {bad, 0}, `"01"`: {bad, 0}, `"+1"`: {bad, 0}, `"-1"`: {bad, 0},
		`" 1"`: {bad, 0}, `"1 "`: {bad, 0}, `"1.0"`: {bad, 0}, `"1e1"`: {bad, 0}, `"0x1"`: {bad, 0},
		`"１"`: {bad, 0}, `"1,000"`: {bad, 0}, `""`: {bad, 0}, `null`: {bad, 0}, `100000`: {bad, 0},
		`"100000"`: {bad, 0}, `9007199254740991`: {bad, 0},
		`-1`: {typed, 0}, `1.0`: {typed, 0}, `0.5`: {typed, 0}, `1e1`: {typed, 0}, `1E+1`: {typed, 0}, `1e309`: {typed, 0},
		`true`: {typed, 0}, `[1]`: {typed, 0}, `{}`: {typed, 0}, `{"a":1}`: {typed, 0},
		`18446744073709551617`: {"malformed json.quantity: the number is above 2^53", 0},
		`10001`:                {"quantity", 0}, `99999`: {"quantity", 0}, `"99999"`: {"quantity", 0},
	} {
		a, refusal := whole(t, rd, request("POST", "/", jsonType, `{"sku":"a","quantity":`+literal+`}`), attempt.Env{})
		got := describe(refusal)
		if tc.want != "" {
			if !strings.HasPrefix(got, tc.want) || len(a.Lines) != 0 {
				t.Errorf("%s: got %q, want %q", literal, got, tc.want)
			}
			continue
		}
		if refusal != nil || len(a.Lines) != 1 || a.Lines[0].Quantity != tc.quantity {
			t.Errorf("%s: got %+v, %q", literal, a.Lines, got)
		}
	}
	a, refusal := whole(t, rd, request("POST", "/", jsonType, `{"sku":"a"}`), attempt.Env{})
	if refusal != nil || a.Lines[0].Quantity != 1 {
		t.Errorf("absent quantity: got %+v, %q", a.Lines, describe(refusal))
	}
}

func TestNamesBeyondASCII(t *testing.T) {
	const spelled = "malformed json.Größe_ς: the name appears in another spelling"
	runJSON(t, lineReader(t, "{json.Größe_ς}", ""), map[string]jsonCase{
		"as configured":   {`{"Größe_ς":"a"}`, ""},
		"escaped":         {`{"Gr\u00f6\u00DFe_\u03c2":"a"}`, ""},
		"upper case":      {`{"Größe_ς":"a","GRÖẞE_Σ":"b"}`, spelled},
		"another sigma":   {`{"größe_σ":"b"}`, spelled},
		"another name":    {`{"Größe_ς":"a","Größe_":"b","Größe":"c","Größe_ςς":"d"}`, ""},
		"decomposed name": {`{"Größe_ς":"a","Gro\u0308ße_ς":"b"}`, ""},
	})
}

// What is read by its index is all of its array: the shop would sell the other elements too.
func TestElementsOfArrays(t *testing.T) {
	const more = ": it has more elements than are read here"
	runJSON(t, lineReader(t, "{json.items.0.sku}", "{json.counts.0}"), map[string]jsonCase{
		"both there":    {`{"items":[{"sku":"a"}],"counts":[2]}`, ""},
		"too short":     {`{"items":[]}`, "malformed json.items.0.sku: it is missing"},
		"empty":         {`{"items":[ ],"counts":[]}`, "malformed json.items.0.sku: it is missing"},
		"object":        {`{"items":{"0":{"sku":"a"}}}`, "malformed json.items: it is not an array"},
		"another type":  {`{"items":[{"sku":"a"}],"counts":[true]}`, "malformed json.counts.0: it is neither"},
		"null element":  {`{"items":[null]}`, "malformed json.items.0.sku: it is missing"},
		"null quantity": {`{"items":[{"sku":"a"}],"counts":[null]}`, "malformed json.counts.0: it is not a whole number"},
		"deep elements": {`{"x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`, "malformed the body: it nests deeper"},
		"one more":      {`{"items":[{"sku":"a"},{"sku":"b"}],"counts":[2]}`, "malformed json.items" + more},
		"nothing more":  {`{"items":[{"sku":"a"},null],"counts":[2]}`, "malformed json.items" + more},
		"two counts":    {`{"items":[{"sku":"a"}],"counts":[2,3]}`, "malformed json.counts" + more},
	})
	two := attempt.Spec{Buyer: values(t, "{header.X-User-Id}"), Line: []attempt.LineSpec{
		{SKU: values(t, "{json.items.1.sku}")},
		{SKU: values(t, "{json.items.0.sku}")},
	}}
	runJSON(t, mustReader(t, two), map[string]jsonCase{
		"one of two":   {`{"items":[{"sku":"a"}]}`, ""},
		"two of two":   {`{"items":[{"sku":"a"},{"sku":"b"}]}`, ""},
		"three of two": {`{"items":[{"sku":"a"},{"sku":"b"},{"sku":"c"}]}`, "malformed json.items" + more},
	})
	rows := func(array, sku string) *attempt.Reader {
		return mustReader(t, attempt.Spec{
			Buyer: values(t, "{header.X-User-Id}"), Lines: &attempt.Lines{Array: values(t, array)[0], SKU: sku, Quantity: "count"},
		})
	}
	runJSON(t, rows("{json.carts.0.items}", "sku"), map[string]jsonCase{
		"one cart":  {`{"carts":[{"items":[{"sku":"a"},{"sku":"b"}]}]}`, ""},
		"two carts": {`{"carts":[{"items":[{"sku":"a"}]},{"items":[{"sku":"b"}]}]}`, "malformed json.carts" + more},
	})
	runJSON(t, rows("{json.items}", "variants.0.sku"), map[string]jsonCase{
		"one variant":  {`{"items":[{"variants":[{"sku":"a"}]}]}`, ""},
		"two variants": {`{"items":[{"variants":[{"sku":"a"},{"sku":"b"}]}]}`, "malformed json.items.variants" + more},
	})
	// what the shop says of a cart is not the client's fault
	looked := lineReader(t, "{lookup.items.0.sku}", "{lookup.items.0.count}")
	for answer, want := range map[string]string{
		`{"items":[{"sku":"a","count":2}]}`:             "",
		`{"items":[{"sku":"a","count":2},{"sku":"b"}]}`: "unavailable",
	} {
		_, refusal, why := withCart(t, looked, request("POST", "/", "", ""), answer)
		if !strings.HasPrefix(describe(refusal), want) || want != "" && why != "lookup.items"+more {
			t.Errorf("%s: %q, unread: %q", answer, describe(refusal), why)
		}
	}
}
