package shard

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// waits is the number of WAITs that Topology measures, within measureFor.
	waits, measureFor = 100, time.Second
	// replicaAsked bounds how long a replica may take to answer.
	replicaAsked = time.Second
)

// Primary is a server that takes writes, with what decides what a failover of it loses. What
// its user has no right to ask is unknown.
type Primary struct {
	Addr string
	// Replicas are those that follow it, in the order of their addresses.
	Replicas []Replica
	// MinReplicas says that it refuses writes while too few replicas follow
	// (min-replicas-to-write).
	MinReplicas bool
	// Timeout is its repl-timeout, Ping its repl-ping-replica-period; 0: unknown.
	Timeout, Ping time.Duration
	// Fork is how long it stood still when it last forked; 0: it never did.
	Fork time.Duration
	// Events are the latency events that it has recorded. Watched says that it records them;
	// nil: unknown.
	Events  []LatencyEvent
	Watched *bool
	// Waits is how many WAITs were measured, and Wait the 99th percentile of how long all
	// replicas took; WaitErr: why they could not be measured. In a cluster none is measured.
	Waits   int
	Wait    time.Duration
	WaitErr error
	// Migrating are the slots of a cluster that are being moved to or from the server.
	Migrating []string
	// ClusterState is the state of the cluster as the server sees it: ok or fail; empty: it is
	// no node of a cluster. Unserved is how many slots no reachable server has.
	ClusterState string
	Unserved     int
}

// Replica is a server that follows a Primary.
type Replica struct {
	Addr   string
	Online bool // it has loaded the primary's data and follows
	// Priority is its replica-priority; 0: it is never promoted by Sentinel. Err is why the
	// replica could not be asked.
	Priority int
	Err      error
}

// Promotable reports whether a failover may promote the replica, as far as it is known.
func (r *Replica) Promotable() bool { return r.Err != nil || r.Priority > 0 }

// LatencyEvent is what Redis's latency monitor has recorded of one kind of event.
type LatencyEvent struct {
	Name string
	At   time.Time
	Max  time.Duration
}

// Topology asks the server, or the masters of a cluster, and their replicas, what a failover
// would lose. It measures for about a second.
func (s *Client) Topology(ctx context.Context) ([]Primary, error) {
	if s.Embedded() {
		return nil, nil
	}
	u, err := universal(&s.Options)
	if err != nil {
		return nil, err
	}
	u.ReadTimeout = LongestCall // every call has a context
	client := redis.NewUniversalClient(u)
	defer client.Close()
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		one, err := primary(ctx, s, client, u.Addrs[0])
		return []Primary{one}, Explain(err)
	}
	var mu sync.Mutex
	var all []Primary
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		one, err := primary(ctx, s, c, c.Options().Addr)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, one)
		return err
	})
	slices.SortFunc(all, func(a, b Primary) int { return strings.Compare(a.Addr, b.Addr) })
	return all, Explain(err)
}

func primary(ctx context.Context, s *Client, c redis.Cmdable, addr string) (Primary, error) {
	p := Primary{Addr: addr}
	text, err := c.Info(ctx).Result()
	if err != nil {
		return p, err
	}
	info := infoFields(text)
	_, p.MinReplicas = info["min_slaves_good_slaves"]
	micros, _ := strconv.ParseInt(info["latest_fork_usec"], 10, 64)
	p.Fork = time.Duration(micros) * time.Microsecond
	for _, text := range replicasOf(info) {
		p.Replicas = append(p.Replicas, s.replica(ctx, text))
	}
	slices.SortFunc(p.Replicas, func(a, b Replica) int { return strings.Compare(a.Addr, b.Addr) })
	readSettings(ctx, &p, c)
	readLatency(ctx, &p, c)
	if info["cluster_enabled"] == "1" {
		if err := readCluster(ctx, &p, c); err != nil {
			return p, err
		}
	}
	measure(ctx, &p, s, c)
	return p, nil
}

// replica reads what INFO says of a replica (ip=…,port=…,state=…), and asks the replica.
func (s *Client) replica(ctx context.Context, text string) Replica {
	fields := make(map[string]string)
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		fields[name] = value
	}
	r := Replica{Addr: net.JoinHostPort(fields["ip"], fields["port"]), Online: fields["state"] == "online"}
	u, err := reached(&s.Options, r.Addr)
	if err != nil {
		r.Err = err
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, replicaAsked)
	defer cancel()
	client := redis.NewUniversalClient(u)
	defer client.Close()
	info, err := client.Info(ctx, "replication").Result()
	if err == nil {
		r.Priority, err = strconv.Atoi(infoFields(info)["slave_priority"])
	}
	r.Err = err
	return r
}

// readSettings reads settings that INFO does not have. Not every user has the right.
func readSettings(ctx context.Context, p *Primary, c redis.Cmdable) {
	seconds := func(name string) time.Duration {
		v, err := c.ConfigGet(ctx, name).Result()
		if err != nil {
			return 0
		}
		n, _ := strconv.Atoi(v[name])
		return time.Duration(n) * time.Second
	}
	p.Timeout, p.Ping = seconds("repl-timeout"), seconds("repl-ping-replica-period")
}

// readLatency reads what the latency monitor has recorded.
func readLatency(ctx context.Context, p *Primary, c redis.Cmdable) {
	if v, err := c.ConfigGet(ctx, "latency-monitor-threshold").Result(); err == nil {
		on := v["latency-monitor-threshold"] != "0"
		p.Watched = &on
	}
	pipe := c.Pipeline()
	latest := pipe.Do(ctx, "LATENCY", "LATEST")
	_, _ = pipe.Exec(ctx)
	all, err := latest.Slice()
	if err != nil {
		return
	}
	for _, one := range all {
		e, _ := one.([]any)
		if len(e) < 4 {
			continue
		}
		name, _ := e[0].(string)
		at, _ := e[1].(int64)
		most, _ := e[3].(int64)
		p.Events = append(p.Events, LatencyEvent{name, time.Unix(at, 0), time.Duration(most) * time.Millisecond})
	}
}

// readCluster reads the state of a cluster, and which slots are on the move.
func readCluster(ctx context.Context, p *Primary, c redis.Cmdable) error {
	text, err := c.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	state := infoFields(text)
	p.ClusterState = state["cluster_state"]
	ok, _ := strconv.Atoi(state["cluster_slots_ok"])
	const slots = 16384
	p.Unserved = slots - ok
	nodes, err := c.ClusterNodes(ctx).Result()
	if err != nil {
		return err
	}
	for line := range strings.Lines(nodes) {
		if !strings.Contains(line, "myself") {
			continue
		}
		for _, word := range strings.Fields(line) {
			slot, _, moving := strings.Cut(strings.TrimPrefix(word, "["), "-")
			if strings.HasPrefix(word, "[") && moving {
				p.Migrating = append(p.Migrating, slot)
			}
		}
	}
	return nil
}

// measure measures how long all replicas take to have a write.
func measure(ctx context.Context, p *Primary, s *Client, c redis.Cmdable) {
	online := 0
	for i := range p.Replicas {
		if p.Replicas[i].Online {
			online++
		}
	}
	if online == 0 || s.Options.Cluster {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 3*measureFor)
	defer cancel()
	began := time.Now()
	var took []time.Duration
	for len(took) < waits && time.Since(began) < measureFor {
		sent := time.Now()
		pipe := c.Pipeline()
		pipe.Publish(ctx, s.acksChannel(), "")
		wait := pipe.Do(ctx, "WAIT", online, measureFor.Milliseconds())
		if _, err := pipe.Exec(ctx); err != nil {
			p.WaitErr = Explain(err)
			return
		}
		if have, _ := wait.Int(); have < online {
			p.WaitErr = fmt.Errorf("%w: %d of %d replicas within %v", ErrNotReplicated, have, online, measureFor)
			return
		}
		took = append(took, time.Since(sent))
	}
	slices.Sort(took)
	p.Waits, p.Wait = len(took), took[(len(took)*99-1)/100]
}
