package redistest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/test/ports"
)

// Sentinel starts a sentinel that watches a server under the name "main".
func Sentinel(t T, primary *Server, opts ...Option) *Server {
	t.Helper()
	host, port, _ := net.SplitHostPort(primary.Addr())
	lines := []string{fmt.Sprintf("sentinel monitor main %s %s 1", host, port)}
	if primary.password != "" {
		lines = append(lines, "sentinel auth-pass main "+primary.password)
	}
	return Start(t, append(opts, Config(lines...), func(o *options) { o.sentinel = true })...)
}

// slots is how many a cluster has.
const slots = 16384

// Cluster starts a cluster of n nodes without replicas, which have equal shares of the slots, and
// returns when each of them knows all.
func Cluster(t T, n int) []*Server {
	t.Helper()
	nodes, bus := make([]*Server, n), make([]string, n)
	for i := range nodes {
		port, err := ports.Free()
		if err != nil {
			t.Fatalf("redistest: %v", err)
		}
		bus[i] = strconv.Itoa(port)
		nodes[i] = Start(t, Config("cluster-enabled yes", "cluster-node-timeout 60000", "cluster-port "+bus[i]))
		nodes[i].cluster("ADDSLOTSRANGE", i*slots/n, (i+1)*slots/n-1)
		nodes[i].cluster("SET-CONFIG-EPOCH", i+1)
		if i > 0 {
			nodes[i].cluster("MEET", "127.0.0.1", nodes[0].port, bus[0])
		}
	}
	deadline := time.Now().Add(readyWithin)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for _, node := range nodes {
		for c := node.Client(); !whole(c); {
			if time.Now().After(deadline) {
				t.Fatalf("redistest: the cluster is not whole after %v\n%s", readyWithin, node.log())
			}
			<-tick.C
		}
	}
	return nodes
}

func (s *Server) cluster(args ...any) {
	s.t.Helper()
	if err := s.Client().Do(context.Background(), append([]any{"CLUSTER"}, args...)...).Err(); err != nil {
		s.t.Fatalf("redistest: CLUSTER %v: %v", args, err)
	}
}

// whole reports whether the node knows an owner of every slot.
func whole(c *redis.Client) bool {
	info := c.ClusterInfo(context.Background()).Val()
	return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_ok:"+strconv.Itoa(slots))
}
