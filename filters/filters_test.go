package filters_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/internal/sale"
)

// listing is a sale that answers as a test says.
type listing struct {
	name    string
	verdict sale.Reason
	unfit   sale.Reason
}

func (l *listing) RefusalAt(time.Time) *sale.Refusal { return refusal(l.verdict) }

func (l *listing) Resolve(a *sale.Attempt) ([]sale.Line, *sale.Refusal) {
	if l.unfit != "" {
		return nil, refusal(l.unfit)
	}
	return a.Lines, nil
}

func refusal(r sale.Reason) *sale.Refusal {
	if r == "" {
		return nil
	}
	return sale.Refuse(r)
}

func TestChoose(t *testing.T) {
	open := &listing{name: "open"}
	second := &listing{name: "second"}
	ended := &listing{name: "ended", verdict: sale.Ended}
	closed := &listing{name: "closed", verdict: sale.ClosedSale}
	soon := &listing{name: "soon", verdict: sale.NotStarted}
	paused := &listing{name: "paused", verdict: sale.PausedSale}
	tooMuch := &listing{name: "too much", unfit: sale.Quantity}
	lacks := &listing{name: "lacks an item", unfit: sale.UnknownItem}
	endedLacks := &listing{name: "ended, lacks an item", verdict: sale.Ended, unfit: sale.UnknownItem}

	for _, c := range []struct {
		name   string
		names  string // the sale that the attempt names
		lists  []*listing
		want   *listing
		reason sale.Reason
	}{
		{name: "the one that sells", lists: []*listing{ended, open, soon}, want: open},
		{name: "of two that sell, the one that started first", lists: []*listing{open, second}, want: open},
		{name: "not listed", reason: sale.UnknownItem},
		{name: "the next one, not the last one", lists: []*listing{ended, closed, soon}, want: soon, reason: sale.NotStarted},
		{name: "paused before not started", lists: []*listing{soon, paused}, want: paused, reason: sale.PausedSale},
		{name: "ended before closed", lists: []*listing{closed, ended}, want: ended, reason: sale.Ended},
		{name: "it sells, but not so many", lists: []*listing{soon, tooMuch, paused}, want: tooMuch, reason: sale.Quantity},
		{name: "one that has all items before one that sells but lacks one", lists: []*listing{lacks, soon}, want: soon, reason: sale.NotStarted},
		{name: "another one has all items", lists: []*listing{lacks, open}, want: open},
		{name: "all lack an item", lists: []*listing{lacks, endedLacks}, want: lacks, reason: sale.UnknownItem},
		{name: "named", names: "open", want: open},
		{name: "named, unknown", names: "nothing", reason: sale.UnknownSale},
		{name: "named, its state before its items", names: "ended, lacks an item", want: endedLacks, reason: sale.Ended},
		{name: "named, quantity", names: "too much", want: tooMuch, reason: sale.Quantity},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &sale.Attempt{Sale: c.names, Lines: []sale.Line{{SKU: "x", Quantity: 1}}}
			byID := func(id string) (*listing, bool) {
				for _, l := range []*listing{open, endedLacks, tooMuch} {
					if l.name == id {
						return l, true
					}
				}
				return nil, false
			}
			got, lines, no := filters.Choose(a, time.Time{}, byID, func(string) []*listing { return c.lists })
			if got != c.want {
				t.Errorf("chose %v, want %v", got, c.want)
			}
			switch {
			case c.reason == "" && (no != nil || len(lines) != 1):
				t.Errorf("refused with %v, lines %v", no, lines)
			case c.reason != "" && (no == nil || no.Reason != c.reason):
				t.Errorf("refusal %v, want %s", no, c.reason)
			}
		})
	}
}

func TestSlotsNeverExceedTheirNumber(t *testing.T) {
	const most, buyers = 7, 200
	slots := filters.NewSlots(most)
	var inside, highest, turned atomic.Int64
	var group sync.WaitGroup
	begin := make(chan struct{})
	for range buyers {
		group.Go(func() {
			<-begin
			for range 50 {
				if !slots.Take() {
					turned.Add(1)
					continue
				}
				n := inside.Add(1)
				for h := highest.Load(); n > h && !highest.CompareAndSwap(h, n); h = highest.Load() {
				}
				inside.Add(-1)
				slots.Give()
			}
		})
	}
	close(begin)
	group.Wait()
	if highest.Load() > most {
		t.Errorf("%d were inside, at most %d may be", highest.Load(), most)
	}
	if slots.Taken() != 0 {
		t.Errorf("%d slots were not given back", slots.Taken())
	}
	for range most {
		if !slots.Take() {
			t.Fatal("a free slot was not given")
		}
	}
	if slots.Take() {
		t.Error("one more than there are was given")
	}
}

func TestSingleLetsOneIn(t *testing.T) {
	var single filters.Single
	if !single.Enter("a") || !single.Enter("b") {
		t.Fatal("the first of a kind was turned away")
	}
	if single.Enter("a") {
		t.Error("a second one of a kind came in")
	}
	single.Leave("a")
	if !single.Enter("a") {
		t.Error("no attempt came in after the first had left")
	}

	var entered atomic.Int64
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if single.Enter("crowd") {
				entered.Add(1)
			}
		})
	}
	group.Wait()
	if entered.Load() != 1 {
		t.Errorf("%d came in at the same time", entered.Load())
	}
}

func BenchmarkSlots(b *testing.B) {
	b.ReportAllocs()
	slots := filters.NewSlots(1)
	for b.Loop() {
		if slots.Take() {
			slots.Give()
		}
	}
}

func BenchmarkSingle(b *testing.B) {
	b.ReportAllocs()
	var single filters.Single
	for b.Loop() {
		if single.Enter("sale\x00buyer") {
			single.Leave("sale\x00buyer")
		}
	}
}

func BenchmarkChoose(b *testing.B) {
	b.ReportAllocs()
	l := &listing{name: "open"}
	lists := []*listing{l}
	a := &sale.Attempt{Lines: []sale.Line{{SKU: "x", Quantity: 1}}}
	for b.Loop() {
		filters.Choose(a, time.Time{}, func(string) (*listing, bool) { return nil, false }, func(string) []*listing { return lists })
	}
}

// Without a sale that sells, the one that comes closest to selling says why.
func TestNoneSells(t *testing.T) {
	open, before := &listing{name: "open"}, &listing{name: "before", verdict: sale.NotStarted}
	ended, closed := &listing{name: "ended", verdict: sale.Ended}, &listing{name: "closed", verdict: sale.ClosedSale}
	byID := func(id string) (*listing, bool) { return ended, id == "ended" }
	for _, c := range []struct {
		named string
		all   []*listing
		want  sale.Reason
	}{
		{"", nil, ""},
		{"", []*listing{ended, open, before}, ""},
		{"", []*listing{closed, ended, before}, sale.NotStarted},
		{"", []*listing{closed, ended}, sale.Ended},
		{"ended", []*listing{open, ended}, sale.Ended},
		{"none", []*listing{open}, sale.UnknownSale},
	} {
		got := filters.NoneSells(c.named, time.Now(), byID, slices.Values(c.all))
		if c.want == "" && got != nil || c.want != "" && (got == nil || got.Reason != c.want) {
			t.Errorf("%q of %d: %v, want %q", c.named, len(c.all), got, c.want)
		}
	}
}
