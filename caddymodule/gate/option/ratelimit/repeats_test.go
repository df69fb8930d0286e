package ratelimit

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

func TestRepeatRateCheck(t *testing.T) {
	for want, r := range map[string]Repeats{
		"events and window go":   {Events: 1},
		"repeats: -1 events":     {Events: -1, Window: caddy.Duration(time.Second)},
		"repeats: a burst of -1": {Burst: -1},
		"repeats: 10000001 keys": {Keys: 10_000_001},
	} {
		if err := new(RepeatRate).Open("", &r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// A repeat that is refused allocates nothing, and neither does the table when many
// reservations are repeated.
func TestRepeatRateDoesNotAllocate(t *testing.T) {
	var rs RepeatRate
	if err := rs.Open("alloc", &Repeats{Events: 1, Window: caddy.Duration(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	defer rs.Close()
	now, h := time.Now(), make(http.Header, 8)
	if no := rs.Take(h, "one", now); no != nil {
		t.Fatalf("the first: %+v", no)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if no := rs.Take(h, "one", now); no == nil || no.RetryAfter != 60 {
			t.Errorf("%+v", no)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := h.Get("RateLimit"); got != `"alloc-repeats";r=0;t=60` {
		t.Errorf("RateLimit: %s", got)
	}
}
