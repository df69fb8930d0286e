package dashboard_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// counted is what all edges have counted, as this one says it.
func (e *edgeProcess) counted() (c adminapi.SaleCounted, byOutcome map[string]int64) {
	e.t.Helper()
	if err := json.Unmarshal([]byte(e.ask("GET", "sales/flash/counts", "")), &c); err != nil {
		e.t.Fatal(err)
	}
	byOutcome = make(map[string]int64)
	for _, a := range c.Attempts {
		byOutcome[a.Outcome] += a.Attempts
	}
	return c, byOutcome
}

// wholeSum returns the sum over two edges once both have written, and how many of them were confirmed.
func wholeSum(a, b *edgeProcess) (c adminapi.SaleCounted, total, confirmed int64) {
	a.t.Helper()
	b.counted() // asking an edge writes its counts
	c, by := a.counted()
	for _, n := range by {
		total += n
	}
	return c, total, by["confirmed"]
}

// Two edges on one Redis: both say the same sums, over all attempts. One that is killed stays with its counts, and
// goes on from them when it starts again.
func TestTwoEdges(t *testing.T) {
	redis, storage := redistest.Start(t), t.TempDir()
	a, b := startEdgeAt(t, redis.Addr(), storage), startEdgeAt(t, redis.Addr(), storage)
	a.ask("PUT", "sales/flash", edgeSale)
	a.ask("POST", "sales/flash/open", "")
	for _, e := range []*edgeProcess{a, b} {
		e.until("it sells", func() bool { return e.rushAs("ann", "apple") == http.StatusCreated })
	}
	_, before, _ := wholeSum(a, b)
	orders := int64(2 + a.rush(150, "apple", "berry") + b.rush(70, "apple", "berry"))
	c, total, confirmed := wholeSum(a, b)
	if total != before+220 || confirmed != orders || c.Won.Count != uint64(orders) || c.Won.P50 == nil || c.Reserves.Count == 0 {
		t.Errorf("%d attempts after %d, %d of %d confirmed, %+v", total, before, confirmed, orders, c)
	}
	if _, other, _ := wholeSum(b, a); other != total {
		t.Errorf("one edge says %d, the other %d", total, other)
	}

	b.stop() // kill -9
	if c, by := a.counted(); by["confirmed"] != orders || len(c.Edges) != 1 || c.Edges[0].Attempts != total {
		t.Errorf("after the kill: %+v", c)
	}
	b.start()
	b.until("it sells again", func() bool { return b.rushAs("late", "berry") == http.StatusConflict })
	after, total2, confirmed := wholeSum(a, b)
	if total2 <= total || confirmed != orders {
		t.Errorf("after the restart %d attempts, %d confirmed: %+v", total2, confirmed, after)
	}
	if e := after.Edges[0]; e.Live < 2 || !e.Sells || e.Silent { // they are on one machine
		t.Errorf("%+v", e)
	}
}
