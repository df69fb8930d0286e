package list_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters/list"
)

// keeper keeps a list in memory and counts how often it is asked.
type keeper struct {
	mu     sync.Mutex
	keys   map[list.Key]bool
	asked  atomic.Int64
	broken atomic.Pointer[error] // what it answers
	away   atomic.Pointer[error] // why it is not ready
}

func newKeeper() *keeper { return &keeper{keys: make(map[list.Key]bool)} }

func (k *keeper) Ready() error {
	if e := k.away.Load(); e != nil {
		return *e
	}
	return nil
}

func (k *keeper) HashText(kind, value string) list.Key {
	sum := sha256.Sum256([]byte(kind + "\x00" + value))
	return list.Key(sum[:16])
}

func (k *keeper) HashPrefix(p netip.Prefix) list.Key {
	a := p.Addr().As16()
	room := [18]byte{16: byte(p.Addr().BitLen()), 17: byte(p.Bits())}
	copy(room[:], a[:])
	sum := sha256.Sum256(room[:])
	return list.Key(sum[:16])
}

func (k *keeper) HasAny(_ context.Context, _ time.Time, keys []list.Key) (bool, error) {
	k.asked.Add(1)
	if e := k.broken.Load(); e != nil {
		return false, *e
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		if k.keys[key] {
			return true, nil
		}
	}
	return false, nil
}

// add keeps an entry and returns its key.
func (k *keeper) add(t testing.TB, text string) list.Key {
	t.Helper()
	e, err := list.Parse(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	key := k.HashText(e.Kind, e.Value)
	if e.Kind == list.IP {
		key = k.HashPrefix(e.Prefix)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys[key] = true
	return key
}

func TestHashed(t *testing.T) {
	k := newKeeper()
	m := list.NewHashed(k)
	expect := func(kind, value string, want bool, asked int64) {
		t.Helper()
		before := k.asked.Load()
		if got := holds(t, &m.List, kind, value); got != want || k.asked.Load()-before != asked {
			t.Errorf("%s %q: %v, asked %d times, want %v, %d", kind, value, got, k.asked.Load()-before, want, asked)
		}
	}
	alice, net8, net48 := k.add(t, "buyer:alice"), k.add(t, "10.0.0.0/8"), k.add(t, "2001:db8:1::/48")
	expect(list.Buyer, "alice", false, 0) // it has not been told of any form

	m.Forms([]string{"buyer", "ip4/8", "ip6/48", "ip4/33", "ip6/129", "ip5/1", "fax", ""})
	expect(list.Buyer, "alice", true, 1) // without a filter every lookup asks the keeper
	expect(list.Buyer, "bob", false, 1)
	expect(list.Phone, "alice", false, 0)
	expect(list.IP, "10.1.1.1", true, 1)
	expect(list.IP, "2001:db8:1::1", true, 1)

	m.Begin(10)
	m.Fill([]list.Key{alice, net8})
	expect(list.Buyer, "bob", false, 1) // still without
	m.Add([]list.Key{net48})
	m.Swap()
	if s := m.Stats(); s.Entries != 3 || s.Filter == 0 {
		t.Errorf("stats %+v, want 3 entries", s)
	}
	expect(list.Buyer, "alice", true, 1)
	expect(list.Buyer, "bob", false, 0)
	expect(list.IP, "10.1.1.1", true, 1)
	expect(list.IP, "11.1.1.1", false, 0)
	expect(list.IP, "2001:db8:1::1", true, 1)
	expect(list.IP, "2001:db8:2::1", false, 0)

	bob := k.add(t, "buyer:bob")
	m.Begin(10)
	m.Add([]list.Key{bob}) // into both
	expect(list.Buyer, "bob", true, 1)
	m.Fill([]list.Key{net8, net48})
	m.Swap()
	expect(list.Buyer, "bob", true, 1)
	expect(list.Buyer, "alice", false, 0) // was not filled in again

	m.Drop()
	expect(list.Buyer, "alice", true, 1)
	if s := m.Stats(); s != (list.Stats{}) {
		t.Errorf("stats %+v without a filter", s)
	}
}

// TestFalsePositives floods a filter that is far too small: no unlisted value is found,
// and no listed one is missed.
func TestFalsePositives(t *testing.T) {
	k := newKeeper()
	m := list.NewHashed(k)
	m.Forms([]string{"any"})
	m.Begin(1)
	m.Swap()
	for i := range 20_000 {
		m.Add([]list.Key{k.add(t, fmt.Sprint("member", i))})
	}
	for i := range 20_000 {
		if !holds(t, &m.List, list.Any, fmt.Sprint("member", i)) {
			t.Fatalf("member %d was missed", i)
		}
	}
	k.asked.Store(0)
	for i := range 20_000 {
		if holds(t, &m.List, list.Any, fmt.Sprint("other", i)) {
			t.Fatalf("other %d was found", i)
		}
	}
	if k.asked.Load() < 10_000 {
		t.Errorf("only %d of 20,000 were false positives: that proves little", k.asked.Load())
	}
}

func TestHashedFails(t *testing.T) {
	k := newKeeper()
	m := list.NewHashed(k)
	m.Forms([]string{"any", "ip4/32"})
	trouble := errors.New("it burns")
	k.broken.Store(&trouble)
	for _, c := range [][2]string{{list.Any, "alice"}, {list.IP, "10.0.0.1"}} {
		if yes, err := m.Has(context.Background(), c[0], c[1]); yes || err != trouble {
			t.Errorf("%s: %v, %v, want what the keeper says", c[0], yes, err)
		}
	}
	m.Begin(1)
	m.Swap()
	away := errors.New("it is away")
	k.away.Store(&away)
	for _, c := range [][2]string{{list.Any, "alice"}, {list.IP, "10.0.0.1"}} {
		if yes, err := m.Has(context.Background(), c[0], c[1]); yes || err != away {
			t.Errorf("%s: %v, %v, want why the keeper is not ready", c[0], yes, err)
		}
	}
}

// TestLookupsWhileFilling adds and rebuilds while others look up: who was added
// before a lookup is never missed.
func TestLookupsWhileFilling(t *testing.T) {
	const entries = 5000
	k := newKeeper()
	m := list.NewHashed(k)
	m.Forms([]string{"any"})
	var added atomic.Int64
	var lookups sync.WaitGroup
	for range 4 {
		lookups.Go(func() {
			for {
				n := added.Load()
				for i := max(0, n-20); i < n; i++ {
					if yes, err := m.Has(context.Background(), list.Any, fmt.Sprint(i)); !yes || err != nil {
						t.Errorf("%d of %d: %v, %v", i, n, yes, err)
						return
					}
				}
				if yes, err := m.Has(context.Background(), list.Any, "unlisted"); yes || err != nil {
					t.Errorf("unlisted: %v, %v", yes, err)
					return
				}
				if n == entries {
					return
				}
			}
		})
	}
	var all []list.Key
	for i := range entries {
		key := k.add(t, fmt.Sprint(i))
		all = append(all, key)
		m.Add([]list.Key{key})
		switch i % 500 {
		case 100:
			m.Begin(i)
			m.Fill(all)
		case 200:
			m.Swap()
		case 400:
			m.Drop()
		}
		added.Store(int64(i + 1))
	}
	lookups.Wait()
}
