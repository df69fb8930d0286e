package measure_test

import (
	"math"
	"testing"
	"time"

	"github.com/stockgate/stockgate/bench/measure"
)

func TestOver(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   measure.Spread
	}{
		{nil, measure.Spread{}},
		{[]float64{5}, measure.Spread{Median: 5, Least: 5, Most: 5}},
		{[]float64{9, 1, 5}, measure.Spread{Median: 5, Least: 1, Most: 9}},
		{[]float64{4, 1, 2, 9}, measure.Spread{Median: 3, Least: 1, Most: 9}},
	} {
		given := append([]float64(nil), c.values...)
		if got := measure.Over(c.values); got != c.want {
			t.Errorf("Over(%v) = %v, want %v", c.values, got, c.want)
		}
		for i := range given {
			if given[i] != c.values[i] {
				t.Errorf("Over has changed %v to %v", given, c.values)
			}
		}
	}
}

func TestRatioToNothingIsNotANumber(t *testing.T) {
	if got := measure.Ratio(6, 4); got != 1.5 {
		t.Errorf("6 to 4 is %v", got)
	}
	if got := measure.Ratio(1, 0); !math.IsNaN(got) {
		t.Errorf("1 to 0 is %v", got)
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		goal    measure.Goal
		got     float64
		verdict string
	}{
		{measure.Goal{Want: 1.3}, 1.3, "met"},
		{measure.Goal{Want: 1.3}, 1.29, "MISSED"},
		{measure.Goal{Want: 0.25, Most: true}, 0.25, "met"},
		{measure.Goal{Want: 0.25, Most: true}, 0.26, "MISSED"},
		{measure.Goal{Want: 1}, math.NaN(), ""},
	} {
		j, ok := c.goal.Judge("case", c.got)
		switch {
		case ok != (c.verdict != ""):
			t.Errorf("%v and %v: judged %v", c.goal, c.got, ok)
		case ok && j.Verdict() != c.verdict:
			t.Errorf("%v and %v: %s, want %s", c.goal, c.got, j.Verdict(), c.verdict)
		}
	}
}

// TestHeldUp: a ratio of servers of which one was not at its limit says so.
func TestHeldUp(t *testing.T) {
	for busy, want := range map[float64]string{0: "met", 0.89: "met, but busy 0.89", 0.9: "met", 1: "met"} {
		if got := (measure.Judged{Met: true, Busy: busy}).Verdict(); got != want {
			t.Errorf("busy %v: %q, want %q", busy, got, want)
		}
	}
}

const wrkOutput = `Running 2s test @ http://127.0.0.1:8000
  1 threads and 64 connections
  Non-2xx or 3xx responses: 179642
Requests/sec:  89821.00

summary {"requests":179642,"bytes":33592054,"microseconds":2000101,"refused":179642,"broken":3,"p50":670,"p99":2980}
`

func TestWrk(t *testing.T) {
	got, err := measure.Wrk([]byte(wrkOutput))
	want := measure.Load{
		Requests: 179642, Bytes: 33592054, Seconds: 2.000101, Refused: 179642, Broken: 3, P50: 670 * time.Microsecond, P99: 2980 * time.Microsecond,
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, output := range []string{"", "unable to connect", "\nsummary {\"requests\":1", "\nsummary {\"requests\":1.5}\n"} {
		if got, err := measure.Wrk([]byte(output)); err == nil {
			t.Errorf("%q was read as %+v", output, got)
		}
	}
}

const h2Output = `finished in 2.01s, 7671.00 req/s, 1.22MB/s
requests: 15342 total, 15406 started, 15342 done, 2 succeeded, 15340 failed, 1 errored, 4 timeout
status codes: 2 2xx, 0 3xx, 15339 4xx, 1 5xx
traffic: 2.45MB (2567890) total, 15.10KB (15462) headers (space savings 99.00%), 300KB (307200) data
`

func TestH2load(t *testing.T) {
	got, err := measure.H2load([]byte(h2Output))
	want := measure.Load{Requests: 15342, Bytes: 2567890, Seconds: 2.01, Refused: 15340, Broken: 5}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := measure.H2load([]byte("Could not connect")); err == nil {
		t.Errorf("nothing was read as %+v", got)
	}
}

func TestCommandStats(t *testing.T) {
	before, err := measure.CommandStats("# Commandstats\r\ncmdstat_hget:calls=20,usec=3,usec_per_call=0.15\r\n")
	if err != nil || before != (measure.Calls{Commands: 20}) {
		t.Errorf("before: %+v, %v", before, err)
	}
	after, err := measure.CommandStats("# Commandstats\r\n" +
		"cmdstat_evalsha:calls=10,usec=300,usec_per_call=30.00,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_hget:calls=40,usec=3,usec_per_call=0.15\r\ncmdstat_config|get:calls=1,usec=3\r\n")
	if got := after.Minus(before); err != nil || got != (measure.Calls{Scripts: 10, Commands: 31}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := measure.CommandStats("cmdstat_get:calls=many,usec=1\r\n"); err == nil {
		t.Errorf("no number was read as %+v", got)
	}
}

func TestProcStat(t *testing.T) {
	const tail = " S 1 2 2 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 1 0 12345 1000 200"
	for _, name := range []string{"(caddy)", "(a program (with) all sorts )of( names)"} {
		if got, err := measure.ProcStat("4711 " + name + tail); err != nil || got != 2 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, stat := range []string{"", "4711", "4711 (caddy) S 1 2", "4711 (caddy) S 1 2 2 0 -1 4 1 0 0 0 a b 0 0"} {
		if got, err := measure.ProcStat(stat); err == nil {
			t.Errorf("%q was read as %v", stat, got)
		}
	}
}

func TestAttempts(t *testing.T) {
	read := func(text string) measure.Attempts {
		t.Helper()
		a, err := measure.AttemptsTotal(text)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	before := read("stockgate_attempts_total{outcome=\"refused\",reason=\"sold_out\",sale=\"a\"} 5\n")
	got := read(`# TYPE stockgate_attempts_total counter
stockgate_attempts_total{outcome="confirmed",reason="",sale="a"} 7
stockgate_attempts_total{outcome="refused",reason="sold_out",sale="a"} 1.5e+06
stockgate_attempts_total{outcome="refused",reason="sold_out",sale="b"} 5
stockgate_attempts_total{outcome="refused",reason="duplicate",sale="a"} 3
stockgate_reserve_seconds_count 9
`).Minus(before)
	if len(got) != 3 || got["sold_out"] != 1_500_000 || got[""] != 7 || got.Otherwise("sold_out") != 3 {
		t.Errorf("got %v", got)
	}
	if a, err := measure.AttemptsTotal("stockgate_attempts_total{reason=\"a\"} x\n"); err == nil {
		t.Errorf("no number was read as %v", a)
	}
}

func TestMemory(t *testing.T) {
	status := "Name:\tcaddy\nVmHWM:\t  99999 kB\nVmRSS:\t   12345 kB\nRssAnon:\t 1 kB\n"
	if got, err := measure.Resident(status); err != nil || got != 12345<<10 {
		t.Errorf("resident: %d, %v", got, err)
	}
	if got, err := measure.Resident("Name:\tcaddy\n"); err == nil {
		t.Errorf("without VmRSS: %d", got)
	}
	metrics := "# HELP x\ngo_memstats_heap_alloc_bytes 1.5e+06\ngo_memstats_heap_alloc_bytes_total 9e9\ngo_memstats_stack_inuse_bytes 500000\n"
	if got, err := measure.GoMemory(metrics); err != nil || got != 2e6 {
		t.Errorf("of Go: %v, %v", got, err)
	}
	if got, err := measure.GoMemory("go_memstats_heap_alloc_bytes 1\n"); err == nil {
		t.Errorf("without stacks: %v", got)
	}
}

func TestNetBytes(t *testing.T) {
	if got, err := measure.NetBytes("# Stats\r\ntotal_net_input_bytes:100\r\ntotal_net_output_bytes:23\r\ntotal_net_repl_input_bytes:9\r\n"); err != nil || got != 123 {
		t.Errorf("%d, %v", got, err)
	}
	if got, err := measure.NetBytes("total_net_input_bytes:100\r\n"); err == nil {
		t.Errorf("without what it has sent: %d", got)
	}
}
