package ledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// older are the journals of a store as they will be some time later.
type older struct {
	*journal.Journal
	by time.Duration
}

func (o *older) Head(ctx context.Context, sale string) (journal.Head, error) {
	h, err := o.Journal.Head(ctx, sale)
	h.Now = h.Now.Add(o.by)
	if h.Behind() > 0 {
		h.Age += o.by
	}
	return h, err
}

func openStore(t *testing.T, addr string) *reservation.Store {
	t.Helper()
	s, err := reservation.Open(shard.Options{Addresses: []string{addr}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// dump is all that a server has, by key.
func dump(t *testing.T, c *redis.Client) map[string]string {
	t.Helper()
	ctx, all := ledgertest.Soon(t), map[string]string{}
	for _, key := range c.Keys(ctx, "*").Val() {
		var err error
		if all[key], err = c.Dump(ctx, key).Result(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// restore makes a server have what dump was told, and nothing else.
func restore(t *testing.T, c *redis.Client, all map[string]string) {
	t.Helper()
	ctx := ledgertest.Soon(t)
	if err := c.FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	for key, text := range all {
		if err := c.Restore(ctx, key, 0, text).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// A journal is kept by its length and its age, and never trimmed beyond the ledger.
func TestKeep(t *testing.T) {
	server := redistest.Start(t)
	epoch, last := ledgertest.Fill(t, server.Client(), "s", 20_000)
	filled := dump(t, server.Client())
	for name, test := range map[string]struct {
		keep  ledger.Retention
		later time.Duration
		acked int64
		first int64 // what is left begins there; the journal has 40,002 entries
	}{
		"all":                         {ledger.Retention{For: time.Hour, Most: 50_000}, 0, 0, 1},
		"by length":                   {ledger.Retention{For: time.Hour, Most: 25_000}, 0, 0, 15_003},
		"by age":                      {ledger.Retention{For: time.Hour, Most: 50_000}, 2 * time.Hour, 0, 30_003},
		"not before the ledger":       {ledger.Retention{For: time.Hour, Most: 25_000, Ledger: true}, 2 * time.Hour, 9_000, 9_001},
		"behind the ledger, by age":   {ledger.Retention{For: time.Hour, Most: 50_000, Ledger: true}, 2 * time.Hour, 40_002, 30_003},
		"behind the ledger, by count": {ledger.Retention{For: time.Hour, Most: 25_000, Ledger: true}, 0, 40_002, 15_003},
		"before a ledger was there":   {ledger.Retention{For: time.Hour, Most: 25_000, Ledger: true}, 2 * time.Hour, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			restore(t, server.Client(), filled)
			store := openStore(t, server.Addr())
			ctx := ledgertest.Soon(t)
			if test.acked > 0 {
				if err := store.Journal().Acknowledge(ctx, "s", epoch, test.acked); err != nil {
					t.Fatal(err)
				}
			}
			h, err := store.Journal().Head(ctx, "s")
			if err != nil {
				t.Fatal(err)
			}
			// the journal was made long after its first entry says, or long before
			later := test.later + h.Began.Sub(h.Now)
			counts := ledgertest.NewCounts()
			ledger.NewTrimmer(&older{store.Journal(), later}, store, nil, test.keep, counts.Log(), counts).Look(ctx)
			after, err := store.Journal().Head(ctx, "s")
			if err != nil || after.First != test.first || after.Last != last || after.Length != last+1-test.first {
				t.Errorf("the journal is %+v, error %v; it should begin at %d", after, err, test.first)
			}
			if counts.Heads["s"].Length != last {
				t.Errorf("the metrics say %+v", counts.Heads["s"])
			}
		})
	}
}

// The alarm is raised once when the ledger falls behind, and ends once when it has caught up. A
// sale that is gone is no longer reported.
func TestAlarm(t *testing.T) {
	server := redistest.Start(t)
	s := ledgertest.NewSeller(t, server, 100)
	s.Sell(5)
	counts := ledgertest.NewCounts()
	journals := &older{Journal: s.Store.Journal(), by: -time.Minute} // young, however slow the machine is
	k := ledger.NewTrimmer(journals, s.Store, nil, ledger.Retention{For: time.Hour, Most: 20_000, Ledger: true}, counts.Log(), counts)
	ctx := ledgertest.Soon(t)
	expect := func(what string, behind, caught int) {
		t.Helper()
		k.Look(ctx)
		k.Look(ctx)
		b, _ := counts.Logged("the ledger is behind")
		c, _ := counts.Logged("the ledger has caught up")
		if b != behind || c != caught {
			t.Errorf("%s: %d alarms and %d ends of one, want %d and %d", what, b, c, behind, caught)
		}
	}
	expect("at first", 0, 0)
	journals.by = 11 * time.Second
	expect("after 11 s", 1, 0)
	h, err := s.Store.Journal().Head(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Journal().Acknowledge(ctx, "s", h.Epoch, h.Last); err != nil {
		t.Fatal(err)
	}
	expect("with all in the ledger", 1, 1)
	if err := server.Client().FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	expect("without the sale", 1, 1)
	if len(counts.Heads) != 0 {
		t.Errorf("still reported: %v", counts.Heads)
	}
}

// Movements that an outbox has not sent stay while it works. When it has failed for long, that
// is logged once.
func TestKeepForOutbox(t *testing.T) {
	server := redistest.Start(t)
	epoch, last := ledgertest.Fill(t, server.Client(), "s", 5_600)
	store := openStore(t, server.Addr())
	ctx := ledgertest.Soon(t)
	if _, _, err := store.Journal().AcquireLease(ctx, "s", "A", time.Hour, epoch, 0); err != nil {
		t.Fatal(err)
	}
	if err := store.Journal().Sent(ctx, "s", epoch, 100); err != nil {
		t.Fatal(err)
	}
	// Redis counts how long nothing was sent in whole ms
	for sent := server.Client().Time(ctx).Val(); server.Client().Time(ctx).Val().Sub(sent) < 2*time.Millisecond; {
	}
	for _, test := range []struct {
		what        string
		keep        time.Duration
		first, said int64
	}{
		{"it is well", 20_000 * time.Hour, 101, 0},
		{"it was not for long", time.Nanosecond, last - journal.MinJournal + 1, 1},
	} {
		counts := ledgertest.NewCounts()
		k := ledger.NewTrimmer(store.Journal(), store, nil, ledger.Retention{For: test.keep, Most: 10_000}, counts.Log(), counts)
		k.Look(ctx)
		k.Look(ctx)
		h, err := store.Journal().Head(ctx, "s")
		if err != nil || h.First != test.first {
			t.Errorf("%s: the journal is %+v, error %v; it should begin at %d", test.what, h, err, test.first)
		}
		if n, _ := counts.Logged("the journal does not wait for the outbox any more"); int64(n) != test.said {
			t.Errorf("%s: logged %d times, want %d", test.what, n, test.said)
		}
	}
}

// catchingUp are journals whose outbox sends more after each look.
type catchingUp struct {
	*journal.Journal
	sent int64
}

func (c *catchingUp) Head(ctx context.Context, sale string) (journal.Head, error) {
	h, err := c.Journal.Head(ctx, sale)
	if err != nil {
		return h, err
	}
	c.sent += 300
	return h, c.Sent(ctx, sale, h.Epoch, c.sent)
}

// Movements that an outbox sends during a look may be trimmed at once: that is no reason to log
// that the journal does not wait for it.
func TestKeepWhileOutboxCatchesUp(t *testing.T) {
	server := redistest.Start(t)
	epoch, _ := ledgertest.Fill(t, server.Client(), "s", 5_600)
	store := openStore(t, server.Addr())
	ctx := ledgertest.Soon(t)
	if _, _, err := store.Journal().AcquireLease(ctx, "s", "A", time.Hour, epoch, 0); err != nil {
		t.Fatal(err)
	}
	if err := store.Journal().Sent(ctx, "s", epoch, 100); err != nil {
		t.Fatal(err)
	}
	counts := ledgertest.NewCounts()
	k := ledger.NewTrimmer(&catchingUp{store.Journal(), 100}, store, nil, ledger.Retention{For: 20_000 * time.Hour, Most: 10_000}, counts.Log(), counts)
	k.Look(ctx)
	k.Look(ctx)
	if h, err := store.Journal().Head(ctx, "s"); err != nil || h.First != 701 {
		t.Errorf("the journal is %+v, error %v; it should begin at 701", h, err)
	}
	if n, _ := counts.Logged("the journal does not wait for the outbox any more"); n != 0 {
		t.Errorf("it is logged %d times that the journal does not wait", n)
	}
}
