package caddymodule

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

func TestRepeatRateCheck(t *testing.T) {
	ref := []string{"{json.order_no}"}
	for want, g := range map[string]*Gate{
		"repeats is given, and no ref": {Repeats: &RepeatRate{}},
		"events and window go":         {Ref: ref, Repeats: &RepeatRate{Events: 1}},
		"repeats: -1 events":           {Ref: ref, Repeats: &RepeatRate{Events: -1, Window: caddy.Duration(time.Second)}},
		"repeats: a burst of -1":       {Ref: ref, Repeats: &RepeatRate{Burst: -1}},
		"repeats: 10000001 keys":       {Ref: ref, Repeats: &RepeatRate{Keys: 10_000_001}},
	} {
		if err := g.openRepeats(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestRefSharedNeedsARef(t *testing.T) {
	if _, err := (&Gate{RefShared: true}).newReader(nil); err == nil || !strings.Contains(err.Error(), "ref_shared is given, and no ref") {
		t.Errorf("error %v", err)
	}
}

// A repeat that is refused allocates nothing, and neither does the table when many
// reservations are repeated.
func TestRepeatRateDoesNotAllocate(t *testing.T) {
	g := &Gate{Name: "alloc", Ref: []string{"{json.order_no}"}, Repeats: &RepeatRate{Events: 1, Window: caddy.Duration(time.Minute)}}
	if err := g.openRepeats(); err != nil {
		t.Fatal(err)
	}
	defer g.Cleanup()
	now, h := time.Now(), make(http.Header, 8)
	if no := g.rates.takeRepeat(h, "one", now); no != nil {
		t.Fatalf("the first: %+v", no)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if no := g.rates.takeRepeat(h, "one", now); no == nil || no.RetryAfter != 60 {
			t.Errorf("%+v", no)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := h.Get("RateLimit"); got != `"alloc-repeats";r=0;t=60` {
		t.Errorf("RateLimit: %s", got)
	}
}
