package mirror_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/ledger/mirror"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// counts is what a mirror has counted.
type counts struct {
	mu    sync.Mutex
	lag   time.Duration
	drift int
}

func (c *counts) MirrorLag(_ string, lag time.Duration) { c.mu.Lock(); c.lag = lag; c.mu.Unlock() }
func (c *counts) NoMirror(string)                       {}
func (c *counts) MirrorDrift(_ string, keys int)        { c.mu.Lock(); c.drift += keys; c.mu.Unlock() }
func (c *counts) drifted() int                          { c.mu.Lock(); defer c.mu.Unlock(); return c.drift }
func (c *counts) behind() bool                          { c.mu.Lock(); defer c.mu.Unlock(); return c.lag > 0 }

var targets = []mirror.Target{{Key: "store_{sku}", Value: "available"}, {Key: "goods_{sku}", Field: "ordered", Value: "taken"}, {Key: "goods_{sku}", Field: "total", Value: "stock"}}

// start runs a mirror until its test ends, or until the function that it returns.
func start(t testing.TB, from mirror.Journals, s *ledgertest.Seller, address string) (*counts, func()) {
	t.Helper()
	return startAt(t, from, s, "redis://"+address+"/3")
}

func startAt(t testing.TB, from mirror.Journals, s *ledgertest.Seller, address string) (*counts, func()) {
	t.Helper()
	c := new(counts)
	m, err := mirror.New(from, s.Store, mirror.Options{Address: address, Sales: []string{"s"}, Targets: targets}, zap.NewNop(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	end := func() { cancel(); running.Wait() }
	t.Cleanup(end)
	return c, end
}

// third is a client of the database that the mirror writes.
func third(t testing.TB, on *redistest.Server) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: on.Addr(), DB: 3})
	t.Cleanup(func() { c.Close() })
	return c
}

// follows waits until the shop's Redis has what the stock says.
func follows(t *testing.T, s *ledgertest.Seller, shop redis.Cmdable) {
	t.Helper()
	ledgertest.Eventually(t, "the shop's Redis follows", func() bool {
		b, err := s.Store.SaleStock(ledgertest.Soon(t), "s")
		if err != nil {
			return false
		}
		left, err := shop.Get(ledgertest.Soon(t), "store_a").Int64()
		goods := shop.HGetAll(ledgertest.Soon(t), "goods_a").Val()
		taken, total := b.Items[0].Stock-b.Items[0].Available, b.Items[0].Stock
		return err == nil && left == b.Items[0].Available && goods["ordered"] == text(taken) && goods["total"] == text(total)
	})
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

// Every change comes to the shop's Redis, whatever was there before.
func TestFollows(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s, own := ledgertest.NewSeller(t, b, 1000), redistest.Start(t)
		shop := third(t, own)
		if err := errors.Join(shop.Set(t.Context(), "store_a", "77", 0).Err(), shop.HSet(t.Context(), "goods_a", "ordered", "x", "name", "shoe").Err()); err != nil {
			t.Fatal(err)
		}
		c, _ := start(t, s.Store.Journal(), s, own.Addr())
		follows(t, s, shop)
		for range 3 {
			s.Sell(5)
			follows(t, s, shop)
		}
		if name := shop.HGet(t.Context(), "goods_a", "name").Val(); name != "shoe" || c.drifted() != 0 {
			t.Errorf("%q, drift %d", name, c.drifted())
		}
	})
}

// A bundle's keys say how many its components make, but not how many were sold.
func TestFollowsBundles(t *testing.T) {
	s, own := ledgertest.NewSeller(t, redistest.Start(t), 1000), redistest.Start(t)
	shop := third(t, own)
	current, err := s.Store.Load(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	file := *current.Sale
	file.Items = append(slices.Clone(file.Items), sale.Item{SKU: "dozen", Components: []sale.Component{{SKU: "a", Units: 12}}})
	if _, err := s.Store.Apply(t.Context(), &file, reservation.ApplyOptions{By: "test"}); err != nil {
		t.Fatal(err)
	}
	before := targets
	targets = append(slices.Clone(targets), mirror.Target{Key: "sold_{sku}", Value: "confirmed"})
	defer func() { targets = before }()
	start(t, s.Store.Journal(), s, own.Addr())
	for range 2 {
		s.Sell(20)
		follows(t, s, shop)
		b, err := s.Store.SaleStock(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		left := b.Items[0].Available / 12
		ledgertest.Eventually(t, "the shop's Redis follows", func() bool {
			goods := shop.HGetAll(ledgertest.Soon(t), "goods_dozen").Val()
			return shop.Get(ledgertest.Soon(t), "store_dozen").Val() == text(left) && goods["total"] == text(b.Items[0].Stock/12) && goods["ordered"] == text(b.Items[0].Stock/12-left)
		})
	}
	if n := shop.Exists(t.Context(), "sold_dozen").Val(); n != 0 || shop.Exists(t.Context(), "sold_a").Val() != 1 {
		t.Errorf("%d keys say how many bundles were sold", n)
	}
}

// Without {region}, the regions of a bundle make no more together than its component without regions does.
func TestFollowsBundlesOfRegions(t *testing.T) {
	s, own := ledgertest.NewSeller(t, redistest.Start(t), 20), redistest.Start(t)
	shop := third(t, own)
	current, err := s.Store.Load(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	file := *current.Sale
	file.Items = append(slices.Clone(file.Items), sale.Item{SKU: "b", Regions: map[string]int64{"n": 6, "s": 9}},
		sale.Item{SKU: "pair", Components: []sale.Component{{SKU: "a", Units: 2}, {SKU: "b", Units: 1}}})
	if _, err := s.Store.Apply(t.Context(), &file, reservation.ApplyOptions{By: "test"}); err != nil {
		t.Fatal(err)
	}
	start(t, s.Store.Journal(), s, own.Addr())
	ledgertest.Eventually(t, "the shop's Redis has what can be sold", func() bool {
		return shop.Get(ledgertest.Soon(t), "store_pair").Val() == "10" && shop.HGet(ledgertest.Soon(t), "goods_pair", "total").Val() == "10"
	})
}

// The keys may lie on the nodes of a cluster.
func TestFollowsInACluster(t *testing.T) {
	s, nodes := ledgertest.NewSeller(t, redistest.Start(t), 1000), redistest.Cluster(t, 2)
	shop := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr()}})
	defer shop.Close()
	if one, other := shop.ClusterKeySlot(t.Context(), "store_a").Val() < 8192, shop.ClusterKeySlot(t.Context(), "goods_a").Val() < 8192; one == other {
		t.Fatal("both keys lie on one node")
	}
	c, _ := startAt(t, s.Store.Journal(), s, "redis+cluster://"+nodes[0].Addr())
	for range 3 {
		s.Sell(5)
		follows(t, s, shop)
	}
	if c.drifted() != 0 {
		t.Errorf("drift %d", c.drifted())
	}
}

// A draft is not mirrored: the shop's own script may still sell by its keys.
func TestDraftIsNotWritten(t *testing.T) {
	s, own := ledgertest.NewSeller(t, redistest.Start(t), 1000), redistest.Start(t)
	shop := third(t, own)
	file := &sale.Sale{ID: "draft", StartsAt: time.Now(), EndsAt: time.Now().Add(time.Hour), Items: []sale.Item{{SKU: "d", Stock: 5}}}
	checked, err := sale.New(*file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Store.Apply(ledgertest.Soon(t), checked, reservation.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	m, err := mirror.New(s.Store.Journal(), s.Store, mirror.Options{Address: "redis://" + own.Addr() + "/3", Targets: []mirror.Target{{Key: "{sale}:{sku}", Value: "available"}}}, zap.NewNop(), new(counts))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { m.Run(ctx); close(done) }()
	ledgertest.Eventually(t, "the open sale is there", func() bool { return shop.Get(ledgertest.Soon(t), "s:a").Val() == "1000" })
	ledgertest.Eventually(t, "the draft has its edge", func() bool {
		state, _, err := s.Store.Journal().Mirror(ledgertest.Soon(t), "draft")
		return err == nil && state != nil
	})
	if n := shop.Exists(t.Context(), "draft:d").Val(); n != 0 {
		t.Error("the draft was written")
	}
	if err := s.Store.SetStatus(ledgertest.Soon(t), "draft", sale.Open, "me"); err != nil {
		t.Fatal(err)
	}
	ledgertest.Eventually(t, "it is written once it is open", func() bool { return shop.Get(ledgertest.Soon(t), "draft:d").Val() == "5" })
	cancel()
	<-done
}

// dead are journals of an edge that dies: it gives no lease up.
type dead struct{ *journal.Journal }

func (d dead) AcquireMirror(ctx context.Context, sale, owner string, forHow time.Duration, state *journal.MirrorState) (bool, error) {
	if forHow == 0 {
		return false, errors.New("dead")
	}
	return d.Journal.AcquireMirror(ctx, sale, owner, forHow, state)
}

// One edge writes at a time. Another goes on when it ends, as in a reload, and when it dies.
func TestAnotherEdgeGoesOn(t *testing.T) {
	for name, of := range map[string]func(*journal.Journal) mirror.Journals{
		"ends": func(j *journal.Journal) mirror.Journals { return j },
		"dies": func(j *journal.Journal) mirror.Journals { return dead{j} },
	} {
		t.Run(name, func(t *testing.T) {
			s, own := ledgertest.NewSeller(t, redistest.Start(t), 1000), redistest.Start(t)
			shop := third(t, own)
			_, end := start(t, of(s.Store.Journal()), s, own.Addr())
			follows(t, s, shop)
			proxy := redistest.NewProxy(t, own.Addr()) // what the second edge writes goes through it
			second, _ := start(t, s.Store.Journal(), s, proxy.Addr())
			s.Sell(5)
			follows(t, s, shop)
			if n := proxy.Requests("getset", "hset"); n != 0 {
				t.Errorf("the second edge has written %d times while the first had the lease", n)
			}
			end()
			s.Sell(5)
			follows(t, s, shop)
			if n := proxy.Requests("getset", "hset"); n == 0 || second.drifted() != 0 {
				t.Errorf("the second edge has written %d times, drift %d", n, second.drifted())
			}
		})
	}
}

// While the shop's Redis is away the sale goes on, and its last numbers are there when it is
// back, even if it comes back empty.
func TestShopRedisIsAway(t *testing.T) {
	s, own := ledgertest.NewSeller(t, redistest.Start(t), 1000), redistest.Start(t)
	shop := third(t, own)
	c, _ := start(t, s.Store.Journal(), s, own.Addr())
	follows(t, s, shop)
	own.Kill()
	s.Sell(5)
	ledgertest.Eventually(t, "it is behind", c.behind)
	ledgertest.Eventually(t, "the state says so", func() bool {
		state := stateOf(t, s)
		return state.Error != "" && !state.Behind.IsZero()
	})
	s.Sell(5)
	own.Restart()
	follows(t, s, shop)
	ledgertest.Eventually(t, "the state is well", func() bool { return stateOf(t, s).Error == "" && !c.behind() })
}

func stateOf(t *testing.T, s *ledgertest.Seller) journal.MirrorState {
	t.Helper()
	state, _, err := s.Store.Journal().Mirror(ledgertest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	if state == nil {
		return journal.MirrorState{}
	}
	return *state
}

// What something else writes is noticed, told, and set right again.
func TestDrift(t *testing.T) {
	s, own := ledgertest.NewSeller(t, redistest.Start(t), 1000), redistest.Start(t)
	shop := third(t, own)
	c, _ := start(t, s.Store.Journal(), s, own.Addr())
	follows(t, s, shop)
	if err := shop.Decr(t.Context(), "store_a").Err(); err != nil {
		t.Fatal(err)
	}
	follows(t, s, shop)
	ledgertest.Eventually(t, "it is told", func() bool {
		state := stateOf(t, s)
		return c.drifted() == 1 && state.Drift == 1 && state.DriftKey == `"store_a"` && state.Had == `"999"` && state.Wrote == "1000"
	})
}

// A key that is no number is left alone, and told.
func TestHashIsNotOverwritten(t *testing.T) {
	s, own := ledgertest.NewSeller(t, redistest.Start(t), 1000), redistest.Start(t)
	shop := third(t, own)
	if err := shop.HSet(t.Context(), "store_a", "left", 5).Err(); err != nil {
		t.Fatal(err)
	}
	start(t, s.Store.Journal(), s, own.Addr())
	ledgertest.Eventually(t, "it is told", func() bool { return strings.Contains(stateOf(t, s).Error, `"store_a": WRONGTYPE`) })
	if have := shop.HGet(t.Context(), "store_a", "left").Val(); have != "5" {
		t.Errorf("the hash has %q", have)
	}
	ledgertest.Eventually(t, "the other keys are written", func() bool { return shop.HGet(ledgertest.Soon(t), "goods_a", "total").Val() == "1000" })
}

// What the shop keeps under a key is no number, and is left alone with its time to live; the error
// says what to do. The numbers of other keys are written.
func TestTextIsNotOverwritten(t *testing.T) {
	for name, value := range map[string]string{
		"JSON": `{"stock":5}`, "a fraction": "1.5", "a word": "many", "a long text": strings.Repeat("x", 1000), "a number with more": "12345678901234567890x",
	} {
		t.Run(name, func(t *testing.T) {
			s, own := ledgertest.NewSeller(t, redistest.Start(t), 1000), redistest.Start(t)
			shop := third(t, own)
			if err := shop.Set(t.Context(), "store_a", value, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
			poll := polls(t, s.Store.Journal(), s, own.Addr())
			for range 2 { // a key that was refused is not known afterwards
				s.Sell(1)
				if got := poll(); got != look {
					t.Errorf("the next look is after %v", got)
				}
			}
			if have, lives := shop.Get(t.Context(), "store_a").Val(), shop.TTL(t.Context(), "store_a").Val(); have != value || lives <= 0 {
				t.Errorf("the key has %.80q, and lives for %v", have, lives)
			}
			if says := stateOf(t, s).Error; !strings.HasPrefix(says, `the key "store_a" has `) || !strings.Contains(says, "give the mirror another key, or delete this one") {
				t.Errorf("the state says %q", says)
			}
			if total := shop.HGet(t.Context(), "goods_a", "total").Val(); total != "1000" {
				t.Errorf("another key has %q", total)
			}
			if err := shop.Del(t.Context(), "store_a").Err(); err != nil {
				t.Fatal(err)
			}
			ledgertest.Eventually(t, "it is written once it is free", func() bool {
				poll()
				b, err := s.Store.SaleStock(ledgertest.Soon(t), "s")
				return err == nil && shop.Get(ledgertest.Soon(t), "store_a").Val() == text(b.Items[0].Available) && stateOf(t, s).Error == ""
			})
		})
	}
}

func TestOptions(t *testing.T) {
	const at = "redis://:s3cret@shop/0"
	one := []string{"s"}
	for _, c := range []struct {
		in   mirror.Options
		says string
	}{
		{mirror.Options{Address: "s3cret", Sales: one, Targets: targets}, "it is no address of a Redis"},
		{mirror.Options{Address: "redis://:s3cret@h:x/", Sales: one, Targets: targets}, "it is no address of a Redis"},
		{mirror.Options{Address: at, Sales: []string{"A B"}, Targets: targets}, `"A B" is no id of a sale`},
		{mirror.Options{Address: at, Sales: one}, "it has no key"},
		{mirror.Options{Address: at, Targets: targets}, "has no {sale}"},
		{mirror.Options{Address: at, Sales: []string{"s", "t"}, Targets: targets}, "has no {sale}"},
		{mirror.Options{Address: at, Sales: one, Targets: []mirror.Target{{Key: "store", Value: "stock"}}}, "has no {sku}"},
		{mirror.Options{Address: at, Sales: one, Targets: []mirror.Target{{Key: "{sku", Value: "stock"}}}, "a { without a }"},
		{mirror.Options{Address: at, Sales: one, Targets: []mirror.Target{{Key: "{buyer}{sku}", Value: "stock"}}}, "has the placeholder {buyer}"},
		{mirror.Options{Address: at, Sales: one, Targets: []mirror.Target{{Key: "{sku}", Value: "left"}}}, `there is no number "left": there are available, taken, confirmed, stock`},
		{mirror.Options{Address: at, Sales: one, Targets: []mirror.Target{{Key: "{sku}", Value: "stock"}, {Key: "{sku}", Value: "taken"}}}, "is written twice"},
		{mirror.Options{Address: at, Sales: one, Targets: []mirror.Target{{Key: "{sku}", Value: "stock"}, {Key: "{sku}", Field: "x", Value: "taken"}}}, "is written twice"},
	} {
		if err := c.in.Validate(); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%+v: %v, it should say %q", c.in, err, c.says)
		}
	}
}
