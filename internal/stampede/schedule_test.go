package stampede_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockgate/stockgate/internal/stampede"
)

func TestArrivals(t *testing.T) {
	if all := stampede.Spike(3); !slices.Equal(all, []time.Duration{0, 0, 0}) {
		t.Errorf("spike: %v", all)
	}
	ramp := stampede.Ramp(1000, 10*time.Second)
	half := 0
	for _, at := range ramp {
		if at < 5*time.Second {
			half++
		}
	}
	if !slices.IsSorted(ramp) || half != 250 || ramp[999] >= 10*time.Second { // a quarter of the area under the line
		t.Errorf("ramp: %d in the first half, the last at %v", half, ramp[999])
	}
	poisson := stampede.Poisson(1000, 10*time.Second, 7)
	if !slices.IsSorted(poisson) || poisson[999] >= 10*time.Second || poisson[0] == poisson[999] {
		t.Errorf("poisson: from %v to %v", poisson[0], poisson[999])
	}
	if !slices.Equal(poisson, stampede.Poisson(1000, 10*time.Second, 7)) || slices.Equal(poisson, stampede.Poisson(1000, 10*time.Second, 8)) {
		t.Error("poisson does not follow its seed")
	}
	stampede.Stretch(ramp, 5*time.Second)
	if ramp[999] != 5*time.Second {
		t.Errorf("stretched to %v", ramp[999])
	}
}

func TestReplay(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		want []time.Duration
		says string
	}{
		"as Caddy writes it": {`{"level":"info","ts":1646861401.5,"request":{"method":"POST"},"duration":0.5,"status":201}
{"ts":1646861401.25,"duration":0.125}

{"ts":1646861404,"duration":1}
`, []time.Duration{0, 125 * time.Millisecond, 2 * time.Second}, ""},
		"as text":         {`{"ts":"2026-11-11T00:00:01Z"}` + "\n" + `{"ts":"2026-11-11T00:00:03.5Z","duration":"500ms"}`, []time.Duration{0, 2 * time.Second}, ""},
		"in ms":           {`{"ts":1646861401500.0}` + "\n" + `{"ts":1646861402500.0}`, []time.Duration{0, time.Second}, ""},
		"no JSON":         {"{}x\n", nil, "line 1 is not JSON"},
		"no time":         {`{"ts":1}` + "\n" + `{"ts":"noon"}`, nil, "line 2 has no time ts"},
		"empty":           {"\n", nil, "it has no requests"},
		"an endless line": {strings.Repeat("x", 2<<20), nil, "too long"},
	} {
		got, err := stampede.Replay(strings.NewReader(c.log))
		if !slices.Equal(got, c.want) || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// pipes is a listener in memory, in whose connections a synctest bubble sees waiting.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.over) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// inBubble runs crowds against a handler, by a clock that moves only while all wait.
func inBubble(t *testing.T, h http.HandlerFunc, test func(run func(stampede.Crowd) *stampede.Tally)) {
	synctest.Test(t, func(t *testing.T) {
		listener := &pipes{conns: make(chan net.Conn), over: make(chan struct{})}
		server := http.Server{Handler: h}
		go server.Serve(listener)
		test(func(c stampede.Crowd) *stampede.Tally {
			c.URL, c.Baskets = "http://shop.test/api/order", []stampede.Basket{stampede.Buy("a", 1)}
			c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
				mine, theirs := net.Pipe()
				select {
				case listener.conns <- theirs:
					return mine, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			tally, err := c.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return tally
		})
		if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// every is n arrivals, one each gap.
func every(gap time.Duration, n int) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = time.Duration(i) * gap
	}
	return all
}

// around reports whether the histogram may have made this of a duration.
func around(got, want time.Duration) bool { return got >= want && got <= want+want/16 }

// A shop that takes 10 ms for an order, one at a time, gets one each ms: what buyers wait
// counts, not what the shop takes. A closed loop does not see it.
func TestOpenLoopLatencyCountsTheWaiting(t *testing.T) {
	const orders, takes = 100, 10 * time.Millisecond
	turn := make(chan struct{}, 1)
	slow := func(http.ResponseWriter, *http.Request) {
		turn <- struct{}{}
		time.Sleep(takes)
		<-turn
	}
	waits := func(n time.Duration) time.Duration { return n*takes - (n-1)*time.Millisecond }
	inBubble(t, slow, func(run func(stampede.Crowd) *stampede.Tally) {
		turn = make(chan struct{}, 1) // of this bubble
		open := run(stampede.Crowd{Buyers: orders, Arrivals: every(time.Millisecond, orders)})
		if l := open.Latency; !around(l.P50, waits(50)) || !around(l.P90, waits(90)) || !around(l.P99, waits(99)) || l.Max != waits(100) {
			t.Errorf("open loop: %+v", l)
		}
		if open.Late == nil || open.Late.Max != 0 {
			t.Errorf("it began late: %+v", open.Late)
		}
		closed := run(stampede.Crowd{Buyers: orders, Concurrency: 1})
		if l := closed.Latency; !around(l.P99, takes) || closed.Late != nil {
			t.Errorf("closed loop: %+v, %+v", l, closed.Late)
		}
		few := run(stampede.Crowd{Buyers: orders, Arrivals: every(time.Millisecond, orders), Concurrency: 1})
		if l := few.Latency; l.Max != waits(100) || few.Late.Max != waits(100)-takes {
			t.Errorf("with one connection: %+v, late by %+v", l, few.Late)
		}
	})
}

func TestProgress(t *testing.T) {
	slow := func(w http.ResponseWriter, _ *http.Request) { time.Sleep(1500 * time.Millisecond) }
	inBubble(t, slow, func(run func(stampede.Crowd) *stampede.Tally) {
		var all []stampede.Progress
		run(stampede.Crowd{Buyers: 4, Arrivals: every(time.Second, 4), Every: time.Second + time.Millisecond, Progress: func(p stampede.Progress) { all = append(all, p) }})
		if len(all) != 4 {
			t.Fatalf("%d times: %+v", len(all), all)
		}
		if p := all[1]; p.Elapsed != 2*time.Second+2*time.Millisecond || p.Sent != 3 || p.Waiting != 2 || p.Accepted != 1 || !around(p.P99, 1500*time.Millisecond) {
			t.Errorf("%+v", p)
		}
	})
}

func TestShares(t *testing.T) {
	var mu sync.Mutex
	var orders map[string]int
	count := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		orders[r.Header.Get("X-User-Id")]++
		mu.Unlock()
		time.Sleep(time.Second) // leavers do not wait for it
	}
	inBubble(t, count, func(run func(stampede.Crowd) *stampede.Tally) {
		for _, c := range []struct {
			shares               stampede.Shares
			each, left, accepted int
		}{
			{stampede.Shares{Double: 1}, 2, 0, 20},
			{stampede.Shares{Bots: 1}, stampede.BotConnections * stampede.BotRequests, 0, 10 * stampede.BotConnections * stampede.BotRequests},
			{stampede.Shares{Leave: 1}, 1, 10, 0},
		} {
			orders = map[string]int{}
			tally := run(stampede.Crowd{Buyers: 10, Arrivals: stampede.Spike(10), Shares: c.shares})
			synctest.Wait()
			if tally.Accepted != c.accepted || tally.Failed[stampede.Left] != c.left || len(orders) != 10 || orders["buyer-3"] != c.each {
				t.Errorf("%+v: %+v, %v", c.shares, tally, orders)
			}
			if measured := tally.Latency.Max > 0; measured != (c.shares.Double > 0) {
				t.Errorf("%+v: the latency is %+v", c.shares, tally.Latency)
			}
		}
		mixed := stampede.Shares{Double: 0.3, Bots: 0.1, Leave: 0.2}
		sent := func(seed uint64) map[string]int {
			orders = map[string]int{}
			run(stampede.Crowd{Buyers: 40, Arrivals: stampede.Spike(40), Shares: mixed, Seed: seed})
			synctest.Wait()
			return orders
		}
		first := sent(1)
		if again := sent(1); !maps.Equal(first, again) {
			t.Errorf("the same seed gave %v and %v", first, again)
		}
		if other := sent(2); maps.Equal(first, other) {
			t.Errorf("two seeds gave %v", first)
		}
	})
	for _, wrong := range []stampede.Shares{{Double: -0.1}, {Bots: 1.1}, {Double: 0.5, Leave: 0.6}} {
		if _, err := (stampede.Crowd{URL: "http://127.0.0.1:1/", Baskets: []stampede.Basket{stampede.Buy("a", 1)}, Shares: wrong}).Run(t.Context()); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}

// No redirect is followed, and where they lead is counted.
func TestRedirectsAreCounted(t *testing.T) {
	asked := 0
	redirect := func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Location", map[bool]string{true: "https://elsewhere.test/x", false: "/thanks"}[asked > 3])
		w.WriteHeader(http.StatusFound)
	}
	inBubble(t, redirect, func(run func(stampede.Crowd) *stampede.Tally) {
		tally := run(stampede.Crowd{Buyers: 5, Concurrency: 1})
		if asked != 5 || tally.Redirects["https://elsewhere.test"] != 2 || tally.Redirects["http://shop.test"] != 3 {
			t.Errorf("%d requests, %v", asked, tally.Redirects)
		}
	})
}

// oneName is a template that gives every buyer the same name.
type oneName struct{}

func (oneName) Name(int) string { return "ann" }

func (oneName) Request(buyer int) (*http.Request, error) {
	if buyer == 2 {
		return nil, errors.New("it cannot be made")
	}
	return http.NewRequest(http.MethodPost, fmt.Sprintf("http://shop.test/%d", buyer), nil)
}

func TestTemplates(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/1" {
			w.Header().Set("Stockgate-Refusal", "sold_out")
			w.WriteHeader(http.StatusConflict)
		}
	}
	inBubble(t, answer, func(run func(stampede.Crowd) *stampede.Tally) {
		tally := run(stampede.Crowd{Buyers: 3, Arrivals: stampede.Spike(3), Template: oneName{}})
		if tally.Accepted != 1 || tally.Refused["sold_out"] != 1 || tally.Failed["other"] != 1 || len(tally.SoldOut) != 0 {
			t.Errorf("%+v", tally)
		}
		if len(tally.TurnedAway) != 0 { // one of them bought
			t.Errorf("turned away: %v", tally.TurnedAway)
		}
	})
}
