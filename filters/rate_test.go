package filters_test

import (
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters"
)

// noon is when the tests of rates begin: their clock moves only as they say.
var noon = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)

// passes counts how many of n attempts pass at one time.
func passes(t *filters.RateTable, now time.Time, key string, n int) (passed int) {
	for range n {
		if t.Take(now, key) == 0 {
			passed++
		}
	}
	return passed
}

func TestRateBoundaries(t *testing.T) {
	const tick = time.Microsecond // buckets are counted in floating point, exact to a nanosecond
	type step struct {
		after time.Duration // since noon
		tries int
		pass  int
		wait  time.Duration // of a refused one
	}
	for _, c := range []struct {
		name  string
		rate  filters.Rate
		steps []step
	}{
		{"the burst is the events", filters.Rate{Events: 20, Window: time.Second}, []step{
			{0, 25, 20, 50 * time.Millisecond},
			{50*time.Millisecond - tick, 1, 0, tick},
			{50 * time.Millisecond, 2, 1, 50 * time.Millisecond},
			{time.Second, 30, 19, 50 * time.Millisecond},
			{time.Hour, 30, 20, 50 * time.Millisecond},
		}},
		{"a larger burst", filters.Rate{Events: 20, Window: time.Second, Burst: 40}, []step{
			{0, 100, 40, 50 * time.Millisecond},
			{time.Second, 100, 20, 50 * time.Millisecond},
			{3 * time.Second, 100, 40, 50 * time.Millisecond},
		}},
		{"a burst of one spreads them", filters.Rate{Events: 4, Window: time.Second, Burst: 1}, []step{
			{0, 2, 1, 250 * time.Millisecond},
			{100 * time.Millisecond, 1, 0, 150 * time.Millisecond},
			{250*time.Millisecond - tick, 1, 0, tick},
			{250 * time.Millisecond, 2, 1, 250 * time.Millisecond},
			{time.Minute, 2, 1, 250 * time.Millisecond},
		}},
		{"thirds", filters.Rate{Events: 3, Window: time.Second, Burst: 1}, []step{
			{0, 1, 1, 0},
			{time.Second/3 - tick, 1, 0, tick},
			{time.Second/3 + 1, 1, 1, 0},
		}},
		{"one a day", filters.Rate{Events: 1, Window: 24 * time.Hour}, []step{
			{0, 2, 1, 24 * time.Hour},
			{24*time.Hour - tick, 1, 0, tick},
			{24 * time.Hour, 2, 1, 24 * time.Hour},
		}},
		{"a refused one costs nothing", filters.Rate{Events: 1, Window: time.Second}, []step{
			{0, 1000, 1, time.Second},
			{time.Second, 1000, 1, time.Second},
		}},
		{"a clock that is behind", filters.Rate{Events: 1, Window: time.Second}, []step{
			{10 * time.Second, 2, 1, time.Second},
			{9 * time.Second, 1, 0, time.Second},
			{10500 * time.Millisecond, 1, 0, 500 * time.Millisecond},
			{9 * time.Second, 1, 0, 500 * time.Millisecond},
			{11 * time.Second, 2, 1, time.Second},
		}},
		{"no time counts twice", filters.Rate{Events: 1, Window: time.Second, Burst: 2}, []step{
			{10 * time.Second, 1, 1, 0},
			{9 * time.Second, 1, 1, 0},
			{10 * time.Second, 1, 0, time.Second},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := filters.NewRateTable(c.rate)
			for _, s := range c.steps {
				passed, wait := 0, time.Duration(0)
				for range s.tries {
					if w := table.Take(noon.Add(s.after), "key"); w == 0 {
						passed++
					} else {
						wait = w
					}
				}
				if passed != s.pass || wait.Round(tick) != s.wait {
					t.Errorf("after %v: %d of %d passed, wait %v; want %d and %v", s.after, passed, s.tries, wait, s.pass, s.wait)
				}
			}
		})
	}
}

// A key that waits as long as it was told passes, whatever the rate.
func TestRateWaitIsEnough(t *testing.T) {
	for events := 1; events <= 60; events++ {
		table := filters.NewRateTable(filters.Rate{Events: events, Window: 7 * time.Second, Burst: 1})
		now := noon
		for range 50 {
			if wait := table.Take(now, "key"); wait != 0 {
				t.Fatalf("%d in 7s: %v more to wait after the wait", events, wait)
			}
			now = now.Add(table.Take(now, "key"))
		}
	}
}

func TestRateKeysAreApart(t *testing.T) {
	table := filters.NewRateTable(filters.Rate{Events: 1, Window: time.Minute})
	for _, key := range []string{"", "a", "b", "\x00", strings.Repeat("long", 1<<18)} {
		if n := passes(table, noon, key, 3); n != 1 {
			t.Errorf("%d attempts of %.8q passed", n, key)
		}
	}
	small := filters.NewRateTable(filters.Rate{Events: 2, Window: time.Minute, Keys: 1})
	if n := passes(small, noon, "constant", 5); n != 2 {
		t.Errorf("%d attempts passed where there is room for one key", n)
	}
}

// All at once, exactly the burst passes.
func TestRateIsExactUnderConcurrency(t *testing.T) {
	const burst, more, workers = 1000, 3000, 16
	table := filters.NewRateTable(filters.Rate{Events: burst, Window: time.Second})
	var passed atomic.Int64
	var group sync.WaitGroup
	begin := make(chan struct{})
	for w := range workers {
		group.Go(func() {
			<-begin
			for i := range (burst + more) / workers {
				if table.Take(noon, "crowd") == 0 {
					passed.Add(1)
				}
				table.Take(noon, strconv.Itoa(w*10_000+i)) // others come and go
			}
		})
	}
	close(begin)
	group.Wait()
	if passed.Load() != burst {
		t.Errorf("%d passed, want %d", passed.Load(), burst)
	}
}

// An attacker has millions of keys and uses each once, a hundred thousand in a
// second. The table does not grow; an honest buyer always passes; one who is too
// fast gets no attempt above its rate.
func TestRateTableUnderAttack(t *testing.T) {
	const (
		perKey = 100 // bytes
		events = 20
	)
	before := heap()
	table := filters.NewRateTable(filters.Rate{Events: events, Window: time.Second})
	empty := heap() - before

	seconds := 0
	honestTurnedAway, greedyPassed := 0, 0
	key := []byte("2001:db8:ffff::0000000")
	for i := range attackers {
		now := noon.Add(time.Duration(i) * 10 * time.Microsecond)
		for n, at := i, len(key)-1; at >= len(key)-7; n, at = n/10, at-1 {
			key[at] = byte('0' + n%10)
		}
		table.Take(now, string(key))
		if i%5_000 == 0 && table.Take(now, "honest") != 0 { // at its rate
			honestTurnedAway++
		}
		if i%500 == 0 && table.Take(now, "greedy") == 0 { // at ten times the rate
			greedyPassed++
		}
		if i%100_000 == 0 {
			seconds++
		}
	}
	after := heap() - before
	t.Logf("%d keys: %d bytes at first, %d after the attack", attackers, empty, after)
	if most := int64(filters.DefaultRateKeys * perKey); empty > most || after > most {
		t.Errorf("the table has %d bytes, then %d; at most %d were promised", empty, after, most)
	}
	if honestTurnedAway > 0 {
		t.Errorf("an honest buyer was refused %d times", honestTurnedAway)
	}
	if most := events * (seconds + 1); greedyPassed > most || greedyPassed < most-events {
		t.Errorf("one who is too fast passed %d times in %d s, want up to %d", greedyPassed, seconds, most)
	}
	runtime.KeepAlive(table)
}

// A key that has used up its rate is not forgotten for being silent: others have made
// fewer attempts.
func TestRateTableKeepsWhoIsOver(t *testing.T) {
	table := filters.NewRateTable(filters.Rate{Events: 10, Window: time.Hour, Keys: 16})
	passes(table, noon, "greedy", 10)
	for i := range 1000 {
		if table.Take(noon.Add(time.Duration(i)*time.Millisecond), strconv.Itoa(i)) != 0 {
			t.Fatalf("key %d was refused", i)
		}
	}
	if n := passes(table, noon.Add(time.Second), "greedy", 10); n != 0 {
		t.Errorf("it passed %d times more", n)
	}
}

// Where all keys of a set are over their rate, the one that may pass soonest is
// forgotten; a new key passes all the same.
func TestRateTableFullOfKeysThatAreOver(t *testing.T) {
	table := filters.NewRateTable(filters.Rate{Events: 1, Window: time.Hour, Keys: 16})
	for i := range 16 { // the first will be free first
		if table.Take(noon.Add(time.Duration(i)*time.Minute), strconv.Itoa(i)) != 0 {
			t.Fatalf("key %d was refused", i)
		}
	}
	now := noon.Add(20 * time.Minute)
	if table.Take(now, "new") != 0 {
		t.Error("a new key was refused for want of room")
	}
	for i := 15; i > 0; i-- {
		if table.Take(now, strconv.Itoa(i)) == 0 {
			t.Errorf("key %d was forgotten, not the first", i)
		}
	}
	if table.Take(now, "0") != 0 {
		t.Error("the first key was not forgotten")
	}
}

// heap is what is allocated and used.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestRateAllocatesNothing(t *testing.T) {
	table := filters.NewRateTable(filters.Rate{Events: 10, Window: time.Second, Keys: 16})
	now, i := noon, 0
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	for name, f := range map[string]func(){
		"pass":   func() { now = now.Add(time.Second); table.Take(now, "known") },
		"refuse": func() { table.Take(now, "over") },
		"new":    func() { i++; table.Take(now, keys[i%len(keys)]) },
	} {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkRate(b *testing.B) {
	const ip = "203.0.113.77"
	b.Run("pass", func(b *testing.B) {
		b.ReportAllocs()
		table := filters.NewRateTable(filters.Rate{Events: 1_000_000, Window: time.Millisecond})
		now := noon
		for b.Loop() {
			now = now.Add(time.Microsecond)
			if table.Take(now, ip) != 0 {
				b.Fatal("refused")
			}
		}
	})
	b.Run("refuse", func(b *testing.B) {
		b.ReportAllocs()
		table := filters.NewRateTable(filters.Rate{Events: 1, Window: time.Hour})
		table.Take(noon, ip)
		for b.Loop() {
			if table.Take(noon, ip) == 0 {
				b.Fatal("passed")
			}
		}
	})
	b.Run("new key", func(b *testing.B) {
		b.ReportAllocs()
		table := filters.NewRateTable(filters.Rate{Events: 20, Window: time.Second})
		keys := make([]string, 1<<20)
		for i := range keys {
			keys[i] = strconv.Itoa(i)
		}
		i := 0
		for b.Loop() {
			i++
			table.Take(noon, keys[i%len(keys)])
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		table := filters.NewRateTable(filters.Rate{Events: 20, Window: time.Second})
		keys := make([]string, 1<<12)
		for i := range keys {
			keys[i] = strconv.Itoa(i)
		}
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				table.Take(noon, keys[i%len(keys)])
			}
		})
	})
}
