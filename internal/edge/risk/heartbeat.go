package risk

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/store/shard"
)

// Run sends heartbeats while anything is at risk, until ctx ends. It must be called once.
func (t *Tracker) Run(ctx context.Context) {
	if t.off {
		return
	}
	client, err := t.shard.OpenReplication()
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
func (t *Tracker) beat(ctx context.Context, client *shard.Replication) error {
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
	at    shard.PrimaryServer
	sales []string
}

// servers finds where the sales are of which something is at risk.
func (t *Tracker) servers(ctx context.Context, client *shard.Replication) (map[string]*server, error) {
	out := make(map[string]*server)
	for sale, a := range t.all {
		if !a.unsafe() {
			continue
		}
		primary, err := client.PrimaryOf(ctx, sale, t.short())
		if err != nil {
			return nil, err
		}
		at := primary.Addr
		if out[at] == nil {
			out[at] = &server{at: primary}
		}
		out[at].sales = append(out[at].sales, sale)
	}
	return out, nil
}

// short bounds a call that does not wait for replicas.
func (t *Tracker) short() time.Duration { return max(4*t.shard.Timeout(), time.Second) }

// acknowledged counts as safe what the ledger has.
func (t *Tracker) acknowledged(ctx context.Context, s *server) error {
	ctx, cancel := context.WithTimeout(ctx, t.short())
	defer cancel()
	asked := t.now()
	metas, err := s.at.Metas(ctx, s.sales, proofs...)
	if err != nil {
		return err
	}
	for i, sale := range s.sales {
		t.prove(sale, metas[i], false, asked)
	}
	return nil
}

// proofs are the fields that say how far a sale's journal has come, and how much of it the ledger has.
var proofs = []string{"epoch", "seq", "acked"}
