package edge_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// A crowd waits for one call, and the units go with the next one. The others are refused without
// asking Redis, except those that must ask.
func TestWhatGoesWhileACrowdWaits(t *testing.T) {
	const stock, crowd = 5, 5 * combine.MaxTogether
	v := newViewed(t, stock)
	var counted stocktest.Counter
	v.SetMetrics(&counted)
	l, _ := v.Catalogue().Sale("s")
	hold := func(id, key string, recall bool) (*sale.Refusal, error) {
		o := stocktest.HoldOptions
		o.Recall = recall
		lines, buyer := stocktest.UnitsOfA(1), "buyer of "+id
		if key != "" {
			buyer = "Ann"
		}
		a := &sale.Attempt{Sale: "s", Buyer: buyer, Lines: lines, Key: key, Print: "print"}
		_, no, err := v.Hold(stocktest.Soon(t), id, l, a, lines, o)
		return no, err
	}
	var all sync.WaitGroup
	v.proxy.HoldReplies("evalsha")
	all.Go(func() {
		if no, err := hold("first", "", true); no != nil || err != nil {
			t.Errorf("the first attempt: %v, %v", no, err)
		}
	})
	if err := v.proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	ask := func(id, key string, recall bool, judge func(*sale.Refusal, error)) {
		before := v.Store.Calls.Waiting()
		all.Go(func() { judge(hold(id, key, recall)) })
		stocktest.Eventually(t, "that it waits", func() bool { return v.Store.Calls.Waiting() == before+1 })
	}
	var held atomic.Int64
	judge := func(no *sale.Refusal, err error) {
		switch {
		case err != nil:
			t.Error(err)
		case no == nil:
			held.Add(1)
		case no.Reason != sale.AllHeld || no.SKU != "a":
			t.Errorf("refused as %v of %q", no.Reason, no.SKU)
		}
	}
	ask("buys", "key", true, judge)
	for i := range crowd {
		ask(fmt.Sprint("r", i), "", true, judge)
	}
	ask("checks", "", false, judge)
	ask("repeats", "key", true, func(no *sale.Refusal, err error) {
		if _, bound := errors.AsType[*reservation.AlreadyBound](err); !bound {
			t.Errorf("a repeat of an order is refused: %v, %v", no, err)
		}
	})
	v.proxy.Heal()
	all.Wait()
	asked, remembered := counted.Asked.Load(), counted.Remembered.Load()
	// the first call took one unit, the second one the others
	inSecond := int64(combine.MaxTogether - (stock - 1))
	if held.Load() != stock-1 || asked != inSecond+1 || remembered != crowd+2-int64(combine.MaxTogether)-1 {
		t.Errorf("%d more were held, redis refused %d and memory %d", held.Load(), asked, remembered)
	}
}
