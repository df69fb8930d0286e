package risk

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/shard"
)

// Run sends heartbeats while anything is at risk, until ctx ends. It must be called once.
func (t *Tracker) Run(ctx context.Context) {
	if t.off {
		return
	}
	client, err := t.dial()
	if err != nil {
		t.log.Error("units at risk are not known", zap.Error(err))
		return
	}
	closed := make(chan struct{})
	go func() { // ends a WAIT under way
		defer close(closed)
		<-ctx.Done()
		client.Close()
	}()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		t.settle()
		t.tell(ctx, t.beat(ctx, client))
		select {
		case <-ticker.C:
		case <-t.wake:
		case <-ctx.Done():
		}
	}
	t.beats.Wait()
	<-closed
}

// dial returns a client of its own: a WAIT blocks its connection.
func (t *Tracker) dial() (redis.UniversalClient, error) {
	u, err := t.shard.Options.Universal()
	if err != nil {
		return nil, err
	}
	u.ReadTimeout = shard.LongestCall // every call has a context
	return redis.NewUniversalClient(u), nil
}

// tell logs once that heartbeats fail, and once that they do not any more.
func (t *Tracker) tell(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil || errors.Is(err, errBusy):
	case err != nil && t.failed.Swap(&err) == nil:
		t.log.Warn("units at risk are not known: what was sold counts as at risk until redis answers", zap.Error(err))
	case err == nil && t.failed.Swap(nil) != nil:
		t.log.Info("units at risk are known again")
	}
}

// errBusy says that no heartbeat has ended.
var errBusy = errors.New("a heartbeat is under way")

// beat starts a heartbeat on each server that has something at risk. A server whose last
// heartbeat still waits for its replicas is only asked what the ledger has.
func (t *Tracker) beat(ctx context.Context, client redis.UniversalClient) error {
	servers, err := t.servers(ctx, client)
	if err != nil {
		return err
	}
	for at, s := range servers {
		n := t.nodes[at]
		if n == nil {
			n = &node{}
			t.nodes[at] = n
		}
		if !n.busy.CompareAndSwap(false, true) {
			if err := t.acknowledged(ctx, s); err != nil {
				return err
			}
			continue
		}
		t.beats.Go(func() {
			defer n.busy.Store(false)
			t.tell(ctx, t.ask(ctx, n, s))
		})
	}
	return errBusy
}

// server is where some sales are.
type server struct {
	client *redis.Client
	sales  []string
}

// servers finds where the sales are of which something is at risk.
func (t *Tracker) servers(ctx context.Context, client redis.UniversalClient) (map[string]*server, error) {
	out := make(map[string]*server)
	single, _ := client.(*redis.Client)
	cluster, apart := client.(*redis.ClusterClient)
	for sale, a := range t.all {
		if !a.unsafe() {
			continue
		}
		at, c := "", single
		if apart {
			ctx, cancel := t.short(ctx)
			master, err := cluster.MasterForKey(ctx, t.shard.ShardKeys(sale)[shard.MetaKey])
			cancel()
			if err != nil {
				return nil, shard.Explain(err)
			}
			at, c = master.Options().Addr, master
		}
		if out[at] == nil {
			out[at] = &server{client: c}
		}
		out[at].sales = append(out[at].sales, sale)
	}
	return out, nil
}

// short bounds a call that does not wait for replicas.
func (t *Tracker) short(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(4*t.shard.Timeout(), time.Second))
}

// acknowledged counts as safe what the ledger has.
func (t *Tracker) acknowledged(ctx context.Context, s *server) error {
	ctx, cancel := t.short(ctx)
	defer cancel()
	pipe, asked := s.client.Pipeline(), t.now()
	metas := t.metas(ctx, pipe, s.sales)
	if _, err := pipe.Exec(ctx); err != nil {
		return shard.Explain(err)
	}
	for i, sale := range s.sales {
		t.prove(sale, metas[i], false, asked)
	}
	return nil
}

// metas asks how far each sale's journal has come, and how much of it the ledger has.
func (t *Tracker) metas(ctx context.Context, pipe redis.Pipeliner, sales []string) []*redis.SliceCmd {
	out := make([]*redis.SliceCmd, len(sales))
	for i, sale := range sales {
		out[i] = pipe.HMGet(ctx, t.shard.ShardKeys(sale)[shard.MetaKey], "epoch", "seq", "acked")
	}
	return out
}
