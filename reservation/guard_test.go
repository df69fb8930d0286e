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

	"github.com/stockgate/stockgate/internal/redistest"
	"github.com/stockgate/stockgate/lua"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

// A Redis that would evict keys sells nothing, until it is put right.
func TestEviction(t *testing.T) {
	s := redistest.Start(t, redistest.Config("maxmemory-policy allkeys-lru"))
	e := newEdge(t, options(s), reservation.EdgeOptions{})
	err := e.Refresh(soon(t))
	if !errors.Is(err, reservation.ErrMemoryPolicy) || !errors.Is(e.Ready(), reservation.ErrMemoryPolicy) {
		t.Errorf("refresh says %v, ready %v, want %v", err, e.Ready(), reservation.ErrMemoryPolicy)
	}
	for _, word := range []string{"allkeys-lru", "noeviction"} {
		if !strings.Contains(e.Ready().Error(), word) {
			t.Errorf("%q does not name %s", e.Ready(), word)
		}
	}
	if err := s.Client().ConfigSet(soon(t), "maxmemory-policy", "noeviction").Err(); err != nil {
		t.Fatal(err)
	}
	if err := e.Refresh(soon(t)); err != nil || e.Ready() != nil {
		t.Errorf("put right, refresh says %v, ready %v", err, e.Ready())
	}
}

// An edge that is older than the data changes nothing.
func TestNewerSchema(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e, ops := withHolds(t, options(b))
		delete(ops, "apply") // of another sale
		c := b.Client()
		if err := c.HSet(soon(t), e.Store.ShardKeys("s")[0], "schema", lua.Schema+1).Err(); err != nil {
			t.Fatal(err)
		}
		before := balanced(t, c, e.Store, "s")
		for name, op := range ops {
			if err := op(soon(t), e); !errors.Is(err, reservation.ErrNewerSchema) {
				t.Errorf("%s fails with %v, want %v", name, err, reservation.ErrNewerSchema)
			}
		}
		if _, err := e.ApplyUnlessLost(soon(t), openSale("s", 4), reservation.ApplyOptions{}); !errors.Is(err, reservation.ErrNewerSchema) {
			t.Errorf("apply fails with %v, want %v", err, reservation.ErrNewerSchema)
		}
		if err := balanced(t, c, e.Store, "s").differs(before); err != nil {
			t.Errorf("something has changed: %v", err)
		}
	})
}

// counted is under which name a buyer is counted.
func counted(t *testing.T, b redistest.Backend, e *reservation.Edge) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(balanced(t, b.Client(), e.Store, "s").limits))
}

// Two edges that sign with keys of their own do not sell together: the shop would
// refuse the tokens of one of them.
func TestForeignKey(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		first := selling(t, options(b), 3)
		second := newEdge(t, options(b), reservation.EdgeOptions{Keys: []reservation.Key{key("other")}})
		err := second.Refresh(soon(t))
		if !errors.Is(err, reservation.ErrForeignKey) || !errors.Is(second.Ready(), reservation.ErrForeignKey) {
			t.Fatalf("refresh says %v, ready %v, want %v", err, second.Ready(), reservation.ErrForeignKey)
		}
		for _, word := range []string{"key main", "storage"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q does not say %q", err, word)
			}
		}
		if err := first.Refresh(soon(t)); err != nil || first.Ready() != nil {
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
		first := selling(t, options(b), 100, perBuyer(100))
		mustHold(t, first, "r", "Ann", 1)
		want := counted(t, b, first)
		old, next := key("main"), key("next")
		for _, step := range []struct {
			name string
			keys []reservation.Key
		}{
			{"old", []reservation.Key{old}},
			{"old, next", []reservation.Key{old, next}},
			{"old again, while others know the next", []reservation.Key{old}},
			{"next, old", []reservation.Key{next, old}},
			{"old, next, while others sign with the next", []reservation.Key{old, next}},
			{"next, old again", []reservation.Key{next, old}},
			{"next", []reservation.Key{next}},
		} {
			e := newEdge(t, options(b), reservation.EdgeOptions{Keys: step.keys})
			if err := e.Refresh(soon(t)); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			mustHold(t, e, step.name, "Ann", 1)
			if got := counted(t, b, e); !slices.Equal(got, want) {
				t.Fatalf("%s: the buyer is counted as %v, before as %v", step.name, got, want)
			}
			for _, k := range step.keys {
				if !slices.Contains(e.PublicKeys(), k.JWK) {
					t.Errorf("%s: the public keys are %v, without %s", step.name, e.PublicKeys(), k.KID)
				}
			}
		}
		late := newEdge(t, options(b), reservation.EdgeOptions{Keys: []reservation.Key{old}})
		if err := late.Refresh(soon(t)); !errors.Is(err, reservation.ErrForeignKey) {
			t.Errorf("an edge that missed the rotation gets %v, want %v", err, reservation.ErrForeignKey)
		}
	})
}

// An edge that dies while it brings a new key leaves the old one in force: the others
// could not find the secret with the new one yet.
func TestInterruptedRotation(t *testing.T) {
	f := newFaulty(t, long)
	old, next := key("main"), key("next")
	o := at(f.proxy.Addr(), long)
	e := newEdge(t, o, reservation.EdgeOptions{Keys: []reservation.Key{next, old}})
	f.proxy.CutReplies(1, "EVALSHA")
	if err := e.Refresh(soon(t)); !errors.Is(err, reservation.ErrUnavailable) || f.proxy.CutsLeft() != 0 {
		t.Fatalf("refresh says %v with %d cuts left, want a lost reply", err, f.proxy.CutsLeft())
	}
	for name, test := range map[string]struct {
		keys []reservation.Key
		want error
	}{
		"the old":       {[]reservation.Key{old}, nil},
		"only the next": {[]reservation.Key{next}, reservation.ErrForeignKey},
		"both":          {[]reservation.Key{old, next}, nil},
	} {
		e := newEdge(t, o, reservation.EdgeOptions{Keys: test.keys})
		if err := e.Refresh(soon(t)); !errors.Is(err, test.want) {
			t.Errorf("with %s key refresh says %v, want %v", name, err, test.want)
		}
	}
}

// Edges that begin at the same moment agree on one secret.
func TestEdgesBeginTogether(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		load(t, openStore(t, options(b)), openSale("s", 100, perBuyer(100)))
		var wg sync.WaitGroup
		edges := make([]*reservation.Edge, 8)
		for i := range edges {
			edges[i] = newEdge(t, options(b), reservation.EdgeOptions{})
			wg.Go(func() {
				if err := edges[i].Refresh(soon(t)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for i, e := range edges {
			mustHold(t, e, fmt.Sprint("r", i), "Ann", 1)
		}
		if got := counted(t, b, edges[0]); len(got) != 1 {
			t.Errorf("one buyer is counted as %v", got)
		}
	})
}

// What edges share cannot be opened by who reads Redis, and a damaged or lost
// secret is said, not replaced: purchase limits would begin anew.
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
			e, c := ready(t, options(b)), b.Client()
			sealed, err := c.HGet(soon(t), e.Store.SecretKey(), "secret:main").Result()
			if err != nil {
				t.Fatal(err)
			}
			if changed := test.change(sealed); changed == "" {
				err = c.HDel(soon(t), e.Store.SecretKey(), "secret:main").Err()
			} else {
				err = c.HSet(soon(t), e.Store.SecretKey(), "secret:main", changed).Err()
			}
			if err != nil {
				t.Fatal(err)
			}
			fresh := newEdge(t, options(b), reservation.EdgeOptions{})
			if err := fresh.Refresh(soon(t)); err == nil || !strings.Contains(err.Error(), test.want) {
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
		e := ready(t, options(b))
		load(t, e.Store, openSale("good", 1))
		load(t, e.Store, openSale("bad", 1))
		if err := b.Client().HSet(soon(t), e.Store.ShardKeys("bad")[0], "doc", `{"id":"bad","from":"the future"}`, "version", "99").Err(); err != nil {
			t.Fatal(err)
		}
		if err := e.Refresh(soon(t)); err != nil {
			t.Fatal(err)
		}
		if good, ok := e.Catalogue().Sale("good"); !ok || good.Verdict(time.Now()) != nil {
			t.Errorf("the other sale does not sell: %v", ok)
		}
		bad, ok := e.Catalogue().Sale("bad")
		if !ok || bad.Verdict(time.Now()) == nil || bad.Verdict(time.Now()).Reason != sale.Unavailable {
			t.Errorf("the sale that cannot be read is not unavailable: %v", ok)
		}
	})
}
