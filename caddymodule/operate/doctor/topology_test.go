package doctor_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/doctor"
	"github.com/stockgate/stockgate/internal/edge/risk"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ports"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// Each weakness of a topology is one finding that is not ok, and says what to do.
func TestDoctorJudgesTopology(t *testing.T) {
	now := time.Now()
	off := false
	well := shard.Primary{
		Addr: "a:1", MinReplicas: true, Timeout: time.Minute, Ping: 10 * time.Second, Fork: time.Millisecond, Waits: 100, Wait: time.Millisecond,
		Replicas: []shard.Replica{{Addr: "b:1", Online: true, Priority: 100}, {Addr: "c:1", Online: true, Priority: 100}},
	}
	type change = func(*shard.Primary, *shard.Options)
	for name, test := range map[string]struct {
		change change
		want   string // level, check and a part of the text; empty: all is well
	}{
		"well":             {func(*shard.Primary, *shard.Options) {}, ""},
		"alone":            {func(p *shard.Primary, o *shard.Options) { p.Replicas, p.MinReplicas, o.Sentinel = nil, false, "" }, ""},
		"no replica":       {func(p *shard.Primary, o *shard.Options) { p.Replicas = nil }, "warning promotion no replica follows a:1"},
		"few acks":         {func(p *shard.Primary, o *shard.Options) { o.ReplicaAcks = 1 }, "warning promotion replica_acks is 1, and 2 replicas follow a:1, of which 2 may be promoted: one that lacks"},
		"a silent one":     {func(p *shard.Primary, o *shard.Options) { o.ReplicaAcks, p.Replicas[1].Priority = 1, 0 }, "warning promotion replica_acks is 1, and 2 replicas follow a:1, of which 1 may be promoted"},
		"none to promote":  {func(p *shard.Primary, o *shard.Options) { p.Replicas[0].Priority, p.Replicas[1].Priority = 0, 0 }, "warning promotion no replica of a:1 may be promoted"},
		"unequal":          {func(p *shard.Primary, o *shard.Options) { p.Replicas[1].Priority = 50 }, "warning promotion the replicas of a:1 have unequal replica-priority (b:1: 100, c:1: 50)"},
		"unequal, cluster": {func(p *shard.Primary, o *shard.Options) { p.Replicas[1].Priority, o.Sentinel, o.Cluster = 50, "", true }, ""},
		"not asked": {func(p *shard.Primary, o *shard.Options) {
			p.Replicas[1] = shard.Replica{Addr: "c:1", Err: errors.New("away")}
		}, ""},
		"min-replicas":     {func(p *shard.Primary, o *shard.Options) { p.MinReplicas = false }, "warning min_replicas a:1 takes writes when it is cut off"},
		"slow replicas":    {func(p *shard.Primary, o *shard.Options) { p.Wait = 30 * time.Millisecond }, "warning wait the replicas of a:1 take 30ms to have a write (99% of 100), and replica_acks waits 50ms: buyers will hear 503; see why they are slow, or set `replica_acks 2 100ms`"},
		"slow, no acks":    {func(p *shard.Primary, o *shard.Options) { p.Wait, o.ReplicaAcks = time.Second, 0 }, ""},
		"no right to wait": {func(p *shard.Primary, o *shard.Options) { p.Waits, p.WaitErr = 0, errors.New("no right") }, "warning wait how long the replicas of a:1 take cannot be measured: no right"},
		"short timeout":    {func(p *shard.Primary, o *shard.Options) { p.Timeout = 15 * time.Second }, "warning repl_timeout repl-timeout of a:1 is 15s, and it pings its replicas every 10s"},
		"long timeout":     {func(p *shard.Primary, o *shard.Options) { p.Timeout = time.Hour }, "warning repl_timeout repl-timeout of a:1 is 1h0m0s: a replica that hangs"},
		"no settings":      {func(p *shard.Primary, o *shard.Options) { p.Timeout, p.Ping = 0, 0 }, ""},
		"fork":             {func(p *shard.Primary, o *shard.Options) { p.Fork = 250 * time.Millisecond }, "warning fork a:1 stood still for 250ms when it last forked"},
		"slow events": {func(p *shard.Primary, o *shard.Options) {
			p.Events = []shard.LatencyEvent{{Name: "aof-write", At: now, Max: time.Second}}
		}, "warning latency a:1 has recorded slow events in the last hour (aof-write up to 1s)"},
		"old events": {func(p *shard.Primary, o *shard.Options) {
			p.Events = []shard.LatencyEvent{{Name: "fork", At: now.Add(-2 * time.Hour), Max: time.Second}}
		}, ""},
		"not watched":      {func(p *shard.Primary, o *shard.Options) { p.Watched = &off }, ""},
		"a whole cluster":  {func(p *shard.Primary, o *shard.Options) { p.ClusterState = "ok" }, ""},
		"a broken cluster": {func(p *shard.Primary, o *shard.Options) { p.ClusterState, p.Unserved = "fail", 100 }, "error cluster at a:1 the cluster is in state fail, and 100 slots are not served"},
		"moving slots":     {func(p *shard.Primary, o *shard.Options) { p.ClusterState, p.Migrating = "ok", []string{"7", "8"} }, "warning cluster slots are being moved to or from a:1 (7, 8)"},
	} {
		p, o := well, shard.Options{Sentinel: "main", ReplicaAcks: 2, ReplicaAcksWait: 50 * time.Millisecond}
		p.Replicas = append([]shard.Replica(nil), well.Replicas...)
		test.change(&p, &o)
		wantOneFinding(t, name, doctor.JudgePrimary(p, o, now), test.want)
	}
}

func TestDoctorJudgesWhatIsAtRisk(t *testing.T) {
	for want, s := range map[string]risk.State{
		"ok at_risk units of s that a failover would lose now: 3":                                                     {Units: 3, Age: time.Second},
		"warning at_risk 3 units of s are at risk, the oldest for 3s: ":                                               {Units: 3, Age: 3 * time.Second},
		"error at_risk this edge sells no more of s: 50 units are at risk, the oldest for 1s, and at_risk is 50; see": {Units: 50, Age: time.Second, Stopped: true},
		"warning at_risk what a failover would lose of s is not known: away":                                          {Units: 3, Err: errors.New("away")},
	} {
		if got := doctor.JudgeRisk(s); !strings.HasPrefix(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// topologyOf asks a real server.
func topologyOf(t *testing.T, o shard.Options) shard.Primary {
	t.Helper()
	all, err := stocktest.OpenStore(t, o).Shard().Topology(stocktest.Soon(t))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

// What a server and its replicas say is read as it is.
func TestTopologyOfAServer(t *testing.T) {
	server := redistest.Start(t, redistest.Config("repl-timeout 30", "repl-ping-replica-period 5", "latency-monitor-threshold 1"))
	o := stocktest.Options(server)
	if p := topologyOf(t, o); len(p.Replicas) != 0 || p.MinReplicas || p.Timeout != 30*time.Second || p.Ping != 5*time.Second || p.Fork != 0 || p.Waits != 0 || p.WaitErr != nil ||
		p.Watched == nil || !*p.Watched || p.ClusterState != "" || p.Addr != server.Addr() {
		t.Errorf("alone: %+v", p)
	}
	first, second := stocktest.Replica(t, server), stocktest.Replica(t, server)
	c := server.Client()
	stocktest.Eventually(t, "two replicas", func() bool {
		info, err := c.Info(stocktest.Soon(t), "replication").Result()
		return err == nil && strings.Count(info, "state=online") == 2
	})
	for name, value := range map[string]string{"min-replicas-to-write": "1", "latency-monitor-threshold": "1"} {
		if err := c.ConfigSet(stocktest.Soon(t), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := second.Client().ConfigSet(stocktest.Soon(t), "replica-priority", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Do(stocktest.Soon(t), "DEBUG", "SLEEP", "0.01").Err(); err != nil {
		t.Fatal(err)
	}
	p := measured(t, o, true)
	priorities := map[string]int{}
	for _, r := range p.Replicas {
		if !r.Online || r.Err != nil {
			t.Errorf("%+v", r)
		}
		priorities[r.Addr] = r.Priority
	}
	if len(priorities) != 2 || priorities[first.Addr()] != 100 || priorities[second.Addr()] != 0 {
		t.Errorf("the priorities are %v", priorities)
	}
	if !p.MinReplicas || p.Fork <= 0 || p.Waits == 0 || p.Wait <= 0 || p.WaitErr != nil || !slices.ContainsFunc(p.Events, func(e shard.LatencyEvent) bool {
		return e.Name == "command" && e.Max >= 10*time.Millisecond && time.Since(e.At) < time.Hour
	}) {
		t.Errorf("with replicas: %+v", p)
	}

	second.Pause()
	stocktest.Eventually(t, "a replica that hangs is missed", func() bool {
		p := topologyOf(t, o)
		return errors.Is(p.WaitErr, shard.ErrNotReplicated) && strings.Contains(p.WaitErr.Error(), "1 of 2 replicas")
	})
	second.Resume()

	// a user with the rights that docs/redis.md lists, and no more
	if err := c.Do(stocktest.Soon(t), "ACL", "SETUSER", "gate", "on", ">pw", "~stockgate:*", "&stockgate:*", "+@read", "+@write", "+@scripting", "+@pubsub", "+info", "+time", "+wait", "+ping").Err(); err != nil {
		t.Fatal(err)
	}
	o.Username, o.Password = "gate", "pw"
	if p := measured(t, o, false); p.Timeout != 0 || p.Watched != nil || len(p.Events) != 0 || len(p.Replicas) != 2 || p.Waits == 0 {
		t.Errorf("without rights: %+v", p)
	}
}

// measured is a topology whose replicas have answered WAIT in time and, if this user may ask them,
// the questions.
func measured(t *testing.T, o shard.Options, mayAsk bool) (p shard.Primary) {
	t.Helper()
	stocktest.Eventually(t, "the replicas answer", func() bool {
		p = topologyOf(t, o)
		return p.WaitErr == nil && !(mayAsk && slices.ContainsFunc(p.Replicas, func(r shard.Replica) bool { return r.Err != nil }))
	})
	return p
}

// What a node of a cluster says is read as it is.
func TestTopologyOfACluster(t *testing.T) {
	start := func(bus string) *redistest.Server {
		return redistest.Start(t, redistest.Config("cluster-enabled yes", "cluster-port "+bus))
	}
	bus := ports.For(t)
	server, other := start(ports.For(t)), start(bus)
	c := server.Client()
	if err := c.ClusterAddSlotsRange(stocktest.Soon(t), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(other.Addr(), ":")
	if err := c.Do(stocktest.Soon(t), "CLUSTER", "MEET", host, port, bus).Err(); err != nil {
		t.Fatal(err)
	}
	id := other.Client().ClusterMyID(stocktest.Soon(t)).Val()
	stocktest.Eventually(t, "two nodes", func() bool {
		info, err := c.ClusterInfo(stocktest.Soon(t)).Result()
		return err == nil && strings.Contains(info, "cluster_known_nodes:2") && strings.Contains(info, "cluster_state:ok") &&
			c.Do(stocktest.Soon(t), "CLUSTER", "SETSLOT", "7", "MIGRATING", id).Err() == nil
	})
	o := stocktest.Options(server)
	o.Cluster = true
	if p := topologyOf(t, o); p.ClusterState != "ok" || p.Unserved != 0 || fmt.Sprint(p.Migrating) != "[7]" || p.Addr != server.Addr() {
		t.Errorf("with a slot on the move: %+v", p)
	}
	if err := c.Do(stocktest.Soon(t), "CLUSTER", "DELSLOTS", "9").Err(); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "a broken cluster", func() bool {
		info, err := c.ClusterInfo(stocktest.Soon(t)).Result()
		return err == nil && strings.Contains(info, "cluster_state:fail")
	})
	if p := topologyOf(t, o); p.ClusterState != "fail" || p.Unserved != 1 {
		t.Errorf("with a slot that is missing: %+v", p)
	}
}
