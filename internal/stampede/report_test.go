package stampede_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

func TestLatency(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1)*time.Millisecond)
	}
	for name, test := range map[string]struct {
		all           []time.Duration
		p50, p99, max time.Duration
	}{
		"none":          {nil, 0, 0, 0},
		"one":           {[]time.Duration{time.Second}, time.Second, time.Second, time.Second},
		"small":         {[]time.Duration{0, 7 * time.Microsecond, 9 * time.Microsecond}, 7 * time.Microsecond, 9 * time.Microsecond, 9 * time.Microsecond},
		"a hundred":     {hundred, 50 * time.Millisecond, 99 * time.Millisecond, 100 * time.Millisecond},
		"a clock aback": {[]time.Duration{-time.Second}, 0, 0, 0},
		"forever":       {[]time.Duration{math.MaxInt64}, math.MaxInt64 - 1000, math.MaxInt64 - 1000, math.MaxInt64},
	} {
		l := stampede.LatencyOf(test.all)
		for _, q := range []struct {
			name      string
			got, want time.Duration
		}{{"p50", l.P50, test.p50}, {"p99", l.P99, test.p99}, {"max", l.Max, test.max}} {
			// a bucket is a 32nd wide at most, and never reports less than was measured
			if q.got < q.want || q.got > q.want+q.want/32 && q.want < math.MaxInt64/2 {
				t.Errorf("%s: %s is %v, expected %v", name, q.name, q.got, q.want)
			}
		}
	}
}

func TestReport(t *testing.T) {
	e := honest()
	e.Tally.Requests, e.Tally.Accepted = 2012, 5
	e.Tally.Refused = map[string]int{"sold_out": 1990, "limit_reached": 10}
	e.Tally.Failed = map[string]int{"timeout": 2, "reset": 1}
	e.Tally.Answers = append(e.Tally.Answers, stampede.Answer{Status: 500}, stampede.Answer{Status: 502}, stampede.Answer{Status: 502},
		stampede.Answer{Status: 409})
	e.Tally.Busy = time.Second
	e.Tally.Latency = stampede.Latency{P50: 1250 * time.Microsecond, P99: 80 * time.Millisecond, Max: 1200 * time.Millisecond}
	e.Orders[1].Reservation = ""
	v := stampede.Check(e, stampede.Tolerance{Phantom: true})
	v.Violations = v.Violations[:1]
	var out strings.Builder
	if _, err := (stampede.Report{Tally: e.Tally, Evidence: &e, Verdict: &v}).WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	expected := `  sold                         5  of 5 units, in 5 orders
  oversold                     0
  refused                  2,000
    sold_out               1,990  Sold out.
    limit_reached             10  The purchase limit is reached.
  answered otherwise           4  status 409: 1, status 500: 1, status 502: 2
  no answer                    3  reset 1, timeout 2
  books                  balance  stock 5 = 0 available + 0 held + 0 in doubt + 5 confirmed
  answers                  2,009  2,009 a second while any buyer waited
  latency p50             1.2 ms  p99 80 ms, longest 1,200 ms

broken promises:
  - order o2 has no reservation: it came past the gate
`
	if out.String() != expected {
		t.Errorf("got:\n%s\nexpected:\n%s", out.String(), expected)
	}

	out.Reset()
	if _, err := (stampede.Report{Tally: e.Tally}).WriteTo(&out); err != nil || !strings.HasPrefix(out.String(), "  told yes ") || strings.Contains(out.String(), "books") {
		t.Errorf("without witnesses: %v\n%s", err, out.String())
	}
	raw, err := json.Marshal(stampede.Report{Tally: e.Tally, Verdict: &v})
	if err != nil || !strings.Contains(string(raw), `"violations":["order o2`) || strings.Contains(string(raw), "answers") {
		t.Errorf("as JSON: %v\n%s", err, raw)
	}
}

func TestCount(t *testing.T) {
	for n, expected := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := stampede.Count(n); got != expected {
			t.Errorf("%d is written %s", n, got)
		}
	}
}

// TestCollectWaitsForHolds: what is under way when the last buyer has an answer is not
// held at the end.
func TestCollectWaitsForHolds(t *testing.T) {
	reads, down := 0, errors.New("down")
	sources := stampede.Sources{
		Orders: func(context.Context) ([]stampede.Order, error) {
			return []stampede.Order{{OrderNo: "o1", Reservation: "r1"}, {OrderNo: "o2"}, {OrderNo: "o3", Reservation: "gone"}}, nil
		},
		Stock: func(context.Context) (*reservation.SaleStock, error) {
			reads++
			return &reservation.SaleStock{Items: []record.Cell{{Held: max(0, int64(3-reads))}}}, nil
		},
		Record: func(_ context.Context, id string) (*reservation.Record, error) {
			switch id {
			case "gone":
				return nil, reservation.ErrNotFound
			case "down":
				return nil, down
			}
			return &reservation.Record{ID: id}, nil
		},
	}
	tally := &stampede.Tally{Answers: []stampede.Answer{{Reservation: "r1"}, {Reservation: "r2"}, {}}}
	e, err := sources.Collect(t.Context(), tally)
	if err != nil || reads != 3 || e.Stock.Items[0].Held != 0 || len(e.Records) != 2 || e.Records["r2"].ID != "r2" {
		t.Errorf("%d reads: %+v, %v", reads, e, err)
	}

	tally.Answers[1].Reservation = "down"
	if _, err := sources.Collect(t.Context(), tally); !errors.Is(err, down) {
		t.Errorf("an error of a witness became %v", err)
	}
	reads, sources.Settle = -1_000_000, time.Nanosecond
	tally.Answers = nil
	if e, err := sources.Collect(t.Context(), tally); err != nil || e.Stock.Items[0].Held == 0 {
		t.Errorf("waited too long: %+v, %v", e, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sources.Settle = time.Hour
	if _, err := sources.Collect(ctx, tally); !errors.Is(err, context.Canceled) {
		t.Errorf("an interruption became %v", err)
	}
}
