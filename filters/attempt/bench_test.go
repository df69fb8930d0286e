package attempt_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
)

func BenchmarkGetQueryAndHeader(b *testing.B) {
	rd := mustReader(b, attempt.Spec{
		Buyer: values(b, "{header.X-User-Id}"),
		Line:  []attempt.LineSpec{{SKU: values(b, "{query.sku}"), Quantity: values(b, "{query.quantity}")}},
	})
	r := httptest.NewRequest("GET", "/buy?sku=20002001&quantity=2&utm_source=mail", nil)
	r.Header.Set("X-User-Id", "u-1000")
	b.ReportAllocs()
	for b.Loop() {
		if refusal := rd.Check(r); refusal != nil {
			b.Fatal(refusal)
		}
		if _, refusal := rd.Read(r, nil, attempt.Env{}); refusal != nil {
			b.Fatal(refusal)
		}
	}
}

func BenchmarkPostJSON(b *testing.B) {
	bodies := map[string]string{
		"flat":  `{"sku":"20002001","quantity":2}`,
		"large": `{"sku":"20002001","note":"` + strings.Repeat("a note with äöü. ", 200) + `","address":{"lines":["a","b"],"zip":10115},"quantity":2}`,
	}
	rd := mustReader(b, attempt.Spec{
		Buyer: values(b, "{header.X-User-Id}"),
		Line:  []attempt.LineSpec{{SKU: values(b, "{json.sku}"), Quantity: values(b, "{json.quantity}")}},
	})
	for name, body := range bodies {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest("POST", "/api/order", nil)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-User-Id", "u-1000")
			data := []byte(body)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, refusal := rd.Read(r, data, attempt.Env{}); refusal != nil {
					b.Fatal(refusal)
				}
			}
		})
	}
}

func BenchmarkPostLines(b *testing.B) {
	rd := mustReader(b, attempt.Spec{
		Buyer: values(b, "{header.X-User-Id}"),
		Lines: &attempt.Lines{Array: values(b, "{json.items}")[0], SKU: "sku", Quantity: "count"},
	})
	r := httptest.NewRequest("POST", "/api/order", nil)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-User-Id", "u-1000")
	data := []byte(`{"items":[{"sku":"a","count":1},{"sku":"b","count":2},{"sku":"c"}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, refusal := rd.Read(r, data, attempt.Env{}); refusal != nil {
			b.Fatal(refusal)
		}
	}
}

func BenchmarkRawPathUnsafe(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if why, bad := attempt.RawPathUnsafe("/api/v1/shops/%E4%B8%AD/orders"); bad {
			b.Fatal(why)
		}
	}
}
