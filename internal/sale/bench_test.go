package sale_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

// bigSale is as large as a sale may be.
func bigSale() []byte {
	var b strings.Builder
	b.WriteString("id: big\nstarts_at: 2026-11-11T00:00:00Z\nends_at: 2026-11-12T00:00:00Z\nitems:\n")
	for i := range sale.MaxItems {
		fmt.Fprintf(&b, "- {sku: p-%d, stock: 1000000000000}\n", i)
	}
	return []byte(b.String())
}

func BenchmarkParseLargest(b *testing.B) {
	data := bigSale()
	for b.Loop() {
		if _, err := sale.Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeLargest(b *testing.B) {
	s, err := sale.Parse(bigSale())
	if err != nil {
		b.Fatal(err)
	}
	data, err := json.Marshal(s)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := sale.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	s, err := sale.Parse([]byte(double11))
	if err != nil {
		b.Fatal(err)
	}
	a := &sale.Attempt{Lines: []sale.Line{{SKU: "20002001", Quantity: 1}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, r := s.Resolve(a); r != nil {
			b.Fatal(r.Reason)
		}
	}
}

// BenchmarkCounter is what every attempt costs for every limit of its sale.
func BenchmarkCounter(b *testing.B) {
	s, err := sale.Parse([]byte(limitsOfAllKinds))
	if err != nil {
		b.Fatal(err)
	}
	now := instant(b, "2026-11-11T00:00:00+08:00")
	for i, limit := range s.Limits {
		b.Run(limit.Every, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Counter(i, now)
			}
		})
	}
}

// BenchmarkWindow is what the first attempt of a window costs.
func BenchmarkWindow(b *testing.B) {
	for _, name := range []string{"Asia/Shanghai", "America/New_York"} {
		loc := zone(b, name)
		for _, every := range []string{"hour", "day", "week", "month"} {
			b.Run(name+"/"+every, func(b *testing.B) {
				limit, now := sale.Limit{Every: every}, instant(b, "2050-11-11T00:00:00Z")
				b.ReportAllocs()
				for b.Loop() {
					limit.Window(now.Add(time.Second), loc)
				}
			})
		}
	}
}

func BenchmarkNormaliseIdentity(b *testing.B) {
	for _, identity := range [][2]string{
		{"buyer", "20002001"}, {"phone", "+86 138-0013-8000"}, {"address", "北京市朝阳区建国路 88 号，SOHO 现代城 5-302"}, {"ip", "2001:db8:1:2:3:4:5:6"},
	} {
		b.Run(identity[0], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sale.NormaliseIdentity(identity[0], identity[1])
			}
		})
	}
}
