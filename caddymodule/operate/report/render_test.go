package report

import "testing"

func TestMilliseconds(t *testing.T) {
	for want, ms := range map[string]float64{"0 ms": 0, "0.0123 ms": 0.01234, "3.21 ms": 3.214, "99.9 ms": 99.94, "100 ms": 100.2, "1734 ms": 1734.2, "25000 ms": 25000} {
		if got := milliseconds(ms); got != want {
			t.Errorf("%v is %q, want %q", ms, got, want)
		}
	}
}
