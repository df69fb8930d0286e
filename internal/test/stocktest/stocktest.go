package stocktest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/lists"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/lua"
)

// Soon ends a call that would otherwise wait forever. Its time is long: a machine may be busy.
func Soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Options reaches a server at its address, with scripts that it understands.
func Options(b redistest.Backend) shard.Options {
	o := At(b.Addr(), Long)
	if _, ok := b.(*redistest.EmbeddedServer); ok {
		o.Scripts = lua.Embedded()
	}
	return o
}

// At reaches a server at another address: that of a proxy. No lease ends while a test runs, however
// slow the machine is, and a fence waits until GiveUp.
func At(addr string, timeout time.Duration) shard.Options {
	return shard.Options{Addresses: []string{addr}, Timeout: timeout, Lease: 9 * time.Minute, FenceWait: 10 * time.Minute}
}

// giveUp has the fence of this server have begun so much earlier, in ms, once an edge has said in it what it knows.
const giveUp = `
local fence = redis.call('HGET', KEYS[1], 'fence')
local id = fence and string.match(fence, '^%x+')
if not id or not string.find(redis.call('INFO', 'replication'), 'master_replid:' .. id, 1, true) then return 0 end
local said = redis.call('HGET', KEYS[2], ARGV[1])
if not said or string.sub(said, 1, 5) == 'beat ' then return 0 end
local function earlier(id, begun) return id .. ' ' .. string.format('%.0f', begun - ARGV[2]) end
redis.call('HSET', KEYS[1], 'fence', (string.gsub(fence, '^(%x+) (%d+)', earlier)))
return 1`

// GiveUp ends the wait of a fence for edges that do not come, once an edge has said what it knows. The
// fence still waits for what edges that came have to tell. The leases of those that did not come have
// ended by then: a fence waits for longer than a lease runs. A fence of a server that gets its first replica
// meanwhile starts over.
func GiveUp(t testing.TB, e *edge.Edge, gone ...*edge.Edge) {
	t.Helper()
	c := e.Store.Shard()
	for _, other := range gone {
		other.Store.Shard().Clock("s").EndLease()
	}
	keys := []string{c.ShardKeys("s")[shard.MetaKey], c.FenceKeys("s")[shard.EdgesKey+1]}
	earlier := c.Options.FenceWait * 3 / 2 // more than it waits for edges, and less than it waits for what they tell
	Eventually(t, "a fence in which an edge has said what it knows", func() bool {
		n, err := shard.Redis(c).Eval(Soon(t), giveUp, keys, e.Leases().ID(), earlier.Milliseconds()).Int()
		return err == nil && n == 1
	})
}

func OpenStore(t testing.TB, o shard.Options) *reservation.Store {
	t.Helper()
	s, err := reservation.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Key is a signing key as the token package would make it.
func Key(name string) shard.SigningKey {
	k := shard.SigningKey{KID: name, JWK: fmt.Sprintf(`{"kid":%q}`, name)}
	copy(k.Seal[:], name)
	return k
}

// NewEdge makes an edge with the key "main". The test starts and stops it.
func NewEdge(t testing.TB, o shard.Options, eo edge.Options) *edge.Edge {
	t.Helper()
	if eo.Keys == nil {
		eo.Keys = []shard.SigningKey{Key("main")}
	}
	s, err := reservation.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	e := edge.New(s, eo)
	t.Cleanup(func() { stop(t, e) })
	return e
}

// stop ends an edge. What it has not reported to Redis by then stays unreported.
func stop(t testing.TB, e *edge.Edge) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// Ready returns an edge that has seen Redis and is not started: it does nothing on its own.
func Ready(t testing.TB, o shard.Options) *edge.Edge {
	t.Helper()
	e := NewEdge(t, o, edge.Options{})
	if err := e.Refresh(Soon(t)); err != nil {
		t.Fatal(err)
	}
	return e
}

// OpenSale is on sale for a year: sku "a" with stock units, "b" with 5 in the north and 5 in
// the south.
func OpenSale(id string, stock int64, limits ...sale.Limit) *sale.Sale {
	now := time.Now().Truncate(time.Second)
	return &sale.Sale{
		ID: id, StartsAt: now.AddDate(0, 0, -1), EndsAt: now.AddDate(1, 0, 0), Timezone: "UTC",
		Items: []sale.Item{
			{SKU: "a", Stock: stock},
			{SKU: "b", Regions: map[string]int64{"north": 5, "south": 5}},
		},
		Limits: limits,
	}
}

// PerBuyer is a limit on the units of one buyer.
func PerBuyer(most int64) sale.Limit {
	return sale.Limit{Per: "buyer", Every: "sale", Max: most, Count: "units"}
}

// Load applies a sale and opens it.
func Load(t testing.TB, s *reservation.Store, file *sale.Sale) {
	t.Helper()
	if _, err := s.Apply(Soon(t), file, reservation.ApplyOptions{By: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetStatus(Soon(t), file.ID, sale.Open, "test"); err != nil {
		t.Fatal(err)
	}
}

// Apply loads a file again, and makes the edge notice it.
func Apply(t testing.TB, e *edge.Edge, file *sale.Sale) {
	t.Helper()
	if _, err := e.ApplyUnlessLost(Soon(t), file, reservation.ApplyOptions{By: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := e.Refresh(Soon(t)); err != nil {
		t.Fatal(err)
	}
}

// Selling returns an edge, not started, on a server with one open sale "s".
func Selling(t testing.TB, o shard.Options, stock int64, limits ...sale.Limit) *edge.Edge {
	t.Helper()
	e := Ready(t, o)
	Load(t, e.Store, OpenSale("s", stock, limits...))
	if err := e.Refresh(Soon(t)); err != nil {
		t.Fatal(err)
	}
	return e
}

// HoldOptions are those of most tests: nothing expires while they run.
var HoldOptions = edge.HoldOptions{HoldFor: time.Hour, Margin: time.Minute, Mode: record.ModeResponse}

// Hold reserves units of "a" on an edge. Each hold has a key of its own, so that one buyer may
// ask for the same again.
func Hold(ctx context.Context, e *edge.Edge, id, buyer string, units int64) (reservation.Hold, *sale.Refusal, error) {
	return HoldOn(ctx, e, id, buyer, units, HoldOptions)
}

// HoldOn is Hold with other options.
func HoldOn(ctx context.Context, e *edge.Edge, id, buyer string, units int64, o edge.HoldOptions) (reservation.Hold, *sale.Refusal, error) {
	l, ok := e.Catalogue().Sale("s")
	if !ok {
		return reservation.Hold{}, nil, os.ErrNotExist
	}
	a := &sale.Attempt{Sale: "s", Buyer: buyer, Lines: []sale.Line{{SKU: "a", Quantity: units}}, Key: id, Print: "print"}
	lines, refusal := l.Sale.Resolve(a)
	if refusal != nil {
		return reservation.Hold{}, refusal, nil
	}
	return e.Hold(ctx, id, l, a, lines, o)
}

// MustHold is Hold where it must succeed.
func MustHold(t testing.TB, e *edge.Edge, id, buyer string, units int64) reservation.Hold {
	t.Helper()
	h, refusal, err := Hold(Soon(t), e, id, buyer, units)
	if err != nil || refusal != nil {
		t.Fatalf("hold %s: refused %+v, error %v", id, refusal, err)
	}
	return h
}

// State is the state of a reservation; empty: unknown.
func State(t testing.TB, s *reservation.Store, id string) record.State {
	t.Helper()
	r, err := s.Reservation(Soon(t), id)
	if err == reservation.ErrNotFound {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.State
}

// CellA is the stock of "a".
func CellA(t testing.TB, s *reservation.Store) record.Cell {
	t.Helper()
	b, err := s.SaleStock(Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range b.Items {
		if c.SKU == "a" {
			return c
		}
	}
	t.Fatal("the sale has no a")
	return record.Cell{}
}

// Eventually checks a condition until it is true. It never waits for a fixed time, and fails
// after a very long one.
func Eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	ctx := Soon(t)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func Start(e *edge.Edge, _ context.Context) error { e.Start(); return nil }

func StopEdge(e *edge.Edge, ctx context.Context) error { return e.Stop(ctx) }

// Counter counts what an edge reports to its metrics.
type Counter struct {
	Held, Failed, Dropped, Unbacked, Remembered, Asked atomic.Int64
	// what a fence gave up
	Lacking, Absent, Missing atomic.Int64
}

func (c *Counter) Reserved(string, time.Duration) { c.Held.Add(1) }

func (c *Counter) RedisFailed(string) { c.Failed.Add(1) }

func (c *Counter) BacklogDropped() { c.Dropped.Add(1) }

func (c *Counter) SoldUnbacked() { c.Unbacked.Add(1) }

// SoldOther counts nothing.
func (c *Counter) SoldOther(string) {}

func (c *Counter) Fenced(int) {}

func (c *Counter) Lost(promises, edges, movements int64) {
	c.Lacking.Add(promises)
	c.Absent.Add(edges)
	c.Missing.Add(movements)
}

func (c *Counter) NothingLeft(remembered bool) {
	if remembered {
		c.Remembered.Add(1)
	} else {
		c.Asked.Add(1)
	}
}

// Long is a timeout that never ends: a reserve that is still under way when the edge has given
// up is then not too late by its own time.
const Long = time.Minute

// HoldFor reserves one unit of "a" with other options.
func HoldFor(f *Faulty, id string, o edge.HoldOptions) {
	f.T.Helper()
	l, _ := f.Edge.Catalogue().Sale("s")
	a := &sale.Attempt{Buyer: "Ann of " + id, Lines: []sale.Line{{SKU: "a", Quantity: 1}}, Key: id, Print: "print"}
	if _, refusal, err := f.Edge.Hold(Soon(f.T), id, l, a, a.Lines, o); err != nil || refusal != nil {
		f.T.Fatalf("refused %v, %v", refusal, err)
	}
}

func Look(t *testing.T, e *edge.Edge) {
	t.Helper()
	if err := e.Refresh(Soon(t)); err != nil {
		t.Fatal(err)
	}
}

func UnitsOfA(n int64) []sale.Line { return []sale.Line{{SKU: "a", Quantity: n}} }

func Text(kind, value string) lists.Entry {
	return lists.Entry{Kind: kind, Value: value}
}

func Prefix(s string) lists.Entry {
	return lists.Entry{Kind: "ip", Prefix: netip.MustParsePrefix(s)}
}

// Replica starts a replica of s and waits until it follows.
func Replica(t testing.TB, s *redistest.Server) *redistest.Server {
	t.Helper()
	host, port, _ := net.SplitHostPort(s.Addr())
	r := redistest.Start(t, redistest.Config("replicaof "+host+" "+port))
	Followed(t, s)
	return r
}

// Followed waits until a replica follows a server, which has the id then that it keeps.
func Followed(t testing.TB, s *redistest.Server) {
	t.Helper()
	c := s.Client()
	Eventually(t, "a replica that follows", func() bool {
		info, err := c.Info(Soon(t), "replication").Result()
		return err == nil && strings.Contains(info, "state=online")
	})
}

// Replicated waits until every replica that is connected has what was written so far.
func Replicated(t testing.TB, c *shard.Client) {
	t.Helper()
	Eventually(t, "replicas that have everything", func() bool { return c.AwaitAllReplicas(Soon(t)) == nil })
}
