package attempt_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
)

// multipartForm makes a form with the boundary b of names and values in turn.
func multipartForm(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, "--b\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n", pairs[i], pairs[i+1])
	}
	return b.String() + "--b--\r\n"
}

// formLines makes a reader of the lines of a form.
func formLines(t *testing.T, array, sku, quantity string) (*attempt.Reader, error) {
	t.Helper()
	v, err := attempt.CompileArray(array)
	if err != nil {
		return nil, err
	}
	return attempt.NewReader(attempt.Spec{Buyer: values(t, "{header.X-User-Id}"), Lines: &attempt.Lines{Array: v, SKU: sku, Quantity: quantity}})
}

// runForms reads each form as it is, with its brackets encoded as browsers do, and as multipart.
func runForms(t *testing.T, array, sku, quantity string, cases map[string]string) {
	t.Helper()
	rd, err := formLines(t, array, sku, quantity)
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range cases {
		forms := map[string]paramCase{body: {mediaType: formType, body: body, want: want}}
		forms[body+", encoded"] = paramCase{mediaType: formType, body: strings.NewReplacer("[", "%5B", "]", "%5D").Replace(body), want: want}
		var pairs []string
		for pair := range strings.SplitSeq(body, "&") {
			name, value, _ := strings.Cut(pair, "=")
			value, err := url.QueryUnescape(value)
			if err != nil {
				t.Fatal(err)
			}
			pairs = append(pairs, name, value)
		}
		if !strings.Contains(body, "%") {
			forms[body+", multipart"] = paramCase{mediaType: "multipart/form-data; boundary=b", body: multipartForm(pairs...), want: want}
		}
		runParams(t, rd, forms)
	}
}

const (
	otherSpelling = ": the name appears in another spelling in the body"
	otherForm     = ": a field of it appears in another form"
)

func TestNumberedElements(t *testing.T) {
	const items = "malformed form.items"
	runForms(t, "{form.items}", "sku", "n", map[string]string{
		"items[0][sku]=a&items[0][n]=2&items[1][sku]=b&items[1][n]=3": "a×2 b×3",
		"items[1][n]=3&items[0][n]=2&items[0][sku]=a&items[1][sku]=b": "b×3 a×2",
		"items[7][sku]=a": "a×1",
		"items[0][sku]=a&items[0][n]=2&items[1][sku]=a":         "a×3",
		"items[0][sku]=a&items[0][n]=0&items[1][sku]=b":         "b×1",
		"items[0][sku]=a&items[0][note]=x&items[0][tags][]=y":   "a×1",
		"items[0][sku]=a&items[0][options][sku]=y&other[x][]=z": "a×1",
		"items[0][sku]=a%20b":                                   "malformed form.items.sku: it is not printable",
		"items[0][n]=2":                                         "malformed form.items.sku: it is missing",
		"items[0][sku]=a&items[0][n]=two":                       "malformed form.items.n: it is not a whole number",
		"items[0][sku]=a&items[0][n]=0":                         items + ": no line of it has a quantity",
		"other=x":                                               items + ": there is no line in it",
		"items=a":                                               items + ": it is not an array of a form here",
		"items[]=a":                                             items + ": its elements need numbers",
		"items[0]=a":                                            items + ": its elements have no fields",
		"items[][sku]=a":                                        items + otherSpelling,
		"items[00][sku]=a":                                      items + ": its elements need numbers",
		"items[-1][sku]=a":                                      items + ": its elements need numbers",
		"items[100][sku]=a":                                     items + ": its elements need numbers",
		"items[a][sku]=a":                                       items + ": its elements need numbers",
		"items[0][sku]=a&items[0][sku]=b":                       items + ": the name appears twice",
		"items[0][sku]=a&items[0][SKU]=b":                       items + otherForm,
		"items[0][sku]=a&items[0][sku][]=b":                     items + otherForm,
		"items[0][sku]=a&items[0][n][x]=2":                      items + otherForm,
		"items[0][sku]=a&items=b":                               items + ": it is not an array of a form here",
		"items[0][sku]=a&Items[0][sku]=b":                       items + otherSpelling,
		"items[0][sku]=a&items.0.sku=b":                         items + otherSpelling,
		"items[0][sku]=a&items[0].sku=b":                        items + otherSpelling,
		"items[0][sku]=a&items[0]sku]=b":                        items + otherSpelling,
		"items[0][sku]=a&items[0[sku]=b":                        items + otherSpelling,
		"items[0][sku]=a&items[ ][sku]=b":                       items + otherSpelling,
		"items[0][sku]=a&]items[1][sku]=b":                      items + otherSpelling,
		"items[0][sku]=a&items[0][]=b":                          "a×1",
		"items[0][sku]=a&items[0][__proto__][n]=5":              "malformed the body: it names a JavaScript object's prototype",
		"items[0][sku]=a&items[0][a][b][c][d][e][f][g][h]=x":    items + otherSpelling,
		"items[0][sku]=a&items[0][n]=1&_method=put":             "malformed _method",
		strings.Repeat("items[0][x]=y&", 2) + "items[0][sku]=a": "a×1",
		"items[0][sku]=a&items[0][n]=20000":                     "quantity",
	})
	rd, _ := formLines(t, "{form.items}", "sku", "n")
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "items[%d][sku]=a&", i)
		}
		return strings.TrimSuffix(b.String(), "&")
	}
	runParams(t, rd, map[string]paramCase{
		"fifty":              {mediaType: formType, body: many(50), want: "a×50"},
		"more than fifty":    {mediaType: formType, body: many(51), want: items + ": it has more than 50 elements"},
		"in the query":       {query: "items[0][sku]=b", mediaType: formType, body: many(1), want: items + ": the name appears in another spelling in the query"},
		"plain in the query": {query: "items=b", mediaType: formType, body: many(1), want: items + ": it is not an array of a form here"},
		"JSON":               {mediaType: jsonType, body: `{"items":[{"sku":"a"}]}`, want: "malformed Content-Type: the body must be application/x-www-form-urlencoded or"},
		"letters encoded":    {mediaType: formType, body: "items[0][%73ku]=a", want: items + otherSpelling},
		"a file": {mediaType: "multipart/form-data; boundary=b", body: "--b\r\nContent-Disposition: form-data; name=\"items[0][sku]\"; filename=\"x\"\r\n\r\na\r\n--b--\r\n",
			want: "malformed the body: it has a file"},
		"an encoding": {mediaType: "multipart/form-data; boundary=b", body: "--b\r\nContent-Disposition: form-data; name=\"items[0][sku]\"\r\nContent-Transfer-Encoding: base64\r\n\r\nYQ==\r\n--b--\r\n",
			want: "malformed the body: a field has an encoding"},
		"a charset": {mediaType: "multipart/form-data; boundary=b", body: multipartForm("_charset_", "utf-7", "items[0][sku]", "a"), want: "malformed the body: it names a charset"},
	})
	runForms(t, "{form.cart.items}", "product.sku", "n", nil) // a dot in the array's name
	runForms(t, "{form.items}", "product.sku", "", map[string]string{
		"items[0][product][sku]=a&items[0][n]=2":               "a×1",
		"items[0][product][sku]=a&items[0][product]=b":         items + otherForm,
		"items[0][product][sku]=a&items[0][Product][sku]=b":    items + otherForm,
		"items[0][product][sku]=a&items[0][product][name]=b":   "a×1",
		"items[0][product][sku]=a&items[0][product][sku][x]=b": items + otherForm,
	})
}

func TestKeyedElements(t *testing.T) {
	const quantity = "malformed form.quantity"
	runForms(t, "{form.quantity}", "@key", "@value", map[string]string{
		"quantity[42]=2&quantity[A-1]=3":   "42×2 A-1×3",
		"quantity[42]=0&quantity[b]=1":     "b×1",
		"quantity[42]=&quantity[b.c_d]=1":  "b.c_d×1",
		"quantity[042]=1":                  "042×1",
		"quantity[42]=2&quantity[42]=3":    quantity + ": the name appears twice",
		"quantity[42]=2&quantity[42][x]=3": quantity + otherForm,
		"quantity[]=2":                     quantity + ": its elements need keys",
		"quantity[20]=2":                   quantity + ": a key from 0 to 20",
		"quantity[0]=2":                    quantity + ": a key from 0 to 20",
		"quantity[a b]=2":                  quantity + otherSpelling,
		"quantity[a]=x":                    "malformed form.quantity.@value: it is not a whole number",
		"quantity=2":                       quantity + ": it is not an array of a form here",
		"quantity[__proto__]=2":            "malformed the body: it names a JavaScript object's prototype",
		"quantity[a]=1&QUANTITY[b]=1":      quantity + otherSpelling,
		"quantity[a]=1&quantity[b][]=1":    quantity + otherForm,
		"sku=a":                            quantity + ": there is no line in it",
	})
	rd, err := formLines(t, "{form.quantity}", "@key", "@value")
	if err != nil {
		t.Fatal(err)
	}
	const long = "malformed the body: a key is a number above 4294967294"
	runParams(t, rd, map[string]paramCase{
		"an index":      {mediaType: "multipart/form-data; boundary=b", body: multipartForm("quantity[4294967294]", "1", "quantity[a]", "2"), want: "4294967294×1 a×2"},
		"no index":      {mediaType: "multipart/form-data; boundary=b", body: multipartForm("quantity[4294967295]", "1"), want: long},
		"a long number": {mediaType: "multipart/form-data; boundary=b", body: multipartForm("quantity[a]", "1", "quantity[12345678901234567890123]", "2"), want: long},
		"urlencoded":    {mediaType: formType, body: "quantity[1234567890123]=1&quantity[a]=2", want: "1234567890123×1 a×2"},
	})
	runForms(t, "{form.cart}", "@key", "qty", map[string]string{
		"cart[42][qty]=2&cart[43][note]=x": "42×2 43×1",
		"cart[42]=2":                       "malformed form.cart" + otherForm,
	})
	runForms(t, "{form.cart}", "@key", "", map[string]string{"cart[42]=on&cart[43][x]=y": "42×1 43×1"})
}

func TestListsOfAForm(t *testing.T) {
	runForms(t, "{form.sku[]}", "", "{form.qty[]}", map[string]string{
		"sku[]=a&qty[]=2&sku[]=b&qty[]=3": "a×2 b×3",
		"sku[]=a&sku[]=b&qty[]=2&qty[]=3": "a×2 b×3",
		"qty[]=2&qty[]=0&sku[]=a&sku[]=b": "a×2",
		"sku[]=a&sku[]=b&qty[]=2":         "malformed form.qty[]: it has not as many values as form.sku[]",
		"sku[]=a&qty[]=2&qty[]=1":         "malformed form.qty[]: it has not as many values as form.sku[]",
		"sku[]=a":                         "malformed form.qty[]: it has not as many",
		"sku[0]=a&qty[0]=1":               "malformed form.sku[]: the values of this list have no keys",
		"sku[]=a&qty[]=1&qty[1]=5":        "malformed form.qty[]: the values of this list have no keys",
		"sku[]=a&qty[]=1&sku=b":           "malformed form.sku[]: it is not an array of a form here",
		"sku[]=a&qty[]=1&sku[][]=b":       "malformed form.sku[]" + otherSpelling,
		"sku[]=a&qty[]=1&Sku[]=b&Qty[]=1": "malformed form.sku[]" + otherSpelling,
		"qty[]=1&sku[]=":                  "malformed form.sku[]: it is missing",
		"x=1":                             "malformed form.sku[]: there is no line in it",
	})
	runForms(t, "{form.sku[]}", "", "", map[string]string{"sku[]=a&sku[]=b&sku[]=a": "a×2 b×1"})
}

func TestFormArraysThatCannotWork(t *testing.T) {
	for name, test := range map[string]struct{ array, sku, quantity, want string }{
		"a value without a key": {"{form.items}", "sku", "@value", "write `lines {form.items} @key @value`"},
		"no field":              {"{form.items}", "", "", "write `lines {form.quantity} @key @value`"},
		"fields of a list":      {"{form.items[]}", "sku", "qty", "number them, items[0][sku]"},
		"no list beside one":    {"{form.sku[]}", "", "qty", "the quantities are a list"},
		"one list twice":        {"{form.sku[]}", "", "{form.sku[]}", "read by another value too"},
		"one field twice":       {"{form.items}", "sku", "sku", "fields of their own"},
		"one below the other":   {"{form.items}", "product", "product.n", "fields of their own"},
		"an index":              {"{form.items}", "0", "n", "a field of a form"},
		"a field in braces":     {"{form.items}", "{form.sku}", "n", "without braces"},
		"a list of the query":   {"{query.sku[]}", "", "", "brackets begin an array"},
		"elements of JSON":      {"{json.items}", "@key", "@value", "in JSON name the fields"},
	} {
		if _, err := formLines(t, test.array, test.sku, test.quantity); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	for _, line := range []string{"{form.items[0][sku]}", "{query.items[0]}", "{param.sku[]}"} {
		if _, err := attempt.Compile(line); err == nil || !strings.Contains(err.Error(), "lines {form.items} sku quantity") {
			t.Errorf("%s: %v", line, err)
		}
	}
	_, err := attempt.NewReader(attempt.Spec{
		Buyer: values(t, "{form.items}"), Lines: &attempt.Lines{Array: values(t, "{form.items}")[0], SKU: "sku"},
	})
	if err == nil || !strings.Contains(err.Error(), "read by another value too") {
		t.Errorf("a value that is the array: %v", err)
	}
}

// The whole document may be the array.
func TestTopLevelArray(t *testing.T) {
	array, err := attempt.CompileArray("{json}")
	if err != nil {
		t.Fatal(err)
	}
	rd := mustReader(t, attempt.Spec{Buyer: values(t, "{header.X-User-Id}"), Lines: &attempt.Lines{Array: array, SKU: "sku", Quantity: "n"}})
	runParams(t, rd, map[string]paramCase{
		"two":        {mediaType: jsonType, body: ` [{"sku":"a","n":2},{"sku":"b"}] `, want: "a×2 b×1"},
		"none":       {mediaType: jsonType, body: `[]`, want: "no_cart"},
		"an object":  {mediaType: jsonType, body: `{"sku":"a"}`, want: "malformed the body: it is not a JSON array"},
		"a text":     {mediaType: jsonType, body: `"a"`, want: "malformed the body: it is not a JSON array"},
		"of texts":   {mediaType: jsonType, body: `["a"]`, want: "malformed json: it is not an object"},
		"of lists":   {mediaType: jsonType, body: `[[]]`, want: "malformed json: it is not an object"},
		"twice":      {mediaType: jsonType, body: `[{"sku":"a","sku":"b"}]`, want: "malformed json.sku: the name appears twice"},
		"two arrays": {mediaType: jsonType, body: `[{"sku":"a"}][]`, want: "malformed the body: there is more after"},
	})
	cart, err := attempt.CompileArray("{lookup}")
	if err != nil {
		t.Fatal(err)
	}
	looked := mustReader(t, attempt.Spec{Buyer: values(t, "{header.X-User-Id}"), Lines: &attempt.Lines{Array: cart, SKU: "sku", Quantity: "n"}})
	reading, refusal := looked.ReadRequest(request("POST", "/", "", ""), nil, attempt.Env{})
	if refusal != nil {
		t.Fatal(describe(refusal))
	}
	for document, want := range map[string]string{`[{"sku":"a","n":2}]`: "a×2", `[]`: "no_cart", `null`: "unavailable", `{"items":[]}`: "unavailable", `[{"sku":"a"}]`: "unavailable"} {
		a, refusal, _ := reading.ReadCart([]byte(document))
		got := describe(refusal)
		if refusal == nil {
			got = show(a.Lines)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("a cart that is %s: %s, want %s", document, got, want)
		}
	}
	_, err = attempt.NewReader(attempt.Spec{Buyer: values(t, "{json.user}"), Lines: &attempt.Lines{Array: array, SKU: "sku"}})
	if err == nil || !strings.Contains(err.Error(), "read by another value too") {
		t.Errorf("a value beside it: %v", err)
	}
}
