package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// slowFork and slowEvent are how long Redis may stand still: an attempt waits meanwhile.
	slowFork, slowEvent = 100 * time.Millisecond, 100 * time.Millisecond
	// eventFor is how long a slow event is worth a warning.
	eventFor = time.Hour
	// longestTimeout is the longest repl-timeout that is no finding: Redis's default.
	longestTimeout = time.Minute
)

// topology examines what a failover would lose, and what stops Redis now and then.
func (d *examination) topology() {
	ctx, cancel := d.call()
	defer cancel()
	primaries, err := d.runtime.Store.Shard().Topology(ctx)
	if err != nil {
		d.Add(adminapi.LevelWarning, "topology", "the replicas cannot be examined: %v", err)
		return
	}
	options := d.app.RedisOptions()
	for i := range primaries {
		judgePrimary(&d.Diagnosis, &primaries[i], options, time.Now())
	}
}

// judgePrimary adds the findings about a server that takes writes, and its replicas.
func judgePrimary(d *adminapi.Diagnosis, p *shard.Primary, o *shard.Options, now time.Time) {
	judgeCluster(d, p)
	judgePromotion(d, p, o)
	if len(p.Replicas) > 0 {
		judgeWait(d, p, o)
		judgeLink(d, p)
	}
	judgePauses(d, p, now)
}

func judgeCluster(d *adminapi.Diagnosis, p *shard.Primary) {
	switch {
	case p.ClusterState == "":
		return
	case p.ClusterState != "ok" || p.Unserved > 0:
		d.Add(adminapi.LevelError, "cluster", "at %s the cluster is in state %s, and %d slots are not served: the sales in them are unavailable; see CLUSTER NODES for the server that is missing", p.Addr, p.ClusterState, p.Unserved)
	case len(p.Migrating) > 0:
		d.Add(adminapi.LevelWarning, "cluster", "slots are being moved to or from %s (%s): their sales may be unavailable meanwhile; finish that before a sale, and move none during it", p.Addr, strings.Join(p.Migrating, ", "))
	default:
		d.Add(adminapi.LevelOK, "cluster", "at %s all slots are served, and none is being moved", p.Addr)
	}
}

// judgePromotion examines which replicas a failover may promote, and what they have then.
func judgePromotion(d *adminapi.Diagnosis, p *shard.Primary, o *shard.Options) {
	all, promotable, unequal := len(p.Replicas), 0, false
	var priorities []string
	for i := range p.Replicas {
		r := &p.Replicas[i]
		if r.Err != nil {
			priorities = append(priorities, fmt.Sprintf("%s: it does not answer this edge (%v)", r.Addr, r.Err))
		} else {
			priorities = append(priorities, fmt.Sprintf("%s: %d", r.Addr, r.Priority))
			unequal = unequal || p.Replicas[0].Err == nil && r.Priority != p.Replicas[0].Priority
		}
		if r.Promotable() {
			promotable++
		}
	}
	watched := o.Sentinel != "" || o.Cluster
	switch {
	case all == 0 && !watched:
		return
	case all == 0:
		d.Add(adminapi.LevelWarning, "promotion", "no replica follows %s: nothing takes over when it fails; connect one", p.Addr)
	case promotable == 0 && !o.Cluster:
		d.Add(adminapi.LevelWarning, "promotion", "no replica of %s may be promoted (replica-priority 0): nothing takes over when it fails; set `replica-priority 100` on one of them", p.Addr)
	case o.ReplicaAcks > 0 && o.ReplicaAcks < all:
		d.Add(adminapi.LevelWarning, "promotion", "replica_acks is %d, and %d replicas follow %s, of which %d may be promoted: one that lacks what another has acknowledged can be promoted, and sells it again; set `replica_acks %d`",
			o.ReplicaAcks, all, p.Addr, promotable, all)
	case unequal && !o.Cluster:
		d.Add(adminapi.LevelWarning, "promotion", "the replicas of %s have unequal replica-priority (%s): the one with the lowest number is promoted, even if another has more of what was sold; set the same number on all", p.Addr, strings.Join(priorities, ", "))
	default:
		d.Add(adminapi.LevelOK, "promotion", "replicas of %s that may be promoted: %d of %d (replica-priority %s)", p.Addr, promotable, all, strings.Join(priorities, ", "))
	}
	switch {
	case all == 0:
	case !p.MinReplicas:
		d.Add(adminapi.LevelWarning, "min_replicas", "%s takes writes when it is cut off from its replicas, and what it sells then is lost: set `min-replicas-to-write 1` and `min-replicas-max-lag 10` in its redis.conf", p.Addr)
	default:
		d.Add(adminapi.LevelOK, "min_replicas", "%s takes no writes without replicas (min-replicas-to-write)", p.Addr)
	}
}

// judgeWait compares how long the replicas take with how long replica_acks waits.
func judgeWait(d *adminapi.Diagnosis, p *shard.Primary, o *shard.Options) {
	took := p.Wait.Round(10 * time.Microsecond)
	switch {
	case p.WaitErr != nil:
		d.Add(adminapi.LevelWarning, "wait", "how long the replicas of %s take cannot be measured: %v; see that they keep up, and that redis's user may run WAIT", p.Addr, p.WaitErr)
	case p.Waits == 0:
	case o.ReplicaAcks > 0 && p.Wait > o.ReplicaAcksWait/2:
		d.Add(adminapi.LevelWarning, "wait", "the replicas of %s take %v to have a write (99%% of %d), and replica_acks waits %v: buyers will hear 503; see why they are slow, or set `replica_acks %d %v`",
			p.Addr, took, p.Waits, o.ReplicaAcksWait, o.ReplicaAcks, max(2*o.ReplicaAcksWait, (3*p.Wait).Round(10*time.Millisecond)))
	default:
		d.Add(adminapi.LevelOK, "wait", "the replicas of %s take %v to have a write (99%% of %d)", p.Addr, took, p.Waits)
	}
}

// judgeLink examines when the connection to a replica counts as broken.
func judgeLink(d *adminapi.Diagnosis, p *shard.Primary) {
	switch {
	case p.Timeout == 0:
	case p.Ping > 0 && p.Timeout < 2*p.Ping:
		d.Add(adminapi.LevelWarning, "repl_timeout", "repl-timeout of %s is %v, and it pings its replicas every %v: while nothing is written they are cut off; set `repl-timeout` to at least twice repl-ping-replica-period", p.Addr, p.Timeout, p.Ping)
	case p.Timeout > longestTimeout:
		d.Add(adminapi.LevelWarning, "repl_timeout", "repl-timeout of %s is %v: a replica that hangs counts as connected for so long; set `repl-timeout 60`", p.Addr, p.Timeout)
	default:
		d.Add(adminapi.LevelOK, "repl_timeout", "repl-timeout of %s is %v", p.Addr, p.Timeout)
	}
}

// judgePauses examines how long the server stands still now and then.
func judgePauses(d *adminapi.Diagnosis, p *shard.Primary, now time.Time) {
	if p.Fork > slowFork {
		d.Add(adminapi.LevelWarning, "fork", "%s stood still for %v when it last forked, for a snapshot, a rewrite or a new replica: no attempt is answered meanwhile; "+
			"turn transparent huge pages off, let it use less memory, or let a replica write the snapshots", p.Addr, p.Fork.Round(time.Millisecond))
	} else {
		d.Add(adminapi.LevelOK, "fork", "%s stood still for %v when it last forked", p.Addr, p.Fork.Round(10*time.Microsecond))
	}
	var slow []string
	for _, e := range p.Events {
		if e.Max > slowEvent && now.Sub(e.At) < eventFor {
			slow = append(slow, fmt.Sprintf("%s up to %v", e.Name, e.Max))
		}
	}
	switch {
	case len(slow) > 0:
		d.Add(adminapi.LevelWarning, "latency", "%s has recorded slow events in the last hour (%s): `LATENCY DOCTOR` in redis-cli says what to do about each", p.Addr, strings.Join(slow, ", "))
	case p.Watched != nil && !*p.Watched:
		d.Add(adminapi.LevelOK, "latency", "%s records no slow events: `latency-monitor-threshold 100` in its redis.conf would", p.Addr)
	default:
		d.Add(adminapi.LevelOK, "latency", "%s has recorded no slow event in the last hour", p.Addr)
	}
}
