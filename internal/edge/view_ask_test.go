package edge_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// tries asks an edge as a gate does before it reserves.
func tries(t *testing.T, e *edge.Edge) (sale.Reason, *edge.Recheck) {
	t.Helper()
	l, _ := e.Catalogue().Sale("s")
	no, ask := e.Remembered(l, nil, stocktest.UnitsOfA(1))
	if no == nil {
		return "", ask
	}
	if ask != nil {
		t.Error("a refused attempt may ask")
	}
	return no.Reason, nil
}

// After its limit a refusal is checked by one attempt at a time, until one of them
// brings an answer.
func TestOneAsksAgain(t *testing.T) {
	v := newViewed(t, 1)
	v.soldOut(t, 1)
	v.step(t, 3*time.Second)
	if got, _ := tries(t, v.Edge); got != sale.AllHeld {
		t.Fatalf("within its limit: %q", got)
	}
	v.step(t, 2700*time.Millisecond)
	for range 2 {
		got, ask := tries(t, v.Edge)
		if got != "" || ask == nil {
			t.Fatalf("beyond its limit: %q, may ask %t", got, ask != nil)
		}
		for range 3 {
			if got, _ := tries(t, v.Edge); got != sale.AllHeld {
				t.Errorf("while one asks: %q", got)
			}
		}
		if got := remembered(t, v.Edge, 1); got != sale.AllHeld {
			t.Errorf("an attempt that takes no Ask: %q while another one asks", got)
		}
		ask.End() // without an answer
		if got, _ := tries(t, v.Edge); got != sale.AllHeld {
			t.Errorf("just after one has asked: %q", got)
		}
		v.step(t, 20*time.Millisecond)
		if got := remembered(t, v.Edge, 1); got != "" {
			t.Errorf("an attempt that takes no Ask: %q while no attempt asks", got)
		}
	}
	_, ask := tries(t, v.Edge)
	refusedBy(t, v.Edge, "asks", 1)
	ask.End()
	if got, _ := tries(t, v.Edge); got != sale.AllHeld {
		t.Errorf("after the answer: %q", got)
	}
	v.step(t, 8500*time.Millisecond)
	_, first := tries(t, v.Edge)
	if first == nil {
		t.Fatal("no attempt may ask")
	}
	v.step(t, 1900*time.Millisecond)
	if got, _ := tries(t, v.Edge); got != sale.AllHeld {
		t.Errorf("while one asks: %q", got)
	}
	v.step(t, 100*time.Millisecond)
	if got, ask := tries(t, v.Edge); got != "" || ask == nil {
		t.Errorf("one has not brought an answer for long: %q; want that another one asks", got)
	}
}

// However many items are sold out, Redis is not asked about them all the time.
func TestQuestionsArePaced(t *testing.T) {
	v := newViewed(t, 1)
	l, _ := v.Catalogue().Sale("s")
	a, b := sale.Line{SKU: "a", Quantity: 1}, sale.Line{SKU: "b", Quantity: 1, Region: "north"}
	seq, _ := v.Followed("s")
	for _, line := range []*sale.Line{&a, &b} {
		v.Told(l, line, seq, 0, &sale.Refusal{Reason: sale.SoldOut, SKU: line.SKU})
	}
	v.step(t, 5700*time.Millisecond)
	ask := func(line sale.Line) *edge.Recheck {
		no, ask := v.Remembered(l, nil, []sale.Line{line})
		if (no == nil) != (ask != nil) {
			t.Errorf("%+v: refused %t, asks %t", line, no != nil, ask != nil)
		}
		return ask
	}
	if ask(a) == nil {
		t.Error("no attempt asks about a")
	}
	if ask(b) != nil {
		t.Error("another one asks about b at the same moment")
	}
	v.step(t, 20*time.Millisecond)
	if ask(b) == nil {
		t.Error("no attempt asks about b")
	}
}

// A unit that came back without an entry of the journal is sold all the same.
func TestAReturnThatNobodyTold(t *testing.T) {
	v := newViewed(t, 1)
	v.soldOut(t, 1)
	if err := v.server.Client().HSet(stocktest.Soon(t), v.direct.Shard().ShardKeys("s")[1], "a", "2 1 1 0 0").Err(); err != nil {
		t.Fatal(err)
	}
	if got := remembered(t, v.Edge, 1); got != sale.AllHeld {
		t.Fatalf("%q is remembered", got)
	}
	v.step(t, 5700*time.Millisecond)
	got, ask := tries(t, v.Edge)
	if got != "" || ask == nil {
		t.Fatalf("beyond its limit: %q", got)
	}
	stocktest.MustHold(t, v.Edge, "r2", "Bob", 1)
	if got, other := tries(t, v.Edge); got != "" || other != nil {
		t.Errorf("after a unit was held: %q", got)
	}
	ask.End()
}

// Several lines are refused as Redis would refuse them: sold_out before all_held, else
// the first. An attempt that another line refuses asks nothing.
func TestLinesTogether(t *testing.T) {
	v := newViewed(t, 1)
	l, _ := v.Catalogue().Sale("s")
	north, south := sale.Line{SKU: "b", Quantity: 1, Region: "north"}, sale.Line{SKU: "b", Quantity: 1, Region: "south"}
	seq, _ := v.Followed("s")
	line := stocktest.UnitsOfA(1)[0]
	v.Told(l, &line, seq, 0, &sale.Refusal{Reason: sale.AllHeld, SKU: "a"})
	v.step(t, 5700*time.Millisecond)
	v.Told(l, &north, seq, 0, &sale.Refusal{Reason: sale.SoldOut, SKU: "b"})
	for i, c := range []struct {
		lines []sale.Line
		want  sale.Reason
		asks  bool
	}{
		{[]sale.Line{south}, "", false},
		{[]sale.Line{north}, sale.SoldOut, false},
		{[]sale.Line{line, south}, "", true},
		{[]sale.Line{line, north}, sale.SoldOut, false},
		{[]sale.Line{{SKU: "b", Quantity: 1, Region: "nowhere"}}, "", false},
	} {
		no, ask := v.Remembered(l, nil, c.lines)
		got := sale.Reason("")
		if no != nil {
			got = no.Reason
		}
		if got != c.want || (ask != nil) != c.asks {
			t.Errorf("%d: %q, asks %t; want %q, %t", i, got, ask != nil, c.want, c.asks)
		}
		ask.End()
	}
	v.Told(l, &line, seq, 0, &sale.Refusal{Reason: sale.AllHeld, SKU: "a"})
	for i, lines := range [][]sale.Line{{line, north}, {north, line}} {
		if no, _ := v.Remembered(l, nil, lines); no == nil || no.Reason != sale.SoldOut || no.SKU != "b" {
			t.Errorf("%d: %+v, want sold_out of b", i, no)
		}
	}
}
