package ratelimit

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/filters/refuse"
)

func rateOf(events int, window time.Duration) Rate {
	return Rate{Key: []string{"{client_ip}"}, Events: events, Window: caddy.Duration(window)}
}

func TestRateCheck(t *testing.T) {
	for want, change := range map[string]func(*Rate){
		"it has no key":                 func(r *Rate) { r.Key = nil },
		"0 events are outside":          func(r *Rate) { r.Events = 0 },
		"1000001 events":                func(r *Rate) { r.Events = 1_000_001 },
		"the window 0s":                 func(r *Rate) { r.Window = 0 },
		"the window 24h0m0.001s":        func(r *Rate) { r.Window = caddy.Duration(24*time.Hour + time.Millisecond) },
		"the window 1.0005s":            func(r *Rate) { r.Window = caddy.Duration(1000500 * time.Microsecond) },
		"a burst of -1":                 func(r *Rate) { r.Burst = -1 },
		"-1 keys":                       func(r *Rate) { r.Keys = -1 },
		"an IPv6 prefix of 129 bits":    func(r *Rate) { r.IPv6Prefix = 129 },
		"an IPv6 prefix is for the key": func(r *Rate) { r.IPv6Prefix, r.Key = 64, []string{"{json.ip}", "x"} },
		"a name is missing":             func(r *Rate) { r.Key = []string{"{json}"} },
	} {
		rates := []Rate{rateOf(1, time.Second), rateOf(20, time.Second)}
		change(&rates[1])
		if _, err := Keys(rates); err == nil || !strings.Contains(err.Error(), "rate, number 2: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if _, err := Keys(make([]Rate, 17)); err == nil {
		t.Error("17 rates were taken")
	}
	one := []Rate{rateOf(20, time.Second)}
	if _, err := Keys(one); err != nil || one[0].Burst != 20 || one[0].IPv6Prefix != 64 {
		t.Errorf("%+v, error %v", one[0], err)
	}
}

// openedRates opens the rates of the gate pooled.
func openedRates(t *testing.T, rates []Rate) *Set {
	t.Helper()
	keys, err := Keys(rates)
	if err != nil {
		t.Fatal(err)
	}
	rs := new(Set)
	if err := rs.Open("pooled", rates, keys); err != nil {
		t.Fatal(err)
	}
	return rs
}

// Each table from the pool is released once, even after a provision that failed halfway.
func TestRateTablesAreGivenBack(t *testing.T) {
	users := func() (n int) {
		rateTables.Range(func(key, _ any) bool {
			if refs, _ := rateTables.References(key); strings.HasPrefix(key.(string), `"pooled"`) {
				n += refs
			}
			return true
		})
		return n
	}
	rates := []Rate{rateOf(1, time.Second), rateOf(2, time.Second)}
	first, second := openedRates(t, rates), openedRates(t, rates)
	if first.rates[0].table != second.rates[0].table || first.rates[0].table == first.rates[1].table {
		t.Error("equal rates are not one, or others are")
	}
	half := openedRates(t, rates) // what comes after it fails
	if _, err := Keys(append(rates, rates[1])); err == nil || !strings.Contains(err.Error(), "number 3: there is one just like it") {
		t.Errorf("the same rate twice: error %v", err)
	}
	if n := users(); n != 6 {
		t.Errorf("%d users, want 6", n)
	}
	for i, rs := range []*Set{half, half, first, first, new(Set)} {
		if err := rs.Close(); err != nil {
			t.Error(err)
		}
		if want := []int{4, 4, 2, 2, 2}[i]; users() != want {
			t.Errorf("%d users after clean-up %d, want %d", users(), i, want)
		}
	}
	if err := second.Close(); err != nil || users() != 0 {
		t.Errorf("%d users are left, error %v", users(), err)
	}
}

// The fields are lists of structured fields as the draft has them.
func TestRateLimitFields(t *testing.T) {
	policyForm := regexp.MustCompile(`^"([ -!#-\[\]-~]|\\["\\])*";q=[0-9]{1,15};w=[1-9][0-9]{0,14}$`)
	limitForm := regexp.MustCompile(`^"([ -!#-\[\]-~]|\\["\\])*";r=0;t=[1-9][0-9]{0,14}$`)
	for _, c := range []struct {
		gate          string
		rate          Rate
		wait          time.Duration
		policy, limit string
		after         int64
	}{
		{"main", rateOf(20, time.Second), 50 * time.Millisecond, `"main-1";q=20;w=1`, `"main-1";r=0;t=1`, 1},
		{"", rateOf(1, 500*time.Millisecond), 500 * time.Millisecond, `"rate-1";q=2;w=1`, `"rate-1";r=0;t=1`, 1},
		{"", rateOf(1, 1500*time.Millisecond), 1500 * time.Millisecond, `"rate-1";q=1;w=2`, `"rate-1";r=0;t=2`, 2},
		{"", rateOf(1_000_000, time.Millisecond), 1, `"rate-1";q=1000000000;w=1`, `"rate-1";r=0;t=1`, 1},
		{"", rateOf(1_000_000, 24*time.Hour), time.Second, `"rate-1";q=1000000;w=86400`, `"rate-1";r=0;t=1`, 1},
		{"", rateOf(1, 24*time.Hour), 24 * time.Hour, `"rate-1";q=1;w=86400`, `"rate-1";r=0;t=86400`, 86400},
		{`a"b\c`, rateOf(3, time.Minute), time.Second + 1, `"a\"b\\c-1";q=3;w=60`, `"a\"b\\c-1";r=0;t=2`, 2},
		{"秒杀\r\n", rateOf(3, time.Minute), time.Second, `"-----1";q=3;w=60`, `"-----1";r=0;t=1`, 1},
	} {
		h := make(http.Header)
		rate := refuse.NewRateAnswers(c.gate, "1", c.rate.Events, time.Duration(c.rate.Window))
		no := rate.Refuse(h, c.wait)
		policy, limit := h.Get("RateLimit-Policy"), h.Get("RateLimit")
		if policy != c.policy || limit != c.limit || no.RetryAfter != c.after || no.Reason != "rate_limited" {
			t.Errorf("gate %q: %s and %s, %+v", c.gate, policy, limit, no)
		}
		if !policyForm.MatchString(policy) || !limitForm.MatchString(limit) {
			t.Errorf("not well-formed: %s or %s", policy, limit)
		}
	}
}
