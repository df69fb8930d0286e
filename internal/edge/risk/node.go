package risk

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// waitFor is how long a heartbeat waits for the replicas. It is long because a replica that
	// is behind by more would never be seen to have anything.
	waitFor = 5 * time.Second
	// goneFor is how long a replica that has left still counts: longer than Sentinel (10 times
	// down-after-milliseconds) and Cluster (10 times cluster-node-timeout) consider promoting
	// it, by their defaults.
	goneFor = 10 * time.Minute
)

// node is what the heartbeats know of one server.
type node struct {
	busy atomic.Bool // a heartbeat is under way; guards the rest

	replID string        // the server's master_replid; empty: it was not asked yet
	most   int           // the largest number of replicas that have followed it
	mostAt time.Duration // when there were as many for the last time
}

// learn takes in what the server says of its replicas. Another master_replid means another
// server, or one that has restarted: its replicas are counted again.
func (n *node) learn(info map[string]string, now, goneFor time.Duration) error {
	if role := info["role"]; role != "master" {
		return fmt.Errorf("%w: it is a replica", shard.ErrUnavailable)
	}
	online := shard.OnlineReplicas(info)
	if id := info["master_replid"]; id != n.replID {
		n.replID, n.most = id, 0
	}
	if online >= n.most || now-n.mostAt > goneFor {
		n.most, n.mostAt = online, now
	}
	return nil
}

// ask is one heartbeat. On one connection, so that it is one server, it reads how many
// replicas there are and how far each journal has come, writes something, and waits until
// all replicas have that: then they have the journals up to there too. What the replies to
// reserve requests have said is not used: they may be those of an earlier primary.
func (t *Tracker) ask(ctx context.Context, n *node, s *server) error {
	ctx, cancel := context.WithTimeout(ctx, waitFor+t.short())
	defer cancel()
	asked := t.now()
	conn := s.at.Conn()
	defer conn.Close()
	info, metas, err := conn.Ask(ctx, s.sales, proofs...)
	if err != nil {
		return err
	}
	if err := n.learn(info, t.now(), t.goneFor); err != nil {
		return err
	}
	for _, sale := range s.sales {
		t.account(sale).alone.Store(n.most == 0)
	}
	have := 0
	if n.most > 0 {
		if have, err = conn.Await(ctx, s.sales[0], n.most, waitFor); err != nil {
			return err
		}
	}
	for i, sale := range s.sales {
		replicated := have >= n.most
		if last, ok := t.prove(sale, metas[i], replicated, asked); ok && replicated {
			t.account(sale).lost(last, asked)
		}
	}
	return nil
}

// prove counts as safe what the ledger has of a sale, or, once it is replicated, all that
// its journal had. It returns the newest seq; false: Redis does not have the sale.
func (t *Tracker) prove(sale string, meta shard.Fields, replicated bool, asked time.Duration) (seq int64, ok bool) {
	a := t.account(sale)
	epoch := meta.Text(0)
	if epoch == "" {
		a.gone(asked)
		return 0, false
	}
	seq, acked := meta.Number(1), meta.Number(2)
	if replicated {
		acked = max(acked, seq)
	}
	a.prove(epoch, min(acked, seq))
	return seq, true
}
