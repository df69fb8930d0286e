package attempt_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/internal/sale"
)

var documents = []string{
	`{"sku":"20002001","quantity":1}`, `{"sku":20002001}`, `{}`, ``, ` `, `[]`, `null`, `{"a":1e309}`, `{"a":-0.5E-7}`,
	`{"sku":"a","SKU":"b"}`, `{"\u0073ku":"a"}`, `{"sku":"a","sku":"b"}`, `{"a":"\ud800"}`, `{"a":"\ud83d\ude00\u0000"}`,
	`{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":+1}`, `{"a":"` + "\xff" + `"}`, "\xef\xbb\xbf{}", `{}{}`, `{"a":1,}`, `{"a"`,
	`{"a":"\x"}`, "{\"a\":\"\n\"}", `{"a":tru}`, `{"sku":["a"]}`, `{"quantity":null,"sku":"a"}`, `{"_method":"PUT","sku":"a"}`,
	`{"items":[{"sku":"a","count":2},{"sku":"a"}]}`, `{"items":[{"sku":"a","count":0},{"sku":"b","count":""},{"sku":"c"}]}`, `{"items":[null]}`, `{"items":{"0":{}}}`, `{"Items":[]}`,
	strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33), strings.Repeat("[", 10_000),
	`{"sku":"a","quantity":"01"}`, `{"sku":"a","quantity":1e1}`, `{"sku":"a","quantity":99999}`, "{\"\u017fku\":\"a\"}",
}

// FuzzJSON compares the scanner with encoding/json: it accepts an object that
// encoding/json accepts, if that is UTF-8 and not too deep, and nothing else.
func FuzzJSON(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		trimmed := bytes.TrimLeft(data, " \t\r\n")
		want := json.Valid(data) && utf8.Valid(data) && trimmed[0] == '{' && depth(data) <= attempt.MaxDepth
		if got := attempt.ScanJSON(data); got != want {
			t.Errorf("%q: got %v, want %v", data, got, want)
		}
	})
}

// depth is how deep a valid document nests.
func depth(data []byte) int {
	dec, deepest, open := json.NewDecoder(bytes.NewReader(data)), 0, 0
	for {
		tok, err := dec.Token()
		if err != nil {
			return deepest
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			open++
			deepest = max(deepest, open)
		case json.Delim('}'), json.Delim(']'):
			open--
		}
	}
}

// FuzzRead reads arbitrary requests with readers of every kind. It never
// panics, leaves the body as it was, and what passes is read alike by a second,
// careless reader.
func FuzzRead(f *testing.F) {
	buyer := values(f, "{header.X-User-Id}")
	readers := []struct {
		rd   *attempt.Reader
		read func(*http.Request, []byte) ([]sale.Line, bool)
	}{
		{lineReader(f, "{json.sku}", "{json.quantity}"), carelessJSON},
		{lineReader(f, "{form.sku}", "{form.quantity}"), carelessForm},
		{lineReader(f, "{param.sku}", "{param.quantity}"), carelessForm},
		{lineReader(f, "{query.sku}", "{query.quantity}"), carelessForm},
		{mustReader(f, attempt.Spec{
			Buyer: buyer,
			Lines: &attempt.Lines{Array: values(f, "{json.items}")[0], SKU: "sku", Quantity: "count"},
		}), carelessArray},
		{mustReader(f, attempt.Spec{
			Buyer: buyer,
			Lines: &attempt.Lines{Array: values(f, "{form.items}")[0], SKU: "sku", Quantity: "count"},
		}), carelessRows},
		{mustReader(f, attempt.Spec{
			Buyer: buyer,
			Line: []attempt.LineSpec{{
				SKU:      values(f, "{json.sku}", "{form.sku}", "{query.sku}"),
				Quantity: values(f, "{json.quantity}", "{form.quantity}", "{query.quantity}"),
			}},
		}), carelessMerge},
	}
	for i := range readers {
		for _, d := range documents {
			f.Add(uint8(i), "POST", "", jsonType, d)
		}
		for _, q := range []string{
			"sku=a&quantity=2", "sku=a&SKU=b", "sku=a;quantity=2", "sku[]=a", "%73ku=a", "sku=a&sku=b", "a=%", "_method=PUT",
			"+sku=a", "sku=a%00", "quantity=+1&sku=a", "&&sku=a&=b&", "sku", "sku==",
			"items[0][sku]=a&items[0][count]=2&items[1][sku]=b", "items%5B0%5D%5Bsku%5D=a", "items[0][sku]=a&items[00][sku]=b", "items[][sku]=a",
		} {
			f.Add(uint8(i), "POST", q, formType, "")
			f.Add(uint8(i), "POST", "", formType, q)
			f.Add(uint8(i), "POST", q, formType, "quantity=3")
			f.Add(uint8(i), "PUT", q, jsonType, `{"quantity":3}`)
		}
		f.Add(uint8(i), "POST", "sku=a", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"sku\"\r\n\r\nb\r\n--b--\r\n")
		f.Add(uint8(i), "GET", "sku=a", "text/plain", "x")
		f.Add(uint8(i), "POST", "sku=a", "AppliCAtion/jSon", `{"quantity":2}`)
		f.Add(uint8(i), "POST", "sku=a", " AppliCAtion/X-www-form-urlEncoded", "quantity=2")
	}
	f.Fuzz(func(t *testing.T, which uint8, method, query, mediaType, body string) {
		reader := readers[int(which)%len(readers)]
		r := httptest.NewRequest("POST", "/buy", strings.NewReader(body))
		r.Method, r.URL.RawQuery = method, query
		r.Header.Set("X-User-Id", "u-1")
		if mediaType != "" {
			r.Header.Set("Content-Type", mediaType)
		}
		a, refusal := whole(t, reader.rd, r, attempt.Env{})
		if refusal != nil {
			if _, known := sale.KindOf(refusal.Reason); !known {
				t.Errorf("refused with %q", refusal.Reason)
			}
			return
		}
		data, err := io.ReadAll(r.Body)
		if err != nil || string(data) != body || r.ContentLength != int64(len(body)) {
			t.Fatalf("the body changed: %q, %v", data, err)
		}
		lines, ok := reader.read(r, data)
		for _, list := range [][]sale.Line{lines, a.Lines} { // a map of names has no order
			slices.SortFunc(list, func(a, b sale.Line) int { return strings.Compare(a.SKU, b.SKU) })
		}
		if !ok || !slices.Equal(lines, a.Lines) {
			t.Errorf("read %v; a careless reader reads %v, %v", a.Lines, lines, ok)
		}
	})
}

// carelessLine reads one line as loosely typed code does.
func carelessLine(sku, quantity any) (sale.Line, bool) {
	l := sale.Line{Quantity: 1}
	switch v := sku.(type) {
	case string:
		l.SKU = v
	case json.Number:
		l.SKU = v.String()
	default:
		return l, false
	}
	var text string
	switch v := quantity.(type) {
	case nil:
		return l, true
	case string:
		text = v
	case json.Number:
		text = v.String()
	}
	n, err := strconv.ParseFloat(text, 64)
	l.Quantity = int64(n)
	return l, err == nil && n == float64(l.Quantity)
}

// carelessJSON reads a body twice, into a struct (which ignores case, the last
// name counts) and into a map; both must agree.
func carelessJSON(_ *http.Request, body []byte) ([]sale.Line, bool) {
	var s struct {
		SKU      any `json:"sku"`
		Quantity any `json:"quantity"`
	}
	var m map[string]any
	if !decodeNumbers(body, &s) || !decodeNumbers(body, &m) {
		return nil, false
	}
	a, ok1 := carelessLine(s.SKU, s.Quantity)
	b, ok2 := carelessLine(m["sku"], m["quantity"])
	return []sale.Line{a}, ok1 && ok2 && a == b
}

func carelessArray(_ *http.Request, body []byte) ([]sale.Line, bool) {
	var s struct {
		Items []struct {
			SKU   any `json:"sku"`
			Count any `json:"count"`
		} `json:"items"`
	}
	if !decodeNumbers(body, &s) {
		return nil, false
	}
	var lines []sale.Line
	for _, item := range s.Items {
		if item.Count == "" || fmt.Sprint(item.Count) == "0" {
			continue // it is not ordered
		}
		l, ok := carelessLine(item.SKU, item.Count)
		if !ok {
			return nil, false
		}
		if i := slices.IndexFunc(lines, func(o sale.Line) bool { return o.SKU == l.SKU }); i >= 0 {
			lines[i].Quantity += l.Quantity
			continue
		}
		lines = append(lines, l)
	}
	return lines, true
}

func decodeNumbers(body []byte, into any) bool {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	return dec.Decode(into) == nil
}

// carelessForm merges query and form, as PHP and net/http do, in any order.
func carelessForm(r *http.Request, body []byte) ([]sale.Line, bool) {
	all, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, false
	}
	form, ok := carelessFields(r, body)
	if !ok {
		return nil, false
	}
	for k, v := range form {
		all[k] = append(all[k], v...)
	}
	m := map[string]any{}
	for k, v := range all {
		k = strings.TrimSpace(strings.ToLower(k))
		if _, twice := m[k]; (twice || len(v) > 1) && (k == "sku" || k == "quantity") {
			return nil, false
		}
		m[k] = v[0]
	}
	l, ok := carelessLine(m["sku"], m["quantity"])
	return []sale.Line{l}, ok
}

// carelessFields reads the fields of a form of either kind with the standard library.
func carelessFields(r *http.Request, body []byte) (url.Values, bool) {
	kind := strings.TrimSpace(strings.ToLower(r.Header.Get("Content-Type")))
	switch {
	case strings.HasPrefix(kind, formType):
		form, err := url.ParseQuery(string(body))
		return form, err == nil
	case strings.HasPrefix(kind, "multipart/form-data"):
		_, attrs, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil {
			return nil, false
		}
		form, err := multipart.NewReader(bytes.NewReader(body), attrs["boundary"]).ReadForm(1 << 20)
		if err != nil {
			return nil, false
		}
		return form.Value, true
	}
	return nil, true
}

// carelessRows reads the lines of items[0][sku] by the names of the fields.
func carelessRows(r *http.Request, body []byte) ([]sale.Line, bool) {
	form, ok := carelessFields(r, body)
	if !ok {
		return nil, false
	}
	var rows []map[string]any
	indexes := make(map[string]int)
	for _, field := range []string{"sku", "count"} {
		for name, values := range form {
			index, begins := strings.CutPrefix(name, "items[")
			index, ends := strings.CutSuffix(index, "]["+field+"]")
			if !begins || !ends {
				continue
			}
			if _, known := indexes[index]; !known {
				indexes[index] = len(rows)
				rows = append(rows, map[string]any{})
			}
			rows[indexes[index]][field] = values[0]
		}
	}
	var lines []sale.Line
	for _, row := range rows {
		if row["count"] == "" || row["count"] == "0" {
			continue
		}
		l, ok := carelessLine(row["sku"], row["count"])
		if !ok {
			return nil, false
		}
		if i := slices.IndexFunc(lines, func(o sale.Line) bool { return o.SKU == l.SKU }); i >= 0 {
			lines[i].Quantity += l.Quantity
			continue
		}
		lines = append(lines, l)
	}
	return lines, true
}

// carelessMerge reads from a JSON body what is there, and the rest from the
// query or a form, as Rails and Laravel do.
func carelessMerge(r *http.Request, body []byte) ([]sale.Line, bool) {
	var m map[string]any
	if decodeNumbers(body, &m) && strings.Contains(strings.ToLower(r.Header.Get("Content-Type")), "json") {
		q := r.URL.Query()
		for _, k := range []string{"sku", "quantity"} {
			if v, ok := m[k]; (!ok || v == nil || v == "") && q.Has(k) {
				m[k] = q.Get(k)
			}
		}
		l, ok := carelessLine(m["sku"], m["quantity"])
		return []sale.Line{l}, ok
	}
	return carelessForm(r, body)
}

// FuzzPair reads pairs of a query in the short way, where that is taken, and in the long
// way.
func FuzzPair(f *testing.F) {
	readers := []*attempt.Reader{
		lineReader(f, "{query.sku}", "{query.quantity}"), lineReader(f, "{param.s_k}", "{param.K}"), lineReader(f, "{json.sku}", "{query.n.m}"),
	}
	for _, pair := range []string{
		"sku=a", "SKU=a", "sku", "sku=", "=a", "", "sku=a=b", "s_k=a", "s.k=a", "s k=a", "k=1", "K=1", "\u212a=1", "n.m=1", "n_m=1", "_method=PUT", "_METHOD=PUT",
		"_method", "quantity=1&sku=a", "sku[]=a", "sku=%61", "sku=a+b", "sku=a;b", "sku=a#b", "s\x00ku=a", "sku=\xff",
	} {
		f.Add(pair)
	}
	f.Fuzz(func(t *testing.T, pair string) {
		for i, rd := range readers {
			if simple, alike := rd.PairAlike(pair); !alike {
				t.Errorf("reader %d: %q (simple: %v) is read in two ways", i, pair, simple)
			}
		}
	})
}
