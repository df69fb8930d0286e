package sale_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

const limitsOfAllKinds = `
id: s
starts_at: 2026-11-01T00:00:00+08:00
ends_at: 2027-11-01T00:00:00+08:00
timezone: Asia/Shanghai
items: [{sku: a/1, stock: 1}]
limits:
  - {per: buyer, every: sale, max: 2, count: units}
  - {per: [phone, buyer], every: hour, max: 2, count: orders}
  - {per: ip, every: day, max: 2, count: units, sku: a/1}
  - {per: [device], every: week, max: 2, count: units}
  - {per: address, every: month, max: 2, count: units}
  - {per: buyer, every: order, max: 2, count: units}
missing: skip
`

func TestCounter(t *testing.T) {
	s := mustParse(t, limitsOfAllKinds)
	literal := sale.Sale{Timezone: s.Timezone, Limits: s.Limits}
	at := func(text string) time.Time { return instant(t, text) }
	ms := func(text string) int64 { return at(text).UnixMilli() }
	for i, want := range []sale.Counter{
		{Prefix: "buyer:sale:units|-|", From: 0, To: sale.EndOfTime},
		{Prefix: "buyer+phone:hour:orders|1794330000000|", From: ms("2026-11-10T16:00:00Z"), To: ms("2026-11-10T17:00:00Z")},
		{Prefix: "ip:day:units:a%2F1|1794412800000|", From: ms("2026-11-10T16:00:00Z"), To: ms("2026-11-11T16:00:00Z")},
		{Prefix: "device:week:units|1794758400000|", From: ms("2026-11-08T16:00:00Z"), To: ms("2026-11-15T16:00:00Z")},
		{Prefix: "address:month:units|1796054400000|", From: ms("2026-10-31T16:00:00Z"), To: ms("2026-11-30T16:00:00Z")},
		{Prefix: "buyer:order:units|-|", From: 0, To: sale.EndOfTime},
	} {
		for range 2 {
			if got := *s.Counter(i, at("2026-11-11T00:00:00+08:00")); got != want {
				t.Errorf("limit %d: got %+v, want %+v", i, got, want)
			}
		}
		if got := *literal.Counter(i, at("2026-11-11T00:59:59.999+08:00")); got != want {
			t.Errorf("limit %d of a literal: got %+v, want %+v", i, got, want)
		}
		// there and back: what is remembered is not taken for another moment's
		moved := s.Counter(i, at("2027-02-11T00:00:00+08:00"))
		if (*moved == want) != (want.To == sale.EndOfTime) {
			t.Errorf("limit %d three months later: %+v", i, moved)
		}
		if got := *s.Counter(i, at("2026-11-11T00:00:00+08:00")); got != want {
			t.Errorf("limit %d, again: got %+v, want %+v", i, got, want)
		}
		if strings.Count(want.Prefix, "|") != 2 || strings.ContainsFunc(want.Prefix, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("limit %d: %q is no name of three parts", i, want.Prefix)
		}
	}
}

func TestCounterFollowsACopy(t *testing.T) {
	s := mustParse(t, limitsOfAllKinds)
	now := instant(t, "2026-11-11T12:00:00Z")
	day := s.Counter(2, now)
	moved := *s
	moved.Timezone = "America/New_York"
	if c := moved.Counter(2, now); c.To == day.To {
		t.Errorf("in another zone the day is still %+v", c)
	}
	other := *s
	other.Limits = []sale.Limit{{Per: "buyer", Every: "week", Count: "orders", Max: 1}}
	if c := other.Counter(0, now); !strings.HasPrefix(c.Prefix, "buyer:week:orders|") {
		t.Errorf("the counter of another limit is %+v", c)
	}
	same := *s
	same.Limits = append([]sale.Limit{{Per: "buyer", Every: "week", Count: "orders", Max: 1}}, s.Limits[1:]...)
	if c := same.Counter(0, now); !strings.HasPrefix(c.Prefix, "buyer:week:orders|") {
		t.Errorf("the counter of as many other limits is %+v", c)
	}
	nowhere := sale.Sale{Timezone: "Nowhere", Limits: s.Limits}
	if c, utc := nowhere.Counter(2, now), (&sale.Sale{Limits: s.Limits}).Counter(2, now); *c != *utc {
		t.Errorf("in a zone that does not exist: %+v, in UTC %+v", c, utc)
	}
}

func TestCounterAllocatesNothingInARush(t *testing.T) {
	s := mustParse(t, limitsOfAllKinds)
	now := instant(t, "2026-11-11T00:00:00+08:00")
	for i, limit := range s.Limits {
		if n := testing.AllocsPerRun(100, func() {
			s.Counter(i, now)
			for kind := range limit.Per.All {
				_ = kind
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", limit.ID(), n)
		}
	}
}
