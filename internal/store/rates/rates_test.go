package rates_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/rates"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// rateOptions reaches a server at addr: its own address, or that of a proxy.
func rateOptions(b redistest.Backend, addr string) shard.Options {
	o := shard.Options{Addresses: []string{addr}, Timeout: stocktest.Long}
	if _, ok := b.(*redistest.EmbeddedServer); ok {
		o.Scripts = lua.Embedded()
	}
	return o
}

// rateEdge makes an edge that has seen Redis and does nothing on its own. All of these edges
// have the same key, and so the same secret.
func rateEdge(t testing.TB, o shard.Options, rates *shard.Client) *edge.Edge {
	t.Helper()
	s, err := reservation.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	e := edge.New(s, edge.Options{Keys: []shard.SigningKey{{KID: "rates", Seal: [32]byte{1}}}, Rates: rates})
	t.Cleanup(func() {
		if err := e.Stop(stocktest.Soon(t)); err != nil {
			t.Error(err)
		}
	})
	if err := e.Refresh(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	return e
}

// takeRate takes one rate; 0: it passed.
func takeRate(t testing.TB, e *edge.Edge, rate *rates.Rate, key string) time.Duration {
	t.Helper()
	over, wait, err := e.Rates().Take(stocktest.Soon(t), []rates.Try{{Rate: rate, Key: key}})
	if err != nil {
		t.Fatal(err)
	}
	if (over == 0) != (wait > 0) {
		t.Fatalf("over %d, wait %v", over, wait)
	}
	return wait
}

// leaky is the meaning of a rate in fractions: units of 1/events ms.
type leaky struct{ events, window, burst, level, at int64 }

func (l *leaky) take(now int64) (wait int64) {
	if now < l.at { // the clock was set back: time continues from here
		l.at = now
	}
	level := max(0, l.level-(now-l.at)*l.events)
	if above := level + l.window - l.burst*l.window; above > 0 {
		return (above + l.events - 1) / l.events
	}
	l.level, l.at = level+l.window, now
	return 0
}

// The script agrees with the model at any clock, also when it is set back. Each attempt comes
// through an edge that remembers nothing.
func TestSharedRateAgreesWithModel(t *testing.T) {
	server := redistest.Embedded(t)
	client := server.Client()
	seed := draw.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	begin := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC).UnixMilli()
	draws := draw.Times(100, 2000)
	for n, m := range []leaky{
		{events: 20, window: 1000, burst: 40},
		{events: 3, window: 1000, burst: 1},
		{events: 7, window: 10_000, burst: 3},
		{events: 1, window: 86_400_000, burst: 1},
		{events: 1_000_000, window: 86_400_000, burst: 1_000_000},
		{events: 5000, window: 1000, burst: 2},
	} {
		now, passed := begin, 0
		for range draws {
			step := rnd.Int64N(m.window/m.events + 2)
			switch rnd.IntN(20) {
			case 0:
				step = -step
			case 1:
				step *= m.burst
			case 2, 3, 4, 5:
				step = 0
			}
			now += step
			server.SetTime(time.UnixMilli(now))
			key := fmt.Sprintf("stockgate:{rate}:%d", n)
			raw, err := client.Eval(stocktest.Soon(t), lua.Embedded().Of(lua.Rate).Source, []string{key, key + ".coarse", key + ".count"}, 1, m.events, m.window, m.burst, 10).Slice()
			if err != nil {
				t.Fatal(err)
			}
			want := m.take(now)
			got := int64(0)
			if r := raw[1].([]any); r[0] == "over" {
				got = r[2].(int64)
			} else {
				passed++
			}
			if got != want || raw[0] != now {
				t.Fatalf("%+v at %d: wait %d, want %d", m, now-begin, got, want)
			}
		}
		if passed == 0 || passed == draws && m.burst < 40 {
			t.Errorf("%+v: %d of %d passed", m, passed, draws)
		}
	}
}

// At the limits of the burst and of the time that one attempt takes to drain.
func TestSharedRateBoundaries(t *testing.T) {
	server := redistest.Embedded(t)
	rate := rates.NewRate("r", 4, time.Second, 2)
	noon := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		after time.Duration
		wait  time.Duration
	}{
		{0, 0},
		{0, 0},
		{0, 250 * time.Millisecond},
		{249 * time.Millisecond, time.Millisecond},
		{250 * time.Millisecond, 0},
		{250 * time.Millisecond, 250 * time.Millisecond},
		{time.Hour, 0},
		{time.Hour, 0},
		{time.Hour, 250 * time.Millisecond},
		{time.Minute, 250 * time.Millisecond}, // the clock was set back
		{time.Minute + 250*time.Millisecond, 0},
	} {
		server.SetTime(noon.Add(step.after))
		// a new edge, which remembers nothing
		if wait := takeRate(t, rateEdge(t, rateOptions(server, server.Addr()), nil), rate, "k"); wait != step.wait {
			t.Errorf("after %v: wait %v, want %v", step.after, wait, step.wait)
		}
	}
}

// An attempt counts for all of its rates or for none.
func TestSharedRatesAreTakenTogether(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		wide := rates.NewRate("all", 3, time.Hour, 3)
		narrow := rates.NewRate("ip", 1, 2*time.Hour, 1)
		e := rateEdge(t, rateOptions(b, b.Addr()), nil)
		take := func(key string) (int, time.Duration) {
			over, wait, err := rateEdge(t, rateOptions(b, b.Addr()), nil).Rates().Take(stocktest.Soon(t), []rates.Try{{Rate: wide, Key: ""}, {Rate: narrow, Key: key}})
			if err != nil {
				t.Fatal(err)
			}
			return over, wait
		}
		for i, want := range []int{-1, 1, 1, 1} { // refused by narrow: wide is not charged
			if over, _ := take("a"); over != want {
				t.Errorf("attempt %d: over %d, want %d", i, over, want)
			}
		}
		for i := range 2 {
			if wait := takeRate(t, e, wide, ""); wait != 0 {
				t.Errorf("%d of 3 were left: wait %v", 2-i, wait)
			}
		}
		if over, wait := take("b"); over != 0 || wait > time.Hour/3 {
			t.Errorf("over %d, wait %v; want the wide one", over, wait)
		}
		if wait := takeRate(t, e, narrow, "b"); wait != 0 {
			t.Errorf("narrow was charged by an attempt that wide refused: wait %v", wait)
		}
		if over, wait := take("b"); over != 1 || wait <= time.Hour {
			t.Errorf("over %d, wait %v; want the one that has to wait longest", over, wait)
		}
	})
}

// Other numbers or another id have other buckets.
func TestSharedRatesAreApart(t *testing.T) {
	server := redistest.Embedded(t)
	e := rateEdge(t, rateOptions(server, server.Addr()), nil)
	for _, rate := range []*rates.Rate{
		rates.NewRate("a", 1, time.Hour, 1), rates.NewRate("b", 1, time.Hour, 1),
		rates.NewRate("a", 2, time.Hour, 1), rates.NewRate("a", 1, 2*time.Hour, 1),
		rates.NewRate("a", 1, time.Hour, 2),
	} {
		if wait := takeRate(t, e, rate, "k"); wait != 0 {
			t.Errorf("%+v: wait %v", rate, wait)
		}
	}
}

// Redis holds no key in clear text, and none forever.
func TestSharedRateKeys(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := rateEdge(t, rateOptions(b, b.Addr()), nil)
		takeRate(t, e, rates.NewRate("main {client_ip}", 2, time.Minute, 2), "203.0.113.77")
		client, found := b.Client(), 0
		keys, err := client.Keys(stocktest.Soon(t), "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if strings.Contains(key, "203.0.113") {
				t.Errorf("key %s", key)
			}
			if !strings.HasPrefix(key, "stockgate:{rate}:") {
				continue
			}
			found++
			ttl, err := client.PTTL(stocktest.Soon(t), key).Result()
			if err != nil || ttl <= 0 || ttl > 122*time.Second {
				t.Errorf("key %s is kept for %v (%v)", key, ttl, err)
			}
		}
		if found != 2 {
			t.Errorf("%d keys, want a bucket and the count: %q", found, keys)
		}
	})
}

// A key that is over costs no call; one that is not costs one. Another edge asks once.
func TestOverIsRemembered(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		proxy := redistest.NewProxy(t, b.Addr())
		e := rateEdge(t, rateOptions(b, proxy.Addr()), nil)
		rate := rates.NewRate("r", 2, time.Hour, 2)
		takeRate(t, e, rate, "other") // the script is loaded
		for i, want := range []struct {
			calls int
			over  bool
		}{{1, false}, {1, false}, {1, true}, {0, true}, {0, true}} {
			before := proxy.Requests()
			wait := takeRate(t, e, rate, "k")
			if calls := proxy.Requests() - before; calls != want.calls || (wait > 0) != want.over {
				t.Errorf("attempt %d: %d calls, wait %v; want %d calls, over %t", i, calls, wait, want.calls, want.over)
			}
		}
		before := proxy.Requests()
		for range 1000 {
			takeRate(t, e, rate, "k")
		}
		if calls := proxy.Requests() - before; calls != 0 {
			t.Errorf("1000 attempts with a key that is over cost %d calls", calls)
		}
		if wait := takeRate(t, e, rate, "other"); wait != 0 {
			t.Errorf("another key: wait %v", wait)
		}
	})
}

func TestOverMemory(t *testing.T) {
	var m rates.OverMemory
	rate := rates.NewRate("r", 1, time.Hour, 1)
	other := rates.NewRate("s", 1, time.Hour, 1)
	now := time.Now()
	k := rates.Try{Rate: rate, Key: "k"}
	if wait := m.Wait(k, now); wait != 0 {
		t.Errorf("at first: %v", wait)
	}
	m.Remember(k, now.Add(time.Minute))
	m.Remember(k, now.Add(time.Second)) // an older answer
	for after, want := range map[time.Duration]time.Duration{
		0: time.Minute, time.Minute - 1: 1, time.Minute: 0, time.Hour: 0,
	} {
		if wait := m.Wait(k, now.Add(after)); wait != want {
			t.Errorf("after %v: %v, want %v", after, wait, want)
		}
	}
	for _, apart := range []rates.Try{{Rate: other, Key: "k"}, {Rate: rate, Key: ""}} {
		if wait := m.Wait(apart, now); wait != 0 {
			t.Errorf("another key: %v", wait)
		}
	}
	// When full, it keeps those that have to wait longest.
	for i := range 4 * rates.OverKeys {
		m.Remember(rates.Try{Rate: other, Key: strconv.Itoa(i)}, now.Add(time.Second))
	}
	if wait := m.Wait(k, now); wait != time.Minute {
		t.Errorf("after many keys that wait less: %v", wait)
	}
	if n := testing.AllocsPerRun(100, func() { m.Wait(k, now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Without Redis the result is unknown. The edge asks again when the connection broke.
func TestSharedRateWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	e := rateEdge(t, rateOptions(server, proxy.Addr()), nil)
	rate := rates.NewRate("r", 10, time.Hour, 10)
	takeRate(t, e, rate, "k")

	proxy.CutReplies(1, "EVALSHA")
	if wait := takeRate(t, e, rate, "k"); wait != 0 || proxy.CutsLeft() != 0 {
		t.Errorf("after a broken connection: wait %v, %d cuts left", wait, proxy.CutsLeft())
	}
	proxy.DropAll()
	if over, _, err := e.Rates().Take(stocktest.Soon(t), []rates.Try{{Rate: rate, Key: "k"}}); over != -1 || !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("over %d, error %v", over, err)
	}
	proxy.Heal()
	takeRate(t, e, rate, "k")
}

func TestSharedRateBeforeTheFirstWord(t *testing.T) {
	server := redistest.Embedded(t)
	s, err := reservation.Open(rateOptions(server, server.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	e := edge.New(s, edge.Options{})
	defer e.Stop(stocktest.Soon(t))
	over, _, err := e.Rates().Take(stocktest.Soon(t), []rates.Try{{Rate: rates.NewRate("r", 1, time.Hour, 1)}})
	if over != -1 || !errors.Is(err, shard.ErrStarting) || !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("over %d, error %v", over, err)
	}
}

// The buckets may be in a Redis of their own.
func TestSharedRateInItsOwnRedis(t *testing.T) {
	stock, counted := redistest.Embedded(t), redistest.Embedded(t)
	own, err := shard.Open(rateOptions(counted, counted.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	takeRate(t, rateEdge(t, rateOptions(stock, stock.Addr()), own), rates.NewRate("r", 1, time.Hour, 1), "k")
	for name, tc := range map[string]struct {
		b    redistest.Backend
		want int
	}{"stock": {stock, 0}, "rates": {counted, 2}} {
		keys, err := tc.b.Client().Keys(stocktest.Soon(t), "stockgate:{rate}:*").Result()
		if err != nil || len(keys) != tc.want {
			t.Errorf("%s: %q, %v", name, keys, err)
		}
	}
}

// One call may carry many attempts, and each counts the ones before it.
func TestRateScriptTakesManyAttempts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		script := rateOptions(b, b.Addr()).Scripts
		if script == nil {
			script = lua.Redis()
		}
		var keys []string
		for _, key := range []string{"{rate}:a", "{rate}:b", "{rate}:a", "{rate}:b", "{rate}:a"} {
			keys = append(keys, key, key+".coarse", key+".count")
		}
		raw, err := b.Client().Eval(stocktest.Soon(t), script.Of(lua.Rate).Source, keys,
			2, 1, 3_600_000, 2, 9, 1, 3_600_000, 1, 9, // a and b
			2, 1, 3_600_000, 2, 9, 1, 3_600_000, 1, 9, // b is over: a is not charged
			1, 1, 3_600_000, 2, 9, // a again
			0,
		).Slice()
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(raw[1:]); got != "[[ok] [over 2 3600000] [ok] [ok]]" {
			t.Errorf("replies %s", got)
		}
	})
}

// An edge keeps the bound, on each server. What a key has in its own bucket still counts.
func TestSharedRateOfAnEdgeIsBounded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := rateEdge(t, rateOptions(b, b.Addr()), nil)
		rate := rates.NewRate("r", 1, time.Hour, 1).WithKeys(10)
		for n := range 300 {
			takeRate(t, e, rate, fmt.Sprint(n))
		}
		own, coarse := 0, 0
		for _, key := range b.Client().Keys(stocktest.Soon(t), "stockgate:{rate}:*").Val() {
			if strings.Contains(key, ".") {
				coarse++
			} else {
				own++
			}
		}
		if own != 10+1 || coarse == 0 || coarse > 290 { // and the count
			t.Errorf("%d keys of their own and %d that are shared", own, coarse)
		}
		if takeRate(t, e, rate, "0") == 0 {
			t.Error("a key that is over passes the rate")
		}
	})
}

// However many keys come, no more have buckets than the rate allows, and a bucket keeps its
// count. When the buckets are empty there is room again.
func TestSharedRateKeysAreBounded(t *testing.T) {
	server := redistest.Embedded(t)
	client := server.Client()
	now := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)
	server.SetTime(now)
	const bound, coarse = 100, 8
	take := func(n int) (passed bool) {
		t.Helper()
		keys := []string{fmt.Sprintf("{rate}:k%d", n), fmt.Sprintf("{rate}:c%d", n%coarse), "{rate}:count"}
		raw, err := client.Eval(stocktest.Soon(t), lua.Embedded().Of(lua.Rate).Source, keys, 1, 1, 1000, 5, bound).Slice()
		if err != nil {
			t.Fatal(err)
		}
		return raw[1].([]any)[0] == "ok"
	}
	count := func() (buckets, shared int) {
		t.Helper()
		for _, key := range client.Keys(stocktest.Soon(t), "*").Val() {
			switch {
			case strings.HasPrefix(key, "{rate}:k"):
				buckets++
			case strings.HasPrefix(key, "{rate}:c") && key != "{rate}:count":
				shared++
			}
		}
		return buckets, shared
	}
	for round := range 4 {
		passed := 0
		for n := range 2000 {
			if take(n) {
				passed++
			}
			if n%10 == 9 { // this key keeps its bucket while others come
				take(3)
			}
		}
		if buckets, shared := count(); buckets > bound || round != 2 && buckets != bound || shared != coarse {
			t.Errorf("round %d: %d buckets and %d that are shared, want %d and %d", round, buckets, shared, bound, coarse)
		}
		if want := bound + coarse*5; passed > want || round == 0 && passed != want {
			t.Errorf("round %d: %d passed, the bound is %d", round, passed, want)
		}
		now = now.Add(time.Minute) // all are empty
		if round == 1 {
			now = now.Add(-time.Hour) // the clock is set back: there is room again all the same
		}
		server.SetTime(now)
		for _, key := range client.Keys(stocktest.Soon(t), "*").Val() {
			if key != "{rate}:count" { // the count may outlive the buckets
				client.Del(stocktest.Soon(t), key)
			}
		}
	}
}

func BenchmarkKeyKnownToBeOver(b *testing.B) {
	b.ReportAllocs()
	var m rates.OverMemory
	k := rates.Try{Rate: rates.NewRate("r", 1, time.Hour, 1), Key: "203.0.113.77"}
	now := time.Now()
	m.Remember(k, now.Add(time.Hour))
	for b.Loop() {
		if m.Wait(k, now) == 0 {
			b.Fatal("the key was forgotten")
		}
	}
}
