package selfcheck_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/operate/selfcheck"
	"github.com/stockgate/stockgate/internal/learn"
)

// learnedOf learns from a recording of a purchase.
func learnedOf(t *testing.T, open func(*testing.T) *testShop) *learn.Learned {
	t.Helper()
	file, err := os.Open(boughtAt(t, open, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rec, err := learn.Read("buy.har", file)
	if err != nil {
		t.Fatal(err)
	}
	l, err := learn.Learn([]*learn.Recording{rec}, learn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestCheckFindsWhatIsWrong changes what was recorded, so that the configuration no longer fits it.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	order := func(l *learn.Learned) *learn.Exchange { x := *l.Order; return &x }
	for _, c := range []struct {
		name   string
		shop   func(*testing.T) *testShop
		change func(l *learn.Learned)
		want   string // empty: nothing is wrong
	}{
		{"nothing", jsonShop, func(*learn.Learned) {}, ""},
		{"another quantity", jsonShop, func(l *learn.Learned) { l.Lines[0].Quantity = 2 }, "reserves other units"},
		{"an order among the others", jsonShop, func(l *learn.Learned) { l.Others = append(l.Others, order(l)) }, "it is no order, and the gate takes it for one"},
		{"a refusal that looks like a sale", jsonShop, func(l *learn.Learned) { l.Refused = append(l.Refused, order(l)) }, "the gate takes it for sold"},
		{"an answer that no rule takes", jsonShop, func(l *learn.Learned) { l.Order.Status = http.StatusOK }, "the gate does not take it for sold"},
		{"an order without a buyer", codeShop, func(l *learn.Learned) { l.Order.Header.Del("Cookie") }, "the gate refuses the order as no_buyer"},
		{"an order at another path", codeShop, func(l *learn.Learned) { l.Order.URL.Path = "/elsewhere" }, "the order passes without a reservation"},
		{"a request that the guard refuses", codeShop, func(l *learn.Learned) {
			odd := *l.Others[0]
			odd.URL, _ = odd.URL.Parse("/api/order/create;%2f..%2fb")
			l.Others = append(l.Others, &odd)
		}, "it is no order, and the edge refuses it"},
		{"units that nothing holds", paymentShop, func(l *learn.Learned) { l.Order.Status = http.StatusBadRequest; l.Lines[0].Quantity = 9 }, "not held until it is paid"},
	} {
		l := learnedOf(t, c.shop)
		c.change(l)
		got, err := selfcheck.Run(t.Context(), l)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.want == "" && len(got.Problems) > 0 || c.want != "" && !slices.ContainsFunc(got.Problems, func(p string) bool { return strings.Contains(p, c.want) }) {
			t.Errorf("%s: it finds %q", c.name, got.Problems)
		}
	}
}

// TestRemovedHeader plays a request with a field that the guard removes.
func TestRemovedHeader(t *testing.T) {
	l := learnedOf(t, codeShop)
	odd := *l.Others[0]
	odd.Header = odd.Header.Clone()
	odd.Header["X_shop"] = []string{"7"}
	l.Others = append(l.Others, &odd)
	got, err := selfcheck.Run(t.Context(), l)
	if err != nil || len(got.Problems) > 0 || len(got.Removed) != 1 || got.Removed[0].Field != "X_shop" {
		t.Errorf("%+v %v", got, err)
	}
}

// TestRefusedOrderInDoubt plays a refusal that no rule matches before the same order, which is taken.
func TestRefusedOrderInDoubt(t *testing.T) {
	l := learnedOf(t, codeShop)
	refused := *l.Order
	refused.Answer, refused.Entry = []byte(`{"code":7}`), 99
	l.Refused = append(l.Refused, &refused)
	got, err := selfcheck.Run(t.Context(), l)
	if err != nil || len(got.Problems) > 0 || len(got.Doubts) != 1 {
		t.Errorf("%+v %v", got, err)
	}
	l.Doubt(got.Doubts)
	if !strings.Contains(l.QuestionsFile(nil), "no rule matches its answer") {
		t.Error("there is no question about it")
	}
}
