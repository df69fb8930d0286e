package edge_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// buys is an attempt as a gate makes it: from memory, else from Redis.
func buys(ctx context.Context, e *edge.Edge, id string, n int64, t edge.HoldOptions) (held bool, no *sale.Refusal) {
	l, ok := e.Catalogue().Sale("s")
	if !ok {
		return false, nil
	}
	no, ask := e.Remembered(l, nil, stocktest.UnitsOfA(n))
	defer ask.End()
	if no != nil {
		return false, no
	}
	a := &sale.Attempt{Sale: "s", Buyer: "buyer of " + id, Lines: stocktest.UnitsOfA(n)}
	_, no, err := e.Hold(ctx, id, l, a, stocktest.UnitsOfA(n), t)
	return err == nil && no == nil, no
}

// A rush on a sale that is sold out costs Redis next to nothing. Its clock stands still:
// what the edge knows stays fresh on a machine that does not read in time.
func TestARushIsRefusedFromMemory(t *testing.T) {
	s := redistest.Start(t)
	var counted stocktest.Counter
	e := stocktest.NewEdge(t, stocktest.Options(s), edge.Options{Metrics: &counted})
	if err := e.Refresh(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	stocktest.Load(t, e.Store, stocktest.OpenSale("s", 5))
	if err := e.Refresh(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	e.SetViewClock(func() time.Duration { return 0 })
	e.Start()
	follows(t, e)
	before := calls(t, s, "evalsha")
	const buyers, each = 50, 200
	var held atomic.Int64
	var wg sync.WaitGroup
	ctx := stocktest.Soon(t)
	for i := range buyers {
		wg.Go(func() {
			for j := range each {
				if ok, _ := buys(ctx, e, fmt.Sprint("r", i, " ", j), 1, stocktest.HoldOptions); ok {
					held.Add(1)
				}
			}
		})
	}
	wg.Wait()
	asked, all := counted.Asked.Load(), int64(buyers*each)
	if held.Load() != 5 || asked+counted.Remembered.Load() != all-5 {
		t.Errorf("%d were held, redis refused %d and memory %d of %d", held.Load(), asked, counted.Remembered.Load(), all)
	}
	used := calls(t, s, "evalsha") - before
	t.Logf("%d attempts: %d script calls, %d refusals by redis", all, used, asked)
	if used > all/20 {
		t.Errorf("%d attempts took %d script calls", all, used)
	}
}

// calls is how often a command ran, by INFO commandstats.
func calls(t *testing.T, s *redistest.Server, command string) (n int64) {
	t.Helper()
	for line := range strings.Lines(s.Client().Info(stocktest.Soon(t), "commandstats").Val()) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			fmt.Sscan(strings.SplitN(rest, ",", 2)[0], &n)
		}
	}
	return n
}

// stampede lets buyers at all edges hold units, and give back most of what they got,
// in every way, until each of the units is confirmed.
func stampede(t *testing.T, edges []*edge.Edge, direct *reservation.Store, stock int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var refused, held atomic.Int64
	var wg sync.WaitGroup
	short := edge.HoldOptions{HoldFor: 50 * time.Millisecond, Margin: 10 * time.Millisecond, Mode: record.ModeBackend}
	seed := draw.Seed(t)
	for i := range 16 {
		e := edges[i%len(edges)]
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				<-tick.C
				id := fmt.Sprintf("r%d-%d", i, n)
				ok, no := buys(ctx, e, id, 1+r.Int64N(2), short)
				if no != nil {
					refused.Add(1)
				}
				if !ok {
					continue
				}
				held.Add(1)
				switch r.IntN(10) {
				case 0, 1:
					e.ConfirmEventually(ctx, "s", id, "")
				case 2: // it expires
				case 3:
					e.DoubtEventually(ctx, "s", id, "")
					e.ReleaseEventually(ctx, "s", id, reservation.SourceShop, "")
				default:
					e.ReleaseEventually(ctx, "s", id, reservation.SourceShop, "")
				}
			}
		})
	}
	defer wg.Wait()
	defer cancel()
	stocktest.Eventually(t, "every unit sold", func() bool {
		direct.Expire(stocktest.Soon(t), "s")
		// a doubt whose release was lost: the shop says it again
		if holds, err := stocktest.Holds(stocktest.Soon(t), direct, "s", record.InDoubt, 10); err == nil {
			for _, h := range holds {
				direct.Release(stocktest.Soon(t), "s", h.ID, reservation.SourceShop, "")
			}
		}
		return stocktest.CellA(t, direct).Confirmed == stock
	})
	t.Logf("%d holds and %d refusals until all %d units were sold", held.Load(), refused.Load(), stock)
}

// Units that come back all the time are all sold, by what the journal tells alone: with
// clocks that stand still no refusal has a limit.
func TestEveryUnitIsSoldByTheJournal(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		const stock = 20
		first := following(t, stocktest.Options(b), stock)
		edges := []*edge.Edge{first}
		for range 2 {
			e := stocktest.Ready(t, stocktest.Options(b))
			e.SetViewClock(func() time.Duration { return 0 })
			e.Start()
			follows(t, e)
			edges = append(edges, e)
		}
		stampede(t, edges, stocktest.OpenStore(t, stocktest.Options(b)), stock)
		stocktest.Balanced(t, b.Client(), first.Store, "s")
	})
}

// And so they are when connections break, and reads of the journal get lost.
func TestEveryUnitIsSoldWhateverIsLost(t *testing.T) {
	const stock = 100
	s := redistest.Start(t)
	direct := stocktest.OpenStore(t, stocktest.Options(s))
	stocktest.Load(t, direct, stocktest.OpenSale("s", stock))
	var edges []*edge.Edge
	var proxies []*redistest.Proxy
	for range 3 {
		p := redistest.NewProxy(t, s.Addr())
		e := stocktest.Ready(t, stocktest.At(p.Addr(), stocktest.Long))
		e.Start()
		follows(t, e)
		edges, proxies = append(edges, e), append(proxies, p)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := range 2000 { // then a machine that is too slow for it sells in peace
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			p := proxies[rand.IntN(len(proxies))]
			switch n % 8 {
			case 0:
				p.CutReplies(1, "XREAD")
			case 2:
				p.CutReplies(2, "EVALSHA")
			case 3:
				p.HoldReplies("XREAD")
			case 4:
				p.DropAll()
			default:
				p.Heal()
			}
		}
		for _, p := range proxies {
			p.Heal()
		}
	})
	stampede(t, edges, direct, stock)
	close(stop)
	wg.Wait()
	for i, p := range proxies {
		p.Heal()
		stocktest.Eventually(t, "an empty backlog", func() bool { return edges[i].Backlog() == 0 })
	}
	stocktest.Balanced(t, s.Client(), direct, "s")
}
