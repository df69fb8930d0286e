package edge_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// everything does every operation once, checks the stock, and follows the journal.
func everything(t *testing.T, o shard.Options, c redis.UniversalClient) *edge.Edge {
	t.Helper()
	e, ops := stocktest.WithHolds(t, o)
	for _, name := range []string{"reserve", "adjust", "apply", "confirm", "release", "doubt", "expire", "recreate", "return", "extend", "probe", "probed", "lookup", "status"} {
		if err := ops[name](stocktest.Soon(t), e); err != nil {
			t.Errorf("%s fails with %v", name, err)
		}
	}
	for id, want := range map[string]record.State{"r1": "confirmed", "r2": "released", "r3": "in_doubt", "lost": "confirmed", "r4": "confirmed", "r5": "held", "r6": "confirmed", "new": "held"} {
		if got := stocktest.State(t, e.Store, id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	if found, err := stocktest.Holds(stocktest.Soon(t), e.Store, "s", record.InDoubt, 10); err != nil || len(found) != 1 {
		t.Errorf("in doubt are %+v, %v", found, err)
	}
	if stock, err := e.Store.SaleStock(stocktest.Soon(t), "s"); err != nil || !stock.Balanced {
		t.Errorf("the stock is %+v, %v", stock, err)
	}
	for size, want := range map[int]error{1: nil, reservation.MaxAnswer + 1: reservation.ErrAnswerTooLarge} {
		a := &reservation.StoredAnswer{Status: 201, Body: make([]byte, size)}
		if err := e.Store.StoreAnswer(stocktest.Soon(t), "s", "r1", a, time.Hour); !errors.Is(err, want) {
			t.Errorf("an answer of %d bytes: %v, want %v", size, err, want)
		}
	}
	if a, err := e.Store.StoredAnswer(stocktest.Soon(t), "s", "r1"); err != nil || a == nil || a.Status != 201 {
		t.Errorf("the stored answer is %+v, %v", a, err)
	}
	stocktest.Balanced(t, c, e.Store, "s")
	following := stocktest.Ready(t, o)
	following.Start()
	follows(t, following)
	return e
}

func TestEveryServer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) { everything(t, stocktest.Options(b), b.Client()) })
}

func TestCluster(t *testing.T) {
	s := redistest.Cluster(t, 1)[0]
	c := s.Client()
	o := stocktest.Options(s)
	o.Cluster = true
	e := everything(t, o, c)
	if err := c.ScriptFlush(stocktest.Soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	if err := e.Refresh(stocktest.Soon(t)); err != nil {
		t.Errorf("refresh without scripts fails with %v", err)
	}
	if _, err := e.Store.Expire(stocktest.Soon(t), "s"); err != nil {
		t.Errorf("expire without scripts fails with %v", err)
	}
}

func TestReplicaAcks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	r := stocktest.Replica(t, s)
	o := stocktest.Options(s)
	o.ReplicaAcks, o.ReplicaAcksWait = 1, 30*time.Second
	e := stocktest.Selling(t, o, 3)
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	if got := r.Client().HExists(stocktest.Soon(t), e.Store.Shard().ShardKeys("s")[3], "r1").Val(); !got {
		t.Error("the replica does not have what it has acknowledged")
	}

	o.ReplicaAcksWait = 100 * time.Millisecond
	e = stocktest.Ready(t, o)
	r.Stop()
	_, refusal, err := stocktest.Hold(stocktest.Soon(t), e, "r2", "Ann", 1)
	if refusal != nil || !errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), "0 of 1 replicas") {
		t.Errorf("without a replica: %+v, %v", refusal, err)
	}
	if got := stocktest.State(t, e.Store, "r2"); got != record.Held {
		t.Errorf("r2 is %q, want held: it was reserved and not acknowledged", got)
	}
	e.Start()
	stocktest.Eventually(t, "a release of r2", func() bool { return stocktest.State(t, e.Store, "r2") == record.Released })
	if n := e.Backlog(); n != 1 {
		t.Errorf("%d outcomes wait for a replica, want the release", n)
	}
	r.Restart()
	stocktest.Eventually(t, "an empty backlog", func() bool { return e.Backlog() == 0 })
	stocktest.Balanced(t, s.Client(), e.Store, "s")
}

// A replica that was given for the master says so.
func TestReplicaInsteadOfMaster(t *testing.T) {
	s := redistest.Start(t)
	e := stocktest.NewEdge(t, stocktest.Options(stocktest.Replica(t, s)), edge.Options{})
	if err := e.Refresh(stocktest.Soon(t)); !errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), "it is a replica") {
		t.Errorf("refresh says %v, want that it is a replica", err)
	}
}

// The edge finds the master through a sentinel, and the new one after a failover.
func TestSentinel(t *testing.T) {
	master := redistest.Start(t)
	second := stocktest.Replica(t, master)
	sentinel := redistest.Sentinel(t, master)
	sc := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr(), ReadTimeout: time.Minute, MaxRetries: -1})
	defer sc.Close()
	stocktest.Eventually(t, "a sentinel that knows the replica", func() bool {
		found, err := sc.Replicas(stocktest.Soon(t), "main").Result()
		return err == nil && len(found) == 1 && found[0]["flags"] == "slave" && found[0]["master-link-status"] == "ok"
	})
	o := stocktest.Options(sentinel)
	o.Sentinel = "main"
	e := everything(t, o, master.Client())
	stocktest.Load(t, e.Store, stocktest.OpenSale("next", 5))
	if err := master.Client().Wait(stocktest.Soon(t), 1, 0).Err(); err != nil {
		t.Fatal(err)
	}

	if err := sc.Failover(stocktest.Soon(t), "main").Err(); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "a promoted replica", func() bool {
		info, err := second.Client().Info(stocktest.Soon(t), "replication").Result()
		return err == nil && strings.Contains(info, "role:master")
	})
	// the old master may still take one and lose it: the same id does it once
	after := second.Client()
	stocktest.Eventually(t, "an edge that follows", func() bool {
		_, err := e.Store.Adjust(stocktest.Soon(t), "next", "j1", "a", 1, "me")
		return err == nil && after.HExists(stocktest.Soon(t), e.Store.Shard().ShardKeys("next")[8], "j1").Val()
	})
	if r := stocktest.Balanced(t, after, e.Store, "next"); r.Cells["a"] != "6 6 0 0 0" {
		t.Errorf("on the new master the cell is %q, want 6 units", r.Cells["a"])
	}
}

// needed is what the edge's user must be allowed, and nothing more.
const needed = "-@all +hello +ping +info +script|load +evalsha +time +publish +subscribe " +
	"+hget +hmget +hgetall +hset +hsetnx +hdel +hlen +hscan +zadd +zrem +zrange +zrangebyscore +zcard +xadd +xread +xrange +xrevrange +sadd +smembers " +
	"+get +set +incrby +decrby"

func TestPasswords(t *testing.T) {
	s := redistest.Start(t, redistest.Password("secret"))
	c := s.Client()
	for _, user := range []string{
		"ACL SETUSER gate on >word ~stockgate:* &stockgate:* " + needed,
		"ACL SETUSER nothing on >word ~stockgate:* &stockgate:* -@all +hello +info",
		"ACL SETUSER chooses on >word ~stockgate:* &stockgate:* " + needed + " +select",
		"ACL SETUSER half on >word ~stockgate:* &stockgate:* " + strings.ReplaceAll(needed, "+hset ", ""),
	} {
		args := []any{}
		for _, word := range strings.Fields(user) {
			args = append(args, word)
		}
		if err := c.Do(stocktest.Soon(t), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		username, password string
		db                 string
		want               string // empty: it works
	}{
		"none":          {"", "", "", "asks for a password"},
		"wrong":         {"", "guess", "", "refuses the password"},
		"right":         {"", "secret", "", ""},
		"wrong user":    {"nobody", "word", "", "refuses the password"},
		"a user":        {"gate", "word", "", ""},
		"may not call":  {"nothing", "word", "", "may not run"},
		"may not write": {"half", "word", "", "may not run"},
		"a database":    {"chooses", "word", "/1", ""},
		"no database":   {"gate", "word", "/1", "+select"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, c := stocktest.Options(s), c
			o.Username, o.Password = test.username, test.password
			if test.db != "" {
				o.Addresses[0] = "redis://" + test.username + ":" + test.password + "@" + s.Addr() + test.db
				o.Username, o.Password = "", ""
				c = redis.NewClient(&redis.Options{Addr: s.Addr(), Password: "secret", DB: 1})
				defer c.Close()
			}
			e := stocktest.NewEdge(t, o, edge.Options{})
			err := e.Refresh(stocktest.Soon(t))
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refresh fails with %v", err)
			case test.want != "" && (!errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("refresh fails with %v, want %q", err, test.want)
			case test.want != "":
				return
			}
			if err := c.FlushAll(stocktest.Soon(t)).Err(); err != nil {
				t.Fatal(err)
			}
			everything(t, o, c)
		})
	}
}

func TestURL(t *testing.T) {
	s := redistest.Start(t, redistest.Password("secret"))
	o := shard.Options{Addresses: []string{"redis://:secret@" + s.Addr() + "/1"}, Timeout: 10 * time.Second}
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), Password: "secret", DB: 1})
	defer c.Close()
	everything(t, o, c)
	o.Prefix = "other"
	everything(t, o, c)
	if n, err := s.Client().DBSize(stocktest.Soon(t)).Result(); err != nil || n != 0 {
		t.Errorf("database 0 has %d keys, %v", n, err)
	}
}
