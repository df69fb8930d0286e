package accesslog_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/accesslog"
)

// TestShares reads percentages, and counts what each takes of numbers that are spread evenly.
func TestShares(t *testing.T) {
	for text, want := range map[string]int{"100%": 10_000, "50%": 5_000, "1%": 100, "0.05%": 5, "33.3%": 3_330} {
		s, err := accesslog.ParseShare(text)
		if err != nil || s.String() != text {
			t.Errorf("%q: %v, %v", text, s, err)
			continue
		}
		taken := 0
		for i := range uint64(10_000) {
			if s.Takes(i*(math.MaxUint64/10_000) + math.MaxUint64/20_000) {
				taken++
			}
		}
		if taken != want {
			t.Errorf("%s takes %d of 10,000, want %d", text, taken, want)
		}
	}
	all, _ := accesslog.ParseShare("100%")
	if !all.Takes(0) || !all.Takes(math.MaxUint64) || !all.Draw() {
		t.Error("100% does not take all")
	}
	if (accesslog.Share{}).Draw() {
		t.Error("no share takes one")
	}
}

func TestSharesThatAreNone(t *testing.T) {
	for _, text := range []string{"", "%", "1", "0%", "0.0%", "150%", "100.1%", "-1%", "+1%", "abc", "abc%", "NaN%", "Inf%", "1e1%", "0x1%", "1_0%", " 1%", "1 %", "1..2%", "0.00000000000000000001%"} {
		if s, err := accesslog.ParseShare(text); err == nil || !strings.Contains(err.Error(), "such as") {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
}
