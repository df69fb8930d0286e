package edge_test

import (
	"testing"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// Where an edge and its server were killed together and no other edge can live, the next one sells at once.
// No fence of the test ends by its own wait.
func TestNextEdgeAlone(t *testing.T) {
	s := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	network := &stocktest.Network{Addr: s.Addr()}
	o := stocktest.Options(s)
	o.Dialer = network.Dial
	killed := stocktest.NewEdge(t, o, edge.Options{})
	stocktest.Load(t, killed.Store, stocktest.OpenSale("s", 10))
	killed.Start()
	stocktest.Look(t, killed)
	stocktest.MustHold(t, killed, "r1", "Ann", 1)
	network.Cut()
	s.Kill()
	s.Restart()

	c := stocktest.OpenStore(t, stocktest.Options(s)).Shard()
	if err := c.EndFences(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	next := stocktest.NewEdge(t, stocktest.Options(s), edge.Options{})
	next.Start()
	stocktest.Look(t, next)
	stocktest.Eventually(t, "the next edge sells", func() bool {
		_, refusal, err := stocktest.Hold(stocktest.Soon(t), next, "r2", "Bob", 1)
		return err == nil && refusal == nil
	})
	if left := stocktest.CellA(t, next.Store); left.Available != 8 || left.Held != 2 {
		t.Errorf("the stock is %+v, want 8 units and 2 held", left)
	}
	if fenced := s.Client().HGet(stocktest.Soon(t), c.ShardKeys("s")[0], "fenced").Val(); fenced != "" {
		t.Errorf("there was a fence: %s", fenced)
	}
}
