package stampede_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/stampede"
)

// promise is what became of a promise.
func promise(t *testing.T, e stampede.Evidence, name string) stampede.Promise {
	t.Helper()
	for _, p := range stampede.Check(e, stampede.Tolerance{}).Promises {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no promise is called %q", name)
	return stampede.Promise{}
}

// Without an answer nothing is known of what a yes is.
func TestWithoutAnswersNoYesIsKept(t *testing.T) {
	e := honest()
	if p := promise(t, e, stampede.YesIsAnOrder); p.State != stampede.Kept {
		t.Errorf("with answers: %+v", p)
	}
	e.Tally = &stampede.Tally{Requests: 5, Failed: map[string]int{"refused": 3, stampede.Left: 2}}
	if p := promise(t, e, stampede.YesIsAnOrder); p.State != stampede.Unchecked || p.Why != stampede.NoAnswer {
		t.Errorf("without answers: %+v", p)
	}
	e.Tally.Requests++
	if p := promise(t, e, stampede.YesIsAnOrder); p.State != stampede.Kept {
		t.Errorf("with one answer: %+v", p)
	}
}

// A connection that is refused at once is no answer, and no short wait for one.
func TestOnlyAnswersCount(t *testing.T) {
	tally, err := stampede.Crowd{URL: "http://127.0.0.1:1/", Buyers: 3, Baskets: []stampede.Basket{stampede.Buy("a", 1)}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tally.Requests != 3 || tally.Answered() != 0 || tally.Latency != (stampede.Latency{}) || tally.AnswersPerSecond() != 0 {
		t.Errorf("%+v", tally)
	}
	tally.Busy = time.Second
	var out strings.Builder
	if _, err := (stampede.Report{Tally: tally}).WriteTo(&out); err != nil || !strings.Contains(out.String(), "  answers                      0  0 a second") || strings.Contains(out.String(), "latency") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
