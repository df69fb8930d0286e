package edge_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func moment(t testing.TB, text string) time.Time {
	t.Helper()
	m, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// limitedSale has the items "a" and "b" and these limits.
func limitedSale(t testing.TB, missing sale.Missing, limits ...sale.Limit) *edge.Listing {
	t.Helper()
	s, err := sale.New(sale.Sale{
		ID: "s", StartsAt: moment(t, "2026-11-01T00:00:00+08:00"), EndsAt: moment(t, "2026-11-12T00:00:00+08:00"), Timezone: "Asia/Shanghai",
		Items:  []sale.Item{{SKU: "a", Stock: 9}, {SKU: "b", Stock: 9}},
		Limits: limits, Missing: missing,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &edge.Listing{Sale: s}
}

var (
	secret = &identity.Secret{1, 2, 3}
	lines  = []sale.Line{{SKU: "a", Quantity: 2}, {SKU: "b", Quantity: 1}, {SKU: "a", Quantity: 1}}
)

func TestCharges(t *testing.T) {
	ann := &sale.Attempt{Buyer: "Ann", Identities: map[string]string{
		"phone": "+86 138-0013-8000", "address": "建国路 88 号", "device": "D1", "ip": "2001:db8::1:2:3:4",
	}}
	ms := func(text string) int64 { return moment(t, text).UnixMilli() }
	limit := func(per sale.Identities, every, count string, most int64, sku string) sale.Limit {
		return sale.Limit{Per: per, Every: every, Count: count, Max: most, SKU: sku}
	}
	buyer, phone, address := secret.Identity("buyer", "Ann"), secret.Identity("phone", "+8613800138000"), secret.Identity("address", "建国路88号")
	device, ip := secret.Identity("device", "D1"), secret.Identity("ip", "2001:db8::")
	week := ms("2026-11-15T16:00:00Z")
	for _, test := range []struct {
		name  string
		limit sale.Limit
		want  []reservation.Charge // without Limit
	}{
		{"units of a sale", limit("buyer", "sale", "units", 9, ""), []reservation.Charge{
			{Field: "buyer:sale:units|-|" + buyer, Amount: 4, To: sale.EndOfTime},
		}},
		{"units of one item", limit("buyer", "sale", "units", 9, "a"), []reservation.Charge{
			{Field: "buyer:sale:units:a|-|" + buyer, Amount: 3, To: sale.EndOfTime},
		}},
		{"units of the other", limit("buyer", "sale", "units", 9, "b"), []reservation.Charge{
			{Field: "buyer:sale:units:b|-|" + buyer, Amount: 1, To: sale.EndOfTime},
		}},
		{"a day", limit("phone", "day", "orders", 1, ""), []reservation.Charge{
			{Field: "phone:day:orders|1794326400000|" + phone, Amount: 1, From: ms("2026-11-09T16:00:00Z"), To: ms("2026-11-10T16:00:00Z"), Again: ms("2026-11-10T16:00:00Z")},
		}},
		{"more than a day's units", limit("device", "day", "units", 3, ""), []reservation.Charge{
			{Field: "device:day:units|1794326400000|" + device, Amount: 4, From: ms("2026-11-09T16:00:00Z"), To: ms("2026-11-10T16:00:00Z")},
		}},
		{"an hour", limit("ip", "hour", "units", 4, ""), []reservation.Charge{
			{Field: "ip:hour:units|1794283200000|" + ip, Amount: 4, From: ms("2026-11-10T03:00:00Z"), To: ms("2026-11-10T04:00:00Z"), Again: ms("2026-11-10T04:00:00Z")},
		}},
		{"a union, by the week, beyond the sale's end", limit("phone+buyer+address", "week", "orders", 1, ""), []reservation.Charge{
			{Field: "address+buyer+phone:week:orders|1794758400000|" + address, Amount: 1, From: week - 7*24*3600_000, To: week},
			{Field: "address+buyer+phone:week:orders|1794758400000|" + buyer, Amount: 1, From: week - 7*24*3600_000, To: week},
			{Field: "address+buyer+phone:week:orders|1794758400000|" + phone, Amount: 1, From: week - 7*24*3600_000, To: week},
		}},
		{"an order of that size", limit("buyer", "order", "units", 4, ""), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := limitedSale(t, "", test.limit)
			got, refusal := edge.Charges(l, secret, ann, lines, moment(t, "2026-11-10T11:30:00+08:00"))
			if refusal != nil {
				t.Fatalf("refused: %+v", refusal)
			}
			for i := range got {
				if got[i].Limit != &l.Sale.Limits[0] {
					t.Errorf("charge %d is of another limit: %+v", i, got[i].Limit)
				}
				got[i].Limit = nil
			}
			if len(got) == 0 {
				got = nil
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("\ngot  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestChargesConcernTheLines(t *testing.T) {
	l := limitedSale(t, "", sale.Limit{Per: "phone", Every: "day", Count: "units", Max: 1, SKU: "b"})
	got, refusal := edge.Charges(l, secret, &sale.Attempt{Buyer: "Ann"}, lines[:1], moment(t, "2026-11-10T11:30:00+08:00"))
	if len(got) != 0 || refusal != nil {
		t.Errorf("a limit of another item: %+v, %+v", got, refusal)
	}
	if got, refusal := edge.Charges(limitedSale(t, ""), secret, &sale.Attempt{}, lines, time.Now()); got != nil || refusal != nil {
		t.Errorf("no limits: %+v, %+v", got, refusal)
	}
}

func TestChargesOfSomebodyUnknown(t *testing.T) {
	phone := sale.Limit{Per: "phone", Every: "day", Count: "orders", Max: 1}
	union := sale.Limit{Per: "buyer+phone+ip", Every: "sale", Count: "units", Max: 9}
	buyer := sale.Limit{Per: "buyer", Every: "sale", Count: "units", Max: 9}
	small := sale.Limit{Per: "buyer", Every: "order", Count: "units", Max: 2}
	device := sale.Limit{Per: "device", Every: "order", Count: "units", Max: 2}
	malformed := func(kind string) *sale.Refusal {
		return &sale.Refusal{Reason: sale.Malformed, Detail: "identity " + kind + " is missing"}
	}
	guest := &sale.Attempt{Identities: map[string]string{"ip": "203.0.113.7"}}
	for _, test := range []struct {
		name    string
		missing sale.Missing
		limits  []sale.Limit
		attempt *sale.Attempt
		refusal *sale.Refusal
		charged string // the kinds of limits that are charged
	}{
		{"refuse by default", "", []sale.Limit{buyer, phone}, &sale.Attempt{Buyer: "Ann"}, malformed("phone"), ""},
		{"refuse", "refuse", []sale.Limit{phone}, &sale.Attempt{Buyer: "Ann"}, malformed("phone"), ""},
		{"refuse what cannot be used", "refuse", []sale.Limit{phone}, &sale.Attempt{Buyer: "Ann", Identities: map[string]string{"phone": "none"}}, malformed("phone"), ""},
		{"refuse in a union", "refuse", []sale.Limit{union}, &sale.Attempt{Buyer: "Ann", Identities: map[string]string{"phone": "1"}}, malformed("ip"), ""},
		{"a buyer in disguise", "refuse", []sale.Limit{buyer}, &sale.Attempt{Identities: map[string]string{"buyer": "Ann"}}, sale.Refuse(sale.NoBuyer), ""},
		{"a guest", "refuse", []sale.Limit{union}, guest, sale.Refuse(sale.NoBuyer), ""},
		{"malformed before the limit", "refuse", []sale.Limit{small, phone}, &sale.Attempt{Buyer: "Ann"}, malformed("phone"), ""},
		{"the limit of an order", "refuse", []sale.Limit{buyer, small}, &sale.Attempt{Buyer: "Ann"}, &sale.Refusal{Reason: sale.LimitReached, Limit: &small}, ""},
		{"an order without its identity", "refuse", []sale.Limit{device}, &sale.Attempt{Buyer: "Ann"}, malformed("device"), ""},

		{"skip", "skip", []sale.Limit{buyer, phone}, &sale.Attempt{Buyer: "Ann"}, nil, "buyer:sale:units"},
		{"skip a guest's buyer", "skip", []sale.Limit{union, buyer}, guest, nil, "buyer+ip+phone:sale:units"},
		{"skip all", "skip", []sale.Limit{union, phone}, &sale.Attempt{}, nil, ""},
		{"skip and the limit of an order", "skip", []sale.Limit{phone, small}, &sale.Attempt{Buyer: "Ann"}, &sale.Refusal{Reason: sale.LimitReached, Limit: &small}, ""},
		{"skip the limit of an order", "skip", []sale.Limit{device}, &sale.Attempt{Buyer: "Ann"}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := limitedSale(t, test.missing, test.limits...)
			got, refusal := edge.Charges(l, secret, test.attempt, lines, moment(t, "2026-11-10T11:30:00+08:00"))
			if !reflect.DeepEqual(refusal, test.refusal) {
				t.Errorf("refused: got %+v, want %+v", refusal, test.refusal)
			}
			var charged []string
			for _, c := range got {
				kind, _, _ := strings.Cut(c.Field, "|")
				charged = append(charged, kind)
			}
			if s := strings.Join(charged, " "); s != test.charged {
				t.Errorf("charged %q, want %q", s, test.charged)
			}
		})
	}
}

func TestAnIdentityIsHashedByItsKind(t *testing.T) {
	// one number as buyer and as phone is two identities
	l := limitedSale(t, "", sale.Limit{Per: "buyer+phone", Every: "sale", Count: "units", Max: 9})
	got, refusal := edge.Charges(l, secret, &sale.Attempt{Buyer: "7", Identities: map[string]string{"phone": "7"}}, lines, time.Now())
	if refusal != nil || len(got) != 2 || got[0].Field == got[1].Field {
		t.Errorf("%+v, %+v", got, refusal)
	}
	for _, c := range got {
		if strings.ContainsAny(c.Field, " \t\n") || strings.Count(c.Field, "|") != 2 {
			t.Errorf("%q is not a name that a record can hold", c.Field)
		}
	}
}

func BenchmarkCharges(b *testing.B) {
	l := limitedSale(b, "", sale.Limit{Per: "buyer", Every: "sale", Count: "units", Max: 9},
		sale.Limit{Per: "phone", Every: "day", Count: "orders", Max: 1}, sale.Limit{Per: "buyer+phone+ip", Every: "month", Count: "units", Max: 9})
	a := &sale.Attempt{Buyer: "Ann", Identities: map[string]string{"phone": "+86 138-0013-8000", "ip": "203.0.113.7"}}
	now := moment(b, "2026-11-10T11:30:00+08:00")
	b.ReportAllocs()
	for b.Loop() {
		if _, refusal := edge.Charges(l, secret, a, lines, now); refusal != nil {
			b.Fatal(refusal)
		}
	}
}

// Counters of a limit that has gone from the file go too, once their window is over.
func TestCountersOfARemovedLimitGo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Selling(t, stocktest.Options(b), 9, stocktest.PerBuyer(5))
		stocktest.MustHold(t, e, "r1", "Ann", 1)
		c, key := b.Client(), e.Store.Shard().ShardKeys("s")[shard.LimitsKey]
		if err := c.HSet(stocktest.Soon(t), key, "buyer:day:units|1000|before", "1 0").Err(); err != nil {
			t.Fatal(err)
		}
		e.Start()
		stocktest.Eventually(t, "only the counter of the sale", func() bool { return c.HLen(stocktest.Soon(t), key).Val() == 1 })
	})
}
