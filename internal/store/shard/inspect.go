package shard

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/lua"
)

// Server is what a Redis server reports about itself, as far as its user has the right to ask.
type Server struct {
	// Embedded says that the server runs in this process. Only Delay and Ahead are known then.
	Embedded bool
	// Version is a version as in 7.0.15; for a Valkey server, that of Valkey.
	Version string
	Valkey  bool
	// Replica says that the server follows another one and takes no writes.
	Replica bool
	// Policy is its maxmemory-policy.
	Policy string
	// Used and Max are bytes of memory. Max 0: only Machine bounds it.
	Used, Max, Machine int64
	// AOF says that the server writes an append-only file. Fsync is how often it syncs that
	// file to disk; empty: its user has no right to read the setting.
	AOF   bool
	Fsync string
	// Snapshots says that it writes RDB snapshots by itself (save); nil: its user has no right
	// to read the setting.
	Snapshots *bool
	// Replays says that the default user has every right: when the server starts, it reads its append-only
	// file as that user, and without a warning skips what it may not do. nil: its user has no right to ask.
	Replays *bool
	// User is the user that asks; empty: the default user.
	User string
	// Unwritten is what the server last failed to write to disk: "append-only file", "snapshot"
	// or empty.
	Unwritten string
	// Replicas is how many replicas are connected and up to date.
	Replicas int
	// Delay is how long the server took to answer. Ahead is how far its clock is ahead of this
	// machine's, give or take half of Delay.
	Delay, Ahead time.Duration
}

// Inspect asks Redis about itself: one server, or the masters of a cluster.
func (s *Client) Inspect(ctx context.Context) ([]Server, error) {
	cluster, ok := behind(s.redis).(*redis.ClusterClient)
	if !ok {
		one, err := inspect(ctx, s, behind(s.redis))
		return []Server{one}, err
	}
	var mu sync.Mutex
	var all []Server
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		one, err := inspect(ctx, s, c)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, one)
		return err
	})
	return all, Explain(err)
}

func inspect(ctx context.Context, s *Client, c redis.Cmdable) (Server, error) {
	if err := c.Ping(ctx).Err(); err != nil { // dials, so that dialing does not count as Delay
		return Server{}, Explain(err)
	}
	asked := time.Now()
	clock, err := c.Time(ctx).Result()
	if err != nil {
		return Server{}, Explain(err)
	}
	one := Server{Delay: time.Since(asked)}
	one.Ahead = clock.Sub(asked.Add(one.Delay / 2))
	if s.Embedded() {
		one.Embedded = true
		return one, nil
	}
	text, err := c.Info(ctx).Result()
	if err != nil {
		return one, Explain(err)
	}
	one.read(infoFields(text))
	// not every user has this right, and nothing depends on it
	if fsync, err := c.ConfigGet(ctx, "appendfsync").Result(); err == nil {
		one.Fsync = fsync["appendfsync"]
	}
	if save, err := c.ConfigGet(ctx, "save").Result(); err == nil {
		on := save["save"] != ""
		one.Snapshots = &on
	}
	if u, err := universal(&s.Options); err == nil && u.Username != "default" {
		one.User = u.Username
	}
	one.Replays = replays(ctx, s, c)
	return one, nil
}

// replays tells whether the default user may do what the append-only file of a sale has; nil: it cannot be
// asked.
func replays(ctx context.Context, s *Client, c redis.Cmdable) *bool {
	key, may := s.ShardKeys("any")[MetaKey], true
	for _, command := range [][]any{{"exec"}, {"hset", key, "field", "value"}, {"xadd", key, "*", "field", "value"}, {"zadd", key, "1", "member"}, {"unlink", key}} {
		said, err := c.ACLDryRun(ctx, "default", command...).Result()
		if err != nil {
			return nil
		}
		may = may && said == "OK"
	}
	return &may
}

// read takes the fields of INFO.
func (one *Server) read(info map[string]string) {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(info[name], 10, 64)
		return n
	}
	one.Version, one.Valkey = info["redis_version"], info["server_name"] == "valkey"
	if one.Valkey {
		one.Version = info["valkey_version"]
	}
	one.Replica = info["role"] == "slave"
	one.Policy = info["maxmemory_policy"]
	one.Used, one.Max, one.Machine = number("used_memory"), number("maxmemory"), number("total_system_memory")
	one.AOF = info["aof_enabled"] == "1"
	switch {
	case one.AOF && info["aof_last_write_status"] == "err":
		one.Unwritten = "append-only file"
	case info["rdb_last_bgsave_status"] == "err":
		one.Unwritten = "snapshot"
	}
	one.Replicas = OnlineReplicas(info)
}

// replicasOf returns what INFO says of each replica: ip=…,port=…,state=…
func replicasOf(info map[string]string) []string {
	n, _ := strconv.Atoi(info["connected_slaves"])
	var all []string
	for i := range n {
		if text, ok := info["slave"+strconv.Itoa(i)]; ok {
			all = append(all, text)
		}
	}
	return all
}

// OnlineReplicas is how many replicas are connected and up to date, by the fields of INFO.
func OnlineReplicas(info map[string]string) (n int) {
	for _, text := range replicasOf(info) {
		if strings.Contains(text, "state=online") {
			n++
		}
	}
	return n
}

// infoFields reads the lines name:value of INFO.
func infoFields(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// Schemas are sales by the layout of their keys.
type Schemas struct {
	Newer  []string          // a newer edge has written them, in a layout that this edge does not know
	Frozen []string          // by a move
	Older  map[string]string // this edge may give them a layout that edges of other versions do not know: their schema, and what raises it
}

// Schemas reads which layout the keys of sales have. waits reports whether a sale has a waiting list: others do not get
// the newest one.
func (s *Client) Schemas(ctx context.Context, ids []string, waits func(id string) bool) (Schemas, error) {
	pipe := behind(s.redis).Pipeline() // not MULTI: a full Redis refuses it
	schemas := make([]*redis.StringCmd, len(ids))
	for i, id := range ids {
		schemas[i] = pipe.HGet(ctx, s.ShardKeys(id)[MetaKey], "schema")
	}
	_, _ = pipe.Exec(ctx)
	all := Schemas{Older: make(map[string]string)}
	for i, id := range ids {
		last := int64(lua.SaleSchema)
		if waits(id) {
			last = lua.Schema
		}
		switch n, err := schemas[i].Int64(); {
		case err != nil && err != redis.Nil:
			return Schemas{}, Explain(err)
		case n == lua.FrozenSchema:
			all.Frozen = append(all.Frozen, id)
		case n > lua.Schema:
			all.Newer = append(all.Newer, id)
		case n < last && err == nil:
			all.Older[id] = fmt.Sprintf("schema %d, and %s", n, lua.Raises(n, last))
		}
	}
	return all, nil
}

// Listeners is how many edges listen for notices. One node of a cluster cannot count those of
// the others.
func (s *Client) Listeners(ctx context.Context) (int64, error) {
	n, err := behind(s.redis).PubSubNumSub(ctx, s.Channel()).Result()
	return n[s.Channel()], Explain(err)
}
