package meter

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// counted returns the value of a series in a registry: a counter's, or a histogram's count.
func counted(t *testing.T, registry *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	series:
		for _, m := range f.GetMetric() {
			for i, l := range m.GetLabel() {
				if l.GetValue() != labels[i] {
					continue series
				}
			}
			if h := m.GetHistogram(); h != nil {
				return float64(h.GetSampleCount())
			}
			return m.GetCounter().GetValue()
		}
	}
	return 0
}

func newRegistry(t *testing.T) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := Register(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// Each configuration has its registry; all of them have the counts from before.
func TestMetricsSurviveAReload(t *testing.T) {
	const name = "stockgate_attempts_total"
	first := newRegistry(t)
	before := counted(t, first, name, "refused", "sold_out", "reload")
	CountAttempt("reload", "refused", sale.SoldOut)
	second := newRegistry(t)
	CountAttempt("reload", "refused", sale.SoldOut)
	CountAttempt("reload", "confirmed", "")
	for i, r := range []*prometheus.Registry{first, second} {
		if n := counted(t, r, name, "refused", "sold_out", "reload") - before; n != 2 {
			t.Errorf("registry %d has counted %v of 2", i, n)
		}
	}
	if err := Register(second); err != nil {
		t.Errorf("the same registry again: %v", err)
	}
}

// A name that another collector has taken is an error, not silence.
func TestMetricsDoNotHideBehindOthers(t *testing.T) {
	r := prometheus.NewRegistry()
	r.MustRegister(prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stockgate_attempts_total", Help: All().attemptsHelp(),
	}, []string{"sale", "outcome", "reason"}))
	if err := Register(r); err == nil {
		t.Error("registered beside another collector of the same name")
	}
}

// attemptsHelp returns the help text of the attempts: another collector is a duplicate only
// if it has the same description.
func (m *meters) attemptsHelp() string {
	ch := make(chan *prometheus.Desc, 1)
	m.attempts.Describe(ch)
	_, rest, _ := strings.Cut((<-ch).String(), `help: "`)
	help, _, _ := strings.Cut(rest, `"`)
	return help
}

func TestCountingAttemptsAllocatesNothing(t *testing.T) {
	CountAttempt("allocs", "refused", sale.SoldOut)
	if n := testing.AllocsPerRun(100_000, func() { CountAttempt("allocs", "refused", sale.SoldOut) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCountingAttemptsAtOnce(t *testing.T) {
	r := newRegistry(t)
	reasons := []sale.Reason{sale.SoldOut, sale.AllHeld, sale.Busy, sale.LimitReached}
	before := map[sale.Reason]float64{}
	for _, reason := range reasons {
		before[reason] = counted(t, r, "stockgate_attempts_total", "refused", string(reason), "crowd")
	}
	var crowd sync.WaitGroup
	for range 8 {
		crowd.Go(func() {
			for i := range 400 {
				CountAttempt("crowd", "refused", reasons[i%4])
			}
		})
	}
	crowd.Wait()
	for _, reason := range reasons {
		if n := counted(t, r, "stockgate_attempts_total", "refused", string(reason), "crowd") - before[reason]; n != 800 {
			t.Errorf("%s: %v of 800", reason, n)
		}
	}
}

func TestEdgeMetrics(t *testing.T) {
	r := newRegistry(t)
	var m edge.Metrics = EdgeEvents{}
	for _, c := range []struct {
		name, label string
		count       func()
	}{
		{"stockgate_reserve_seconds", "", func() { m.Reserved("", time.Millisecond) }},
		{"stockgate_redis_errors_total", "reserve", func() { m.RedisFailed("reserve") }},
		{"stockgate_redis_errors_total", "reap", func() { m.RedisFailed("reap") }},
		{"stockgate_redis_errors_total", "rate", func() { m.RedisFailed("rate") }},
		{"stockgate_backlog_dropped_total", "", m.BacklogDropped},
		{"stockgate_unbacked_total", "", m.SoldUnbacked},
	} {
		before := counted(t, r, c.name, c.label)
		c.count()
		if n := counted(t, r, c.name, c.label) - before; n != 1 {
			t.Errorf("%s %s went up by %v", c.name, c.label, n)
		}
	}
}

func BenchmarkCountAttempt(b *testing.B) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			CountAttempt("bench", "refused", sale.SoldOut)
		}
	})
}
