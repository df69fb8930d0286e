package redistest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// through returns a client of the proxy that repeats nothing on its own.
func through(t *testing.T, p *redistest.Proxy, protocol int) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr:                  p.Addr(),
		Protocol:              protocol,
		MaxRetries:            -1,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
		DialTimeout:           2 * time.Minute,
		ReadTimeout:           2 * time.Minute,
		WriteTimeout:          2 * time.Minute,
		PoolTimeout:           2 * time.Minute,
	})
	t.Cleanup(func() { c.Close() })
	return c
}

// start returns a server, a proxy to it, and a client of each.
func start(t *testing.T) (s *redistest.Server, p *redistest.Proxy, direct, proxied *redis.Client) {
	s = redistest.Start(t)
	p = redistest.NewProxy(t, s.Addr())
	return s, p, s.Client(), through(t, p, 3)
}

// gone runs a command whose client gives up once given says so, and returns
// when the client has closed its connection.
func gone(t *testing.T, p *redistest.Proxy, given func(context.Context) error, args ...any) {
	t.Helper()
	c := through(t, p, 3)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() { failed <- c.Do(ctx, args...).Err() }()
	if err := given(soon(t)); err != nil {
		t.Fatal(err)
	}
	cancel()
	c.Close() // go-redis leaves a command that waits for its answer only then
	if err := <-failed; err == nil {
		t.Fatalf("%v was answered", args)
	}
}

func want(t *testing.T, c *redis.Client, key, value string) {
	t.Helper()
	got, err := c.Get(soon(t), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) || got != value {
		t.Errorf("%s is %q (%v), want %q", key, got, err, value)
	}
}

func TestProxyPassesEverything(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		for _, protocol := range []int{2, 3} {
			t.Run("RESP"+strconv.Itoa(protocol), func(t *testing.T) {
				p := redistest.NewProxy(t, b.Addr())
				c, ctx := through(t, p, protocol), soon(t)
				pipe := c.Pipeline()
				for i := range 200 {
					pipe.HSet(ctx, "h", strconv.Itoa(i), "a\r\nb")
				}
				all := pipe.HGetAll(ctx, "h")
				absent := pipe.Get(ctx, "absent")
				nested := pipe.Eval(ctx, `return {1, {'x', {}, false}, redis.status_reply('fine')}`, nil)
				if _, err := pipe.Exec(ctx); !errors.Is(err, redis.Nil) {
					t.Fatal(err)
				}
				if len(all.Val()) != 200 || all.Val()["7"] != "a\r\nb" || !errors.Is(absent.Err(), redis.Nil) {
					t.Errorf("got %d fields, %v", len(all.Val()), absent.Err())
				}
				if got, err := nested.Slice(); err != nil || len(got) != 3 || got[2] != "fine" {
					t.Errorf("the script returns %v (%v)", got, err)
				}
				if got := p.Requests("hset", "HGETALL"); got != 201 {
					t.Errorf("counted %d requests, want 201", got)
				}
				sub := c.Subscribe(ctx, "notices")
				defer sub.Close()
				if _, err := sub.Receive(ctx); err != nil {
					t.Fatal(err)
				}
				for _, m := range []string{"one", "two"} {
					if err := c.Publish(ctx, "notices", m).Err(); err != nil {
						t.Fatal(err)
					}
					if got, err := sub.ReceiveMessage(ctx); err != nil || got.Payload != m {
						t.Errorf("received %v (%v), want %s", got, err, m)
					}
				}
				if err := p.WaitIdle(ctx); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

func TestHeldRequestArrivesWithoutItsClient(t *testing.T) {
	for name, release := range map[string]func(*redistest.Proxy){
		"ReleaseRequests": (*redistest.Proxy).ReleaseRequests,
		"Heal":            (*redistest.Proxy).Heal,
	} {
		t.Run(name, func(t *testing.T) {
			_, p, direct, _ := start(t)
			p.HoldRequests()
			gone(t, p, p.WaitHeld, "SET", "k", "late")
			want(t, direct, "k", "")
			release(p)
			if err := p.WaitIdle(soon(t)); err != nil {
				t.Fatal(err)
			}
			want(t, direct, "k", "late")
		})
	}
}

func TestHoldOnlyNamedRequests(t *testing.T) {
	_, p, direct, proxied := start(t)
	p.HoldRequests("incr")
	if err := proxied.Set(soon(t), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	gone(t, p, p.WaitHeld, "INCR", "n")
	want(t, direct, "k", "v")
	want(t, direct, "n", "")
}

// A command may be named with one of its arguments, whole and exact.
func TestHoldOnlyRequestsWithAnArgument(t *testing.T) {
	_, p, direct, proxied := start(t)
	p.HoldRequests("set second", "GET")
	for _, key := range []string{"first", "seconds"} {
		if err := proxied.Set(soon(t), key, "v second", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := proxied.Incr(soon(t), "second").Err(); err != nil { // another command
		t.Fatal(err)
	}
	gone(t, p, p.WaitHeld, "SET", "second", "v")
	want(t, direct, "second", "1")
	p.ReleaseRequests()
	if err := p.WaitIdle(soon(t)); err != nil {
		t.Fatal(err)
	}
	want(t, direct, "second", "v")
	p.HoldReplies("SET third")
	gone(t, p, p.WaitHeld, "SET", "third", "v")
	want(t, direct, "third", "v")
}

func TestHeldReplyIsExecuted(t *testing.T) {
	_, p, direct, proxied := start(t)
	p.HoldReplies("INCR")
	answer := make(chan error)
	go func() { answer <- proxied.Incr(t.Context(), "n").Err() }()
	if err := p.WaitHeld(soon(t)); err != nil {
		t.Fatal(err)
	}
	want(t, direct, "n", "1")
	p.ReleaseReplies()
	if err := <-answer; err != nil {
		t.Errorf("a client that waits is told %v", err)
	}
	p.HoldReplies()
	gone(t, p, p.WaitHeld, "INCR", "n")
	p.ReleaseReplies()
	if err := p.WaitIdle(soon(t)); err != nil {
		t.Fatal(err)
	}
	want(t, direct, "n", "2")
}

// A reply that is held when everything is dropped is dropped too.
func TestHeldReplyIsDropped(t *testing.T) {
	_, p, direct, proxied := start(t)
	for range 20 {
		p.HoldReplies("INCR")
		answer := make(chan error)
		go func() { answer <- proxied.Incr(t.Context(), "n").Err() }()
		if err := p.WaitHeld(soon(t)); err != nil {
			t.Fatal(err)
		}
		p.DropAll()
		if err := <-answer; err == nil {
			t.Error("a client hears what was dropped")
		}
		p.Heal()
	}
	want(t, direct, "n", "20")
}

func TestCutReplies(t *testing.T) {
	_, p, direct, proxied := start(t)
	ctx := soon(t)
	p.CutReplies(2, "INCR")
	for i := range 2 {
		if err := proxied.Incr(ctx, "n").Err(); err == nil {
			t.Fatalf("reply %d was not cut", i+1)
		}
		if err := proxied.Set(ctx, "k", "v", 0).Err(); err != nil { // another command, a new connection
			t.Fatal(err)
		}
	}
	if left := p.CutsLeft(); left != 0 {
		t.Errorf("%d cuts are left, want 0", left)
	}
	want(t, direct, "n", "2")
	if n, err := proxied.Incr(ctx, "n").Result(); err != nil || n != 3 {
		t.Errorf("after the cuts INCR returns %d (%v), want 3", n, err)
	}
}

func TestCutSparesTheSetUp(t *testing.T) {
	_, p, direct, proxied := start(t)
	p.CutReplies(1)
	if err := proxied.Incr(soon(t), "n").Err(); err == nil {
		t.Error("the reply was not cut")
	}
	want(t, direct, "n", "1")
}

func TestDropAllAndHeal(t *testing.T) {
	_, p, direct, proxied := start(t)
	ctx := soon(t)
	if err := proxied.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	p.HoldRequests("SET")
	gone(t, p, p.WaitHeld, "SET", "k", "lost")
	p.DropAll()
	if err := proxied.Ping(ctx).Err(); err == nil {
		t.Error("a dropped connection answers")
	}
	if err := through(t, p, 3).Ping(ctx).Err(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection: %v, want %v", err, syscall.ECONNREFUSED)
	}
	p.Heal()
	p.Heal()
	if err := through(t, p, 3).Ping(ctx).Err(); err != nil {
		t.Errorf("after Heal: %v", err)
	}
	if err := p.WaitIdle(ctx); err != nil {
		t.Fatal(err)
	}
	want(t, direct, "k", "")
}

func TestDropAllWhileAReplyIsHeld(t *testing.T) {
	_, p, direct, proxied := start(t)
	p.HoldReplies("SET")
	failed := make(chan error, 1)
	go func() { failed <- proxied.Set(soon(t), "k", "kept", 0).Err() }()
	if err := p.WaitHeld(soon(t)); err != nil {
		t.Fatal(err)
	}
	p.DropAll()
	if err := <-failed; err == nil {
		t.Error("the reply of a dropped connection came")
	}
	want(t, direct, "k", "kept")
}

// A stalled Redis executes what is in its socket, long after its client left.
func TestPausedServerExecutesWithoutTheClient(t *testing.T) {
	s, p, direct, _ := start(t)
	c := through(t, p, 3)
	if err := c.Ping(soon(t)).Err(); err != nil { // the set-up of a connection needs answers
		t.Fatal(err)
	}
	s.Pause()
	failed := make(chan error)
	go func() { failed <- c.Set(context.WithoutCancel(t.Context()), "k", "late", 0).Err() }()
	if err := p.WaitRequests(soon(t), 1, "SET"); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := <-failed; err == nil {
		t.Fatal("a paused server answers")
	}
	s.Resume()
	if err := p.WaitIdle(soon(t)); err != nil {
		t.Fatal(err)
	}
	want(t, direct, "k", "late")
}

func TestProxyOutlivesItsServer(t *testing.T) {
	s, p, _, proxied := start(t)
	ctx := soon(t)
	if err := proxied.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := proxied.Ping(ctx).Err(); err == nil {
		t.Error("a stopped server answers")
	}
	s.Restart()
	if err := through(t, p, 3).Ping(ctx).Err(); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

func TestCounters(t *testing.T) {
	_, p, _, _ := start(t)
	for i := range 3 {
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(append(redistest.Encode("PING"), redistest.Encode("ping")...)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, len("+PONG\r\n+PONG\r\n"))); err != nil {
			t.Fatal(err)
		}
		if got := p.Connections(); got != i+1 {
			t.Errorf("counted %d connections, want %d", got, i+1)
		}
		if got := p.Requests(); got != 2*(i+1) {
			t.Errorf("counted %d requests, want %d", got, 2*(i+1))
		}
	}
	if got := p.Requests("GET"); got != 0 {
		t.Errorf("counted %d GETs, want 0", got)
	}
}

// What is not the protocol of Redis must not pass for a quiet network.
func TestProxyReportsGarbage(t *testing.T) {
	s := redistest.Start(t)
	r := record(t, func(rt redistest.T) {
		p := redistest.NewProxy(rt, s.Addr())
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			rt.Fatalf("%v", err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("*x\r\n")); err != nil {
			rt.Fatalf("%v", err)
		}
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			rt.Fatalf("garbage was answered with %d bytes", n)
		}
	})
	if !r.failed || !strings.Contains(r.text.String(), "not RESP") {
		t.Errorf("failed: %v, said %q: want that it is not RESP", r.failed, &r.text)
	}
}

func TestWaitHeldEndsWithItsContext(t *testing.T) {
	_, p, _, _ := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.WaitHeld(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("WaitHeld returns %v, want %v", err, context.Canceled)
	}
}
