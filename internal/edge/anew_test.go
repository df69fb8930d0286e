package edge_test

import (
	"fmt"
	"testing"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// closeAndDelete ends a sale on purpose.
func closeAndDelete(t *testing.T, e *edge.Edge) {
	t.Helper()
	ctx := stocktest.Soon(t)
	if err := e.Store.SetStatus(ctx, "s", "closed", "test"); err != nil {
		t.Fatal(err)
	}
	if err := e.Store.Delete(ctx, "s", true); err != nil {
		t.Fatal(err)
	}
}

// What an edge was promised of a sale that was deleted is not told to the one that was loaded again
// under its id: with units of the new sale it would sell the old orders again.
func TestPromisesEndWithTheSale(t *testing.T) {
	s := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	e := stocktest.NewEdge(t, stocktest.Options(s), edge.Options{})
	stocktest.Load(t, e.Store, stocktest.OpenSale("s", 10))
	e.Start()
	stocktest.Look(t, e)
	for i := range 5 {
		id := fmt.Sprint("r", i)
		stocktest.MustHold(t, e, id, fmt.Sprint("buyer ", i), 1)
		if _, err := e.ConfirmEventually(stocktest.Soon(t), "s", id, ""); err != nil {
			t.Fatal(err)
		}
	}
	closeAndDelete(t, e)
	stocktest.Load(t, e.Store, stocktest.OpenSale("s", 10))
	stocktest.Look(t, e)
	stocktest.MustHold(t, e, "n1", "Ann", 1)
	s.Kill()
	s.Restart()
	p := &pair{t: t}
	p.sells(e, "x")
	stocktest.Eventually(t, "an empty backlog", func() bool { return e.Backlog() == 0 })
	if c := stocktest.CellA(t, e.Store); c.Confirmed != 0 || c.Held != 2 || c.Available != 8 {
		t.Errorf("of 10 units %d are sold, %d held and %d available; want 0, 2 and 8", c.Confirmed, c.Held, c.Available)
	}
}

// An edge that has missed how a sale was deleted, loaded again and deleted again knows that it was
// deleted.
func TestDeletedTwiceUnseen(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Selling(t, stocktest.Options(b), 10)
		closeAndDelete(t, e)
		stocktest.Load(t, e.Store, stocktest.OpenSale("s", 10))
		closeAndDelete(t, e)
		stocktest.Look(t, e)
		if l, ok := e.Catalogue().Sale("s"); ok {
			t.Errorf("the edge lists %q", l.Status)
		}
	})
}
