package edge_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/redistest"
	"github.com/stockgate/stockgate/internal/stocktest"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/shard"
)

// A replica has a hold that was never forwarded, but not its release. When the replica is
// promoted the hold is back, and the edge releases it again: it must not end in doubt.
func TestUnsentReleaseOutlivesAFailover(t *testing.T) {
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
			primary := redistest.Start(t, redistest.Config("repl-diskless-sync-delay 0"))
			heir := stocktest.Replica(t, primary)
			net := &stocktest.Network{Addr: primary.Addr()}
			o := stocktest.Options(primary)
			o.Dialer, o.ReplicaAcks, o.ReplicaAcksWait = net.Dial, 1, 5*time.Second
			f := &stocktest.Faulty{T: t, Server: primary, Net: net, Edge: stocktest.Selling(t, o, 3)}
			stocktest.MustHold(t, f.Edge, "r1", "Ann", 1)
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
	s := redistest.Start(t, redistest.Config("repl-diskless-sync-delay 0"))
	r := stocktest.Replica(t, s)
	o := stocktest.Options(s)
	o.ReplicaAcks, o.ReplicaAcksWait = 1, 10*time.Second
	e := stocktest.Selling(t, o, 3)
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	r.Stop()
	e.Free(context.Background(), "s", "r1")
	if n := e.Backlog(); n != 0 {
		t.Errorf("%d outcomes wait, want none", n)
	}
}
