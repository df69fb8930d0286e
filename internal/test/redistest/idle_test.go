package redistest_test

import (
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// process is which process a server is, by its pid.
func process(t *testing.T, s *redistest.Server) string {
	t.Helper()
	info, err := s.Client().InfoMap(soon(t), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	return info["Server"]["process_id"]
}

// A test gets the server of an earlier one, as a new one is. One that was ended, stalled, configured, given a replica, or still
// has a client, is of its test only.
func TestServersAreUsedAgain(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("each test has a server of its own")
		return
	}
	ctx := soon(t)
	var stays *redis.Client
	do := func(args ...any) func(*testing.T, *redistest.Server) {
		return func(t *testing.T, s *redistest.Server) {
			if err := s.Client().Do(ctx, args...).Err(); err != nil {
				t.Error(err)
			}
		}
	}
	for name, test := range map[string]struct {
		use   func(*testing.T, *redistest.Server)
		again bool
	}{
		"data":          {do("SET", "k", "v"), true},
		"another db":    {do("EVAL", "redis.call('SELECT', 3) return redis.call('SET', 'k', 'v')", 0), true},
		"script":        {do("SCRIPT", "LOAD", "return 1"), true},
		"function":      {do("FUNCTION", "LOAD", "#!lua name=f\nredis.register_function('f', function() return 1 end)"), true},
		"readings":      {do("CONFIG", "GET", "*"), true},
		"proxy":         {func(t *testing.T, s *redistest.Server) { do("PING")(t, s); redistest.NewProxy(t, s.Addr()) }, true},
		"setting":       {do("CONFIG", "SET", "maxmemory", "1gb"), false},
		"setting back":  {do("CONFIG", "SET", "maxmemory", "0"), false},
		"reset":         {do("CONFIG", "RESETSTAT"), false},
		"user":          {do("ACL", "SETUSER", "ann"), false},
		"debug":         {do("DEBUG", "SET-ACTIVE-EXPIRE", 0), false},
		"client paused": {do("CLIENT", "PAUSE", 1), false},
		"replica of":    {do("REPLICAOF", "127.0.0.1", 1), false},
		"large":         {do("SETRANGE", "k", 32<<20, "v"), false},
		"ended":         {func(_ *testing.T, s *redistest.Server) { s.Kill() }, false},
		"again":         {func(_ *testing.T, s *redistest.Server) { s.Restart() }, false},
		"stalled":       {func(_ *testing.T, s *redistest.Server) { s.Pause(); s.Resume() }, false},
		"replica": {func(t *testing.T, s *redistest.Server) {
			_, port, _ := net.SplitHostPort(s.Addr())
			r := redistest.Start(t, redistest.Config("replicaof 127.0.0.1 "+port))
			for !strings.Contains(r.Client().Info(ctx, "replication").Val(), "master_link_status:up") {
			}
		}, false},
		"client": {func(t *testing.T, s *redistest.Server) {
			stays = redis.NewClient(&redis.Options{Addr: s.Addr()}) // longer than its test
			if err := stays.Ping(ctx).Err(); err != nil {
				t.Error(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				if stays != nil {
					stays.Close()
				}
			})
			var addr, pid string
			var first map[string]string
			t.Run("first", func(t *testing.T) {
				s := redistest.Start(t)
				addr, pid, first = s.Addr(), process(t, s), state(t, s)
				test.use(t, s)
			})
			if c, err := net.Dial("tcp", addr); err == nil {
				c.Close()
				t.Error("the server still listens where it did")
			}
			t.Run("second", func(t *testing.T) {
				s := redistest.Start(t)
				if again := process(t, s) == pid; again != test.again {
					t.Errorf("used again: %v, want %v", again, test.again)
				}
				second := state(t, s)
				for name := range second {
					differs := name == "dir" || name == "port" || name == "replid"
					if (second[name] != first[name]) != differs {
						t.Errorf("%s was %q and is %q", name, first[name], second[name])
					}
				}
				if s.Addr() == addr || s.Dir() != second["dir"] {
					t.Errorf("it is at %s again, or works in %s and not in %s", addr, second["dir"], s.Dir())
				}
				if test.again { // with the configuration of this test
					s.Restart()
					if restarted := state(t, s); restarted["dir"] != s.Dir() {
						t.Errorf("restarted, it works in %s", restarted["dir"])
					}
				}
			})
		})
	}
}

// A test that fails shows the log of its own server, and leaves it to no other.
func TestServerOfAFailedTestIsNotUsedAgain(t *testing.T) {
	r := record(t, func(rt redistest.T) {
		redistest.Start(rt)
		rt.Errorf("something is wrong")
	})
	if !strings.Contains(r.text.String(), "Ready to accept connections") {
		t.Errorf("said %q, want the log of redis-server", &r.text)
	}
}

// state is all that a server says of its configuration, its data and its scripts.
func state(t *testing.T, s *redistest.Server) map[string]string {
	t.Helper()
	ctx, c := soon(t), s.Client()
	found, err := c.ConfigGet(ctx, "*").Result()
	info, err2 := c.InfoMap(ctx, "replication", "keyspace", "memory", "clients").Result()
	stats, err3 := c.InfoMap(ctx, "commandstats").Result()
	users, err4 := c.Do(ctx, "ACL", "LIST").StringSlice()
	functions, err5 := c.FunctionList(ctx, redis.FunctionListQuery{}).Result()
	if err := errors.Join(err, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	found["replid"] = info["Replication"]["master_replid"]
	found["offset"] = info["Replication"]["master_repl_offset"] + info["Replication"]["repl_backlog_active"] + info["Replication"]["second_repl_offset"]
	found["keys"] = info["Keyspace"]["db0"] + info["Keyspace"]["db3"]
	found["scripts"] = info["Memory"]["number_of_cached_scripts"]
	found["clients"] = info["Clients"]["connected_clients"]
	found["evals"] = stats["Commandstats"]["cmdstat_eval"] + stats["Commandstats"]["cmdstat_set"]
	found["users"] = strings.Join(users, "\n")
	if len(functions) > 0 {
		found["functions"] = functions[0].Name
	}
	return found
}
