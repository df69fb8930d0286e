package reservation_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// A Redis that would evict keys sells nothing, until it is put right.
func TestEviction(t *testing.T) {
	s := redistest.Start(t, redistest.Config("maxmemory-policy allkeys-lru"))
	e := stocktest.NewEdge(t, stocktest.Options(s), edge.Options{})
	err := e.Refresh(stocktest.Soon(t))
	if !errors.Is(err, shard.ErrMemoryPolicy) || !errors.Is(e.Ready(), shard.ErrMemoryPolicy) {
		t.Errorf("refresh says %v, ready %v, want %v", err, e.Ready(), shard.ErrMemoryPolicy)
	}
	for _, word := range []string{"allkeys-lru", "noeviction"} {
		if !strings.Contains(e.Ready().Error(), word) {
			t.Errorf("%q does not name %s", e.Ready(), word)
		}
	}
	if err := s.Client().ConfigSet(stocktest.Soon(t), "maxmemory-policy", "noeviction").Err(); err != nil {
		t.Fatal(err)
	}
	if err := e.Refresh(stocktest.Soon(t)); err != nil || e.Ready() != nil {
		t.Errorf("put right, refresh says %v, ready %v", err, e.Ready())
	}
}

// An edge that is older than the data changes nothing.
func TestNewerSchema(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e, ops := stocktest.WithHolds(t, stocktest.Options(b))
		delete(ops, "apply") // of another sale
		c := b.Client()
		if err := c.HSet(stocktest.Soon(t), e.Store.Shard().ShardKeys("s")[0], "schema", lua.Schema+1).Err(); err != nil {
			t.Fatal(err)
		}
		before := stocktest.Balanced(t, c, e.Store, "s")
		for name, op := range ops {
			if err := op(stocktest.Soon(t), e); !errors.Is(err, shard.ErrNewerSchema) {
				t.Errorf("%s fails with %v, want %v", name, err, shard.ErrNewerSchema)
			}
		}
		if _, err := e.ApplyUnlessLost(stocktest.Soon(t), stocktest.OpenSale("s", 4), reservation.ApplyOptions{}); !errors.Is(err, shard.ErrNewerSchema) {
			t.Errorf("apply fails with %v, want %v", err, shard.ErrNewerSchema)
		}
		if err := stocktest.Balanced(t, c, e.Store, "s").Differs(before); err != nil {
			t.Errorf("something has changed: %v", err)
		}
	})
}

// counted is under which name a buyer is counted.
func counted(t *testing.T, b redistest.Backend, e *edge.Edge) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(stocktest.Balanced(t, b.Client(), e.Store, "s").Limits))
}

// Two edges that sign with keys of their own do not sell together: the shop would
// refuse the tokens of one of them.
func TestForeignKey(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		first := stocktest.Selling(t, stocktest.Options(b), 3)
		second := stocktest.NewEdge(t, stocktest.Options(b), edge.Options{Keys: []shard.SigningKey{stocktest.Key("other")}})
		err := second.Refresh(stocktest.Soon(t))
		if !errors.Is(err, shard.ErrForeignKey) || !errors.Is(second.Ready(), shard.ErrForeignKey) {
			t.Fatalf("refresh says %v, ready %v, want %v", err, second.Ready(), shard.ErrForeignKey)
		}
		for _, word := range []string{"key main", "storage"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q does not say %q", err, word)
			}
		}
		if err := first.Refresh(stocktest.Soon(t)); err != nil || first.Ready() != nil {
			t.Errorf("the first edge refreshes with %v, ready %v", err, first.Ready())
		}
		if got := first.PublicKeys(); len(got) != 1 || !strings.Contains(got[0], "main") {
			t.Errorf("the public keys are %v", got)
		}
	})
}

// Keys are rotated one step at a time, while edges sell: every edge counts a buyer
// under the same name, and knows every key that may sign.
func TestKeyRotation(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		first := stocktest.Selling(t, stocktest.Options(b), 100, stocktest.PerBuyer(100))
		stocktest.MustHold(t, first, "r", "Ann", 1)
		want := counted(t, b, first)
		old, next := stocktest.Key("main"), stocktest.Key("next")
		for _, step := range []struct {
			name string
			keys []shard.SigningKey
		}{
			{"old", []shard.SigningKey{old}},
			{"old, next", []shard.SigningKey{old, next}},
			{"old again, while others know the next", []shard.SigningKey{old}},
			{"next, old", []shard.SigningKey{next, old}},
			{"old, next, while others sign with the next", []shard.SigningKey{old, next}},
			{"next, old again", []shard.SigningKey{next, old}},
			{"next", []shard.SigningKey{next}},
		} {
			e := stocktest.NewEdge(t, stocktest.Options(b), edge.Options{Keys: step.keys})
			if err := e.Refresh(stocktest.Soon(t)); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			stocktest.MustHold(t, e, step.name, "Ann", 1)
			if got := counted(t, b, e); !slices.Equal(got, want) {
				t.Fatalf("%s: the buyer is counted as %v, before as %v", step.name, got, want)
			}
			for _, k := range step.keys {
				if !slices.Contains(e.PublicKeys(), k.JWK) {
					t.Errorf("%s: the public keys are %v, without %s", step.name, e.PublicKeys(), k.KID)
				}
			}
		}
		late := stocktest.NewEdge(t, stocktest.Options(b), edge.Options{Keys: []shard.SigningKey{old}})
		if err := late.Refresh(stocktest.Soon(t)); !errors.Is(err, shard.ErrForeignKey) {
			t.Errorf("an edge that missed the rotation gets %v, want %v", err, shard.ErrForeignKey)
		}
	})
}

// An edge that dies while it brings a new key leaves the old one in force: the others
// could not find the secret with the new one yet.
func TestInterruptedRotation(t *testing.T) {
	f := stocktest.NewFaulty(t, stocktest.Long)
	old, next := stocktest.Key("main"), stocktest.Key("next")
	o := stocktest.At(f.Proxy.Addr(), stocktest.Long)
	e := stocktest.NewEdge(t, o, edge.Options{Keys: []shard.SigningKey{next, old}})
	f.Proxy.CutReplies(1, "EVALSHA")
	if err := e.Refresh(stocktest.Soon(t)); !errors.Is(err, shard.ErrUnavailable) || f.Proxy.CutsLeft() != 0 {
		t.Fatalf("refresh says %v with %d cuts left, want a lost reply", err, f.Proxy.CutsLeft())
	}
	for name, test := range map[string]struct {
		keys []shard.SigningKey
		want error
	}{
		"the old":       {[]shard.SigningKey{old}, nil},
		"only the next": {[]shard.SigningKey{next}, shard.ErrForeignKey},
		"both":          {[]shard.SigningKey{old, next}, nil},
	} {
		e := stocktest.NewEdge(t, o, edge.Options{Keys: test.keys})
		if err := e.Refresh(stocktest.Soon(t)); !errors.Is(err, test.want) {
			t.Errorf("with %s key refresh says %v, want %v", name, err, test.want)
		}
	}
}

// Edges that begin at the same moment agree on one secret.
func TestEdgesBeginTogether(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		stocktest.Load(t, stocktest.OpenStore(t, stocktest.Options(b)), stocktest.OpenSale("s", 100, stocktest.PerBuyer(100)))
		var wg sync.WaitGroup
		edges := make([]*edge.Edge, 8)
		for i := range edges {
			edges[i] = stocktest.NewEdge(t, stocktest.Options(b), edge.Options{})
			wg.Go(func() {
				if err := edges[i].Refresh(stocktest.Soon(t)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for i, e := range edges {
			stocktest.MustHold(t, e, fmt.Sprint("r", i), "Ann", 1)
		}
		if got := counted(t, b, edges[0]); len(got) != 1 {
			t.Errorf("one buyer is counted as %v", got)
		}
	})
}

// What edges share cannot be opened by who reads Redis, and a damaged or lost
// secret is said, not replaced: purchase limits would start over.
func TestSecretDamaged(t *testing.T) {
	tests := map[string]struct {
		change func(sealed string) string // empty: it is gone
		want   string
	}{
		"gone":        {func(string) string { return "" }, "is gone"},
		"cut short":   {func(s string) string { return s[:10] }, "damaged"},
		"not base64":  {func(s string) string { return "!" + s }, "damaged"},
		"other bytes": {func(s string) string { return "AAAA" + s[4:] }, "damaged"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := redistest.Embedded(t)
			e, c := stocktest.Ready(t, stocktest.Options(b)), b.Client()
			sealed, err := c.HGet(stocktest.Soon(t), e.Store.Shard().SecretKey(), "secret:main").Result()
			if err != nil {
				t.Fatal(err)
			}
			if changed := test.change(sealed); changed == "" {
				err = c.HDel(stocktest.Soon(t), e.Store.Shard().SecretKey(), "secret:main").Err()
			} else {
				err = c.HSet(stocktest.Soon(t), e.Store.Shard().SecretKey(), "secret:main", changed).Err()
			}
			if err != nil {
				t.Fatal(err)
			}
			fresh := stocktest.NewEdge(t, stocktest.Options(b), edge.Options{})
			if err := fresh.Refresh(stocktest.Soon(t)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("refresh says %v, want that it %s", err, test.want)
			}
			if fresh.Ready() == nil {
				t.Error("the edge sells")
			}
		})
	}
}

// One sale that this edge cannot read stops that sale, not the others.
func TestUnreadableSale(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Ready(t, stocktest.Options(b))
		stocktest.Load(t, e.Store, stocktest.OpenSale("good", 1))
		stocktest.Load(t, e.Store, stocktest.OpenSale("bad", 1))
		if err := b.Client().HSet(stocktest.Soon(t), e.Store.Shard().ShardKeys("bad")[0], "doc", `{"id":"bad","from":"the future"}`, "version", "99").Err(); err != nil {
			t.Fatal(err)
		}
		if err := e.Refresh(stocktest.Soon(t)); err != nil {
			t.Fatal(err)
		}
		if good, ok := e.Catalogue().Sale("good"); !ok || good.RefusalAt(time.Now()) != nil {
			t.Errorf("the other sale does not sell: %v", ok)
		}
		bad, ok := e.Catalogue().Sale("bad")
		if !ok || bad.RefusalAt(time.Now()) == nil || bad.RefusalAt(time.Now()).Reason != sale.Unavailable {
			t.Errorf("the sale that cannot be read is not unavailable: %v", ok)
		}
	})
}
