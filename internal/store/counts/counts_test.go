package counts_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/store/counts"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

const id = "double11"

var sold, refused = counts.Attempts("confirmed", ""), counts.Attempts("refused", "sold_out")

// site is a Redis with a sale.
type site struct {
	*testing.T
	client *shard.Client
	redis  *redis.Client
	meta   string
	hash   string
}

func onEach(t *testing.T, f func(s *site)) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		c := stocktest.OpenStore(t, stocktest.Options(b)).Shard()
		s := &site{t, c, b.Client(), c.CountsKeys(id)[0], c.CountsKeys(id)[1]}
		s.load(100)
		f(s)
	})
}

// load makes the sale of an epoch.
func (s *site) load(epoch int) {
	if err := s.redis.HSet(s.Context(), s.meta, "epoch", epoch, "schema", 4).Err(); err != nil {
		s.Fatal(err)
	}
}

// process is one that counts.
type process struct {
	*site
	writer *counts.Writer
	round  counts.Round
}

func (s *site) start(edge string) *process {
	return &process{s, counts.NewWriter(), counts.Round{Client: s.client, Edge: edge, Ready: true, All: map[string]counts.Counters{id: {}, "": {}}, Sales: []counts.Counted{{Sale: id, Sells: true, Live: true}}}}
}

func (p *process) count(name string, n int64) *process {
	p.round.All[id][name] += n
	return p
}

func (p *process) write() {
	p.Helper()
	if full, err := p.try(); err != nil || len(full) > 0 {
		p.Fatal(full, err)
	}
}

func (p *process) try() ([]string, error) {
	all := map[string]counts.Counters{}
	for sale, n := range p.round.All {
		all[sale] = maps.Clone(n)
	}
	r := p.round
	r.All = all
	return p.writer.Write(p.Context(), &r)
}

func (p *process) stop() {
	p.round.Last = true
	p.write()
}

func (s *site) read() *counts.SaleCounts {
	s.Helper()
	all, err := counts.Read(s.Context(), s.client, id)
	if err != nil {
		s.Fatal(err)
	}
	return all
}

func (s *site) sums(want int64) *counts.SaleCounts {
	s.Helper()
	all := s.read()
	if got := all.Sum.Total(); got != want {
		s.Fatalf("the sum is %d, want %d: %v", got, want, s.fields())
	}
	return all
}

func (s *site) fields() map[string]string {
	s.Helper()
	all, err := s.redis.HGetAll(s.Context(), s.hash).Result()
	if err != nil {
		s.Fatal(err)
	}
	return all
}

// silence makes the processes of an edge older, as if they were not heard for so long.
func (s *site) silence(edge string, by time.Duration) {
	s.Helper()
	for field, value := range s.fields() {
		words := strings.SplitN(value, " ", 8)
		if strings.HasPrefix(field, "p|") && words[6] == edge {
			heard, _ := strconv.ParseInt(words[0], 10, 64)
			words[0] = strconv.FormatInt(heard-by.Milliseconds(), 10)
			if err := s.redis.HSet(s.Context(), s.hash, field, strings.Join(words, " ")).Err(); err != nil {
				s.Fatal(err)
			}
		}
	}
}

// Sums are over all processes, and the same write again adds nothing.
func TestSums(t *testing.T) {
	onEach(t, func(s *site) {
		a, b := s.start("shop-1-AAA"), s.start("shop-2-BBB")
		a.count(sold, 3).count(refused, 10).count(counts.Times(counts.Won, .005), 3).write()
		b.count(sold, 4).count(counts.Times(counts.Won, 1), 1).write()
		for range 3 {
			a.write()
		}
		a.count(sold, 1).write()
		all := s.sums(18)
		if all.Sum[sold] != 8 || all.Sum[refused] != 10 || len(all.Edges) != 2 {
			t.Errorf("%+v", all)
		}
		won := all.Sum.Won()
		if won.Total() != 4 || won.Quantile(counts.Histogram{}, .75) != 5 {
			t.Errorf("%v, %v", won, won.Quantile(counts.Histogram{}, .75))
		}
		if e := all.Edges[0]; e.Name != "shop-1" || e.Live != 1 || !e.Sells || e.Silent || e.IDs[0] != "shop-1-AAA" || e.Sum.Total() != 14 {
			t.Errorf("%+v", e)
		}
	})
}

// An edge that was killed stays, with when it was last heard; one that takes its place goes on from its counts.
func TestKilledAndRestarted(t *testing.T) {
	onEach(t, func(s *site) {
		a := s.start("shop-1-AAA").count(sold, 3)
		a.write()
		before := s.read().Edges[0].Heard
		s.silence("shop-1-AAA", 2*time.Minute)
		if e := s.sums(3).Edges[0]; !e.Silent || e.Live != 0 || !e.Heard.Equal(before.Add(-2*time.Minute)) || e.IDs[0] != "shop-1-AAA" {
			t.Errorf("killed: %+v", e)
		}
		next := s.start("shop-1-BBB").count(sold, 2)
		next.write()
		if e := s.sums(5).Edges[0]; e.Silent || e.Live != 1 || e.Processes != 2 || len(s.read().Edges) != 1 {
			t.Errorf("restarted: %+v", e)
		}
		next.stop()
		if e := s.sums(5).Edges[0]; e.Silent || e.Live != 0 || len(e.IDs) != 0 {
			t.Errorf("stopped: %+v", e)
		}
		s.start("shop-1-CCC").count(sold, 1).write()
		if s.sums(6); len(s.fields()) != 2 {
			t.Errorf("not folded: %v", s.fields())
		}
	})
}

// A process that was folded while Redis did not hear it counts from what was folded, also if the answer to its last
// write was lost.
func TestFoldedAlive(t *testing.T) {
	onEach(t, func(s *site) {
		a := s.start("shop-1-AAA").count(sold, 3)
		a.write()
		s.silence("shop-1-AAA", 2*time.Minute)
		s.start("shop-1-BBB").count(sold, 10).write()
		s.sums(13)
		a.count(sold, 4).write()
		s.sums(17)
		a.count(refused, 1).write()
		s.sums(18)
	})
}

// Attempts that lead to no sale count while the sale sells.
func TestNoSale(t *testing.T) {
	onEach(t, func(s *site) {
		a := s.start("shop-1-AAA")
		denied := counts.Attempts("refused", "denied")
		at := func(sells bool, n, want int64) {
			t.Helper()
			a.round.Sales[0].Sells = sells
			a.round.All[""][denied] += n
			a.write()
			s.sums(want)
		}
		at(false, 5, 0)
		at(true, 1, 1)
		at(true, 2, 3)
		at(false, 7, 3) // paused
		at(true, 1, 4)
	})
}

// Nothing is noted of a sale that is deleted or moves, and one that is loaded again begins with 0. A Redis that has
// lost the counts gets them again.
func TestDeletedMovedLost(t *testing.T) {
	onEach(t, func(s *site) {
		a := s.start("shop-1-AAA").count(sold, 3)
		a.write()
		ctx := t.Context()
		if err := s.redis.Del(ctx, s.hash).Err(); err != nil {
			t.Fatal(err)
		}
		a.count(sold, 1).write()
		s.sums(4)
		if err := s.redis.HSet(ctx, s.meta, "schema", 1_000_000).Err(); err != nil {
			t.Fatal(err)
		}
		a.count(sold, 1).write()
		s.sums(4)
		s.load(100)
		a.write()
		s.sums(5)
		if err := s.client.Unindex(ctx, id, 100); err != nil {
			t.Fatal(err)
		}
		s.redis.Del(ctx, s.meta)
		a.write()
		if len(s.fields()) > 0 {
			t.Error(s.fields())
		}
		s.load(200)
		if err := s.client.Announce(ctx, []string{id}); err != nil {
			t.Fatal(err)
		}
		a.count(sold, 2).write()
		s.sums(2)
	})
}

// However many processes come and go, Redis keeps a bounded number of fields, and no count is lost.
func TestBound(t *testing.T) {
	onEach(t, func(s *site) {
		const pods = 80
		for i := range pods {
			p := s.start(fmt.Sprintf("shop-%d-AAA", i)).count(sold, 1)
			p.write()
			p.count(refused, 1).stop()
		}
		if s.sums(2 * pods); len(s.fields()) > 65 {
			t.Errorf("%d fields", len(s.fields()))
		}
		// dead ones that were not stopped have no other bound
		for i := range pods {
			edge := fmt.Sprintf("dead-%d-AAA", i)
			s.start(edge).count(sold, 1).write()
			s.silence(edge, time.Hour)
		}
		if s.sums(3 * pods); len(s.fields()) > 65 {
			t.Errorf("%d fields", len(s.fields()))
		}
	})
}

// Processes that live are never folded: where there are too many the next one hears that there is no room.
func TestFull(t *testing.T) {
	onEach(t, func(s *site) {
		for i := range 200 {
			s.start(fmt.Sprintf("shop-%d-AAA", i)).count(sold, 1).write()
		}
		late := s.start("late-AAA").count(sold, 1)
		if full, err := late.try(); err != nil || len(full) != 1 {
			t.Error(full, err)
		}
		s.sums(200)
	})
}

// A write without an answer is made again as it was, so that a fold in between counts it once.
func TestUnanswered(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	o := stocktest.Options(server)
	direct := stocktest.OpenStore(t, o).Shard()
	s := &site{t, direct, server.Client(), direct.CountsKeys(id)[0], direct.CountsKeys(id)[1]}
	s.load(100)
	o.Addresses = []string{proxy.Addr()}
	a := s.start("shop-1-AAA").count(sold, 3)
	a.round.Client = stocktest.OpenStore(t, o).Shard()
	a.write()
	proxy.CutReplies(1, "EVALSHA")
	a.count(sold, 2)
	if _, err := a.try(); err == nil {
		t.Fatal("an answer came")
	}
	s.sums(5)
	s.silence("shop-1-AAA", 2*time.Minute)
	s.start("shop-1-BBB").write()
	proxy.Heal()
	a.count(sold, 1).write()
	a.write()
	s.sums(6)
}
