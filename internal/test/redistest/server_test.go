package redistest_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

func TestServersAreApart(t *testing.T) {
	a, b := redistest.Start(t), redistest.Start(t)
	if a.Addr() == b.Addr() || a.Dir() == b.Dir() {
		t.Fatalf("two servers share %s or %s", a.Addr(), a.Dir())
	}
	ctx := soon(t)
	if err := a.Client().Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := b.Client().Get(ctx, "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("the other server answers %v, want %v", err, redis.Nil)
	}
	policy, err := a.Client().ConfigGet(ctx, "maxmemory-policy").Result()
	if err != nil || policy["maxmemory-policy"] != "noeviction" {
		t.Errorf("maxmemory-policy is %v (%v), want noeviction", policy, err)
	}
}

func TestOptions(t *testing.T) {
	s := redistest.Start(t, redistest.Config("maxmemory 10mb", "databases 3"), redistest.Password(`se"cret word`))
	ctx := soon(t)
	got, err := s.Client().ConfigGet(ctx, "maxmemory").Result()
	if err != nil || got["maxmemory"] != "10485760" {
		t.Errorf("maxmemory is %v (%v), want 10485760", got, err)
	}
	stranger := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer stranger.Close()
	if err := stranger.Ping(ctx).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") {
		t.Errorf("without the password: %v, want NOAUTH", err)
	}
}

func TestDataOverRestarts(t *testing.T) {
	durable := redistest.Config("appendonly yes", "appendfsync always")
	tests := map[string]struct {
		opts []redistest.Option
		end  func(*redistest.Server)
		want string
	}{
		"kept over SIGTERM":     {[]redistest.Option{durable}, (*redistest.Server).Stop, "v"},
		"kept over SIGKILL":     {[]redistest.Option{durable}, (*redistest.Server).Kill, "v"},
		"kept while running":    {[]redistest.Option{durable}, func(*redistest.Server) {}, "v"},
		"lost when not durable": {nil, (*redistest.Server).Stop, ""},
		"a paused server stops": {[]redistest.Option{durable}, func(s *redistest.Server) { s.Pause(); s.Stop(); s.Stop() }, "v"},
		"a paused server dies":  {[]redistest.Option{durable}, func(s *redistest.Server) { s.Pause(); s.Kill(); s.Kill() }, "v"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t, test.opts...)
			addr, ctx := s.Addr(), soon(t)
			if err := s.Client().Set(ctx, "k", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			test.end(s)
			s.Restart()
			if s.Addr() != addr {
				t.Errorf("the address changed from %s to %s", addr, s.Addr())
			}
			got, err := s.Client().Get(ctx, "k").Result()
			if err != nil && !errors.Is(err, redis.Nil) || got != test.want {
				t.Errorf("after the restart k is %q (%v), want %q", got, err, test.want)
			}
		})
	}
}

func TestStoppedServerRefuses(t *testing.T) {
	s := redistest.Start(t)
	s.Stop()
	if conn, err := net.Dial("tcp", s.Addr()); err == nil {
		conn.Close()
		t.Error("a stopped server accepts connections")
	}
}

func TestPauseAndResume(t *testing.T) {
	s := redistest.Start(t)
	for range 2 {
		s.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := s.Client().Ping(ctx).Err()
		cancel()
		if !timedOut(err) {
			t.Fatalf("a paused server answers %v, want a timeout", err)
		}
		s.Resume()
		if err := s.Client().Ping(soon(t)).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMissingBinaryFails(t *testing.T) {
	t.Setenv("REDIS_SERVER", "no-such-redis-server")
	r := record(t, func(t redistest.T) { redistest.Start(t) })
	if !r.failed || !strings.Contains(r.text.String(), "apt-get install -y redis-server") {
		t.Errorf("failed: %v, said %q: want a failure that says how to install it", r.failed, &r.text)
	}
}

func TestFailureShowsTheLog(t *testing.T) {
	r := record(t, func(t redistest.T) {
		redistest.Start(t)
		t.Errorf("something else is wrong")
	})
	if !strings.Contains(r.text.String(), "Ready to accept connections") {
		t.Errorf("said %q, want the log of redis-server", &r.text)
	}
}

func TestBadConfigFails(t *testing.T) {
	r := record(t, func(t redistest.T) { redistest.Start(t, redistest.Config("no-such-directive yes")) })
	if !r.failed || !strings.Contains(r.text.String(), "no-such-directive") {
		t.Errorf("failed: %v, said %q: want what redis-server says", r.failed, &r.text)
	}
}

func TestRestartOnATakenPortFails(t *testing.T) {
	r := record(t, func(rt redistest.T) {
		s := redistest.Start(rt)
		s.Stop()
		ln, err := net.Listen("tcp", s.Addr())
		if err != nil {
			rt.Fatalf("%v", err)
		}
		defer ln.Close()
		go func() { // a server that accepts and never answers
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				conn.Close()
			}
		}()
		s.Restart()
	})
	if !r.failed || !strings.Contains(r.text.String(), "Address already in use") {
		t.Errorf("failed: %v, said %q: want that the address is in use", r.failed, &r.text)
	}
}

func TestProgram(t *testing.T) {
	p := redistest.NewProgram()
	s := redistest.Start(p)
	if err := s.Client().Ping(soon(t)).Err(); err != nil {
		t.Error(err)
	}
	p.Close()
	p.Close()
	if conn, err := net.Dial("tcp", s.Addr()); err == nil {
		conn.Close()
		t.Error("the server outlives its program")
	}
	if p.Failed() {
		t.Error("the program failed")
	}
}
