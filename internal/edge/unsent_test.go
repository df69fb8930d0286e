package edge_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// A replica has a hold that was never forwarded, but not its release. When the replica is
// promoted the hold is back, and the edge releases it again: it must not end in doubt.
func TestUnsentReleaseOutlivesAFailover(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]func(o *stocktest.Faulty){
		"released by the attempt": func(f *stocktest.Faulty) {
			_, err := f.Edge.ReleaseEventually(stocktest.Soon(t), "s", "r1", reservation.SourceUnsent, "unsent")
			if !errors.Is(err, shard.ErrNotReplicated) {
				t.Errorf("the release ends with %v, want %v", err, shard.ErrNotReplicated)
			}
		},
		"abandoned": func(f *stocktest.Faulty) { f.Edge.Abandon("s", "r1") },
	} {
		t.Run(name, func(t *testing.T) {
			primary := redistest.Start(t)
			heir := stocktest.Replica(t, primary)
			net := &stocktest.Network{Addr: primary.Addr()}
			o := stocktest.Options(primary)
			o.Dialer, o.ReplicaAcks, o.ReplicaAcksWait = net.Dial, 1, 30*time.Second
			stocktest.MustHold(t, stocktest.Selling(t, o, 3), "r1", "Ann", 1)
			o.ReplicaAcksWait = 100 * time.Millisecond // the same edge, which waits less long
			f := &stocktest.Faulty{T: t, Server: primary, Net: net, Edge: stocktest.Ready(t, o)}
			if err := heir.Client().ReplicaOf(stocktest.Soon(t), "NO", "ONE").Err(); err != nil {
				t.Fatal(err)
			}
			release(f)
			f.Edge.Start()
			direct := stocktest.OpenStore(t, stocktest.Options(primary))
			stocktest.Eventually(t, "a release at the primary", func() bool { return stocktest.State(t, direct, "r1") == record.Released })
			if got := stocktest.State(t, stocktest.OpenStore(t, stocktest.Options(heir)), "r1"); got != record.Held {
				t.Fatalf("at the replica the reservation is %q, want held: the test proves nothing", got)
			}
			primary.Kill()
			second := stocktest.Replica(t, heir)
			net.Lead(heir.Addr())
			stocktest.Eventually(t, "an empty backlog", func() bool { return f.Edge.Backlog() == 0 })
			for _, s := range []*redistest.Server{heir, second} {
				if got := stocktest.State(t, stocktest.OpenStore(t, stocktest.Options(s)), "r1"); got != record.Released {
					t.Errorf("after the failover the reservation is %q, want released", got)
				}
			}
		})
	}
}

// That a client may buy again while its hold goes on is told once: a failover may forget it.
func TestFreeNeedsNoReplica(t *testing.T) {
	s := redistest.Start(t)
	r := stocktest.Replica(t, s)
	o := stocktest.Options(s)
	o.ReplicaAcks, o.ReplicaAcksWait = 1, 30*time.Second
	stocktest.MustHold(t, stocktest.Selling(t, o, 3), "r1", "Ann", 1)
	o.ReplicaAcksWait = 100 * time.Millisecond // the same edge, which waits less long
	e := stocktest.Ready(t, o)
	r.Stop()
	e.Free(context.Background(), "s", "r1")
	if n := e.Backlog(); n != 0 {
		t.Errorf("%d outcomes wait, want none", n)
	}
}

// What Redis refuses as a whole leaves nothing behind: no attempt of it is released later.
func TestRefusedAsAWholeIsNotSent(t *testing.T) {
	for field, want := range map[string]error{"restoring": shard.ErrRestoring, "schema": shard.ErrNewerSchema} {
		t.Run(field, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, b redistest.Backend) {
				e := stocktest.Selling(t, stocktest.Options(b), 9)
				stocktest.MustHold(t, e, "r1", "Ann", 1)
				undo := refuseAll(t, b, e, field)
				for _, id := range []string{"r2", "r3", "r4"} {
					_, refusal, err := stocktest.Hold(stocktest.Soon(t), e, id, "Bob", 1)
					if refusal != nil || !errors.Is(err, want) || errors.Is(err, edge.ErrUnknown) {
						t.Errorf("the attempt ends with %v %v, want %v", refusal, err, want)
					}
				}
				if n := e.Backlog(); n != 0 {
					t.Errorf("%d outcomes wait, want none", n)
				}
				undo()
			})
		})
	}
}

// What the shop has said is told when Redis takes it again, also by an edge that was too old for it.
func TestOutcomesOutliveANewerSchema(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Selling(t, stocktest.Options(b), 9)
		wants := map[string]record.State{"r1": record.Confirmed, "r2": record.Released, "r3": record.InDoubt}
		for id := range wants {
			stocktest.MustHold(t, e, id, id, 1)
		}
		undo := refuseAll(t, b, e, "schema")
		e.Start()
		for id, do := range map[string]func() (record.State, error){
			"r1": func() (record.State, error) { return e.ConfirmEventually(stocktest.Soon(t), "s", "r1", "201") },
			"r2": func() (record.State, error) {
				return e.ReleaseEventually(stocktest.Soon(t), "s", "r2", reservation.SourceShop, "409")
			},
			"r3": func() (record.State, error) { return e.DoubtEventually(stocktest.Soon(t), "s", "r3", "500") },
		} {
			if _, err := do(); !errors.Is(err, shard.ErrNewerSchema) {
				t.Errorf("%s ends with %v, want %v", id, err, shard.ErrNewerSchema)
			}
		}
		if n := e.Backlog(); n != len(wants) {
			t.Errorf("%d outcomes wait, want %d", n, len(wants))
		}
		undo()
		stocktest.Eventually(t, "an empty backlog", func() bool { return e.Backlog() == 0 })
		for id, want := range wants {
			if got := stocktest.State(t, e.Store, id); got != want {
				t.Errorf("%s is %s, want %s", id, got, want)
			}
		}
	})
}

// refuseAll lets Redis refuse all operations on the sale, for the sake of a field of its shard, until
// undo.
func refuseAll(t *testing.T, b redistest.Backend, e *edge.Edge, field string) (undo func()) {
	t.Helper()
	c, key := b.Client(), e.Store.Shard().ShardKeys("s")[shard.MetaKey]
	was, err := c.HGet(stocktest.Soon(t), key, field).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	if err := c.HSet(stocktest.Soon(t), key, field, lua.Schema+1).Err(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if was == "" {
			err = c.HDel(stocktest.Soon(t), key, field).Err()
		} else {
			err = c.HSet(stocktest.Soon(t), key, field, was).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
