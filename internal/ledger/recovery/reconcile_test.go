package recovery_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// kinds are the keys of a shard, and the words for what is in them.
var kinds = map[string]string{
	"records": "record", "cells": "cell", "limits": "limit", "bindings": "binding", "returns": "return", "adjustments": "adjustment", "unpaid": "unpaid",
	"deadlines": "deadlines", "in_doubt": "in_doubt", "unbacked": "unbacked", "tombstones": "tombstones",
}

// spoil deletes or corrupts something in Redis without a movement. It returns what, as
// a report names it.
func (m *market) spoil(r *rand.Rand, name, text string) string {
	m.t.Helper()
	key, field, _ := strings.Cut(name, " ")
	ctx := ledgertest.Soon(m.t)
	var err error
	switch key {
	case "deadlines", "in_doubt", "unbacked", "tombstones":
		if r.IntN(2) == 0 {
			err = m.client.ZRem(ctx, tag+key, field).Err()
		} else {
			err = m.client.ZIncrBy(ctx, tag+key, 12_345, field).Err()
		}
	default:
		full, e := m.client.HGet(ctx, tag+key, field).Result()
		if e != nil {
			m.t.Fatal(e)
		}
		if key == "unpaid" { // its times are not part of the stock
			err = m.client.HSet(ctx, tag+key, field, []string{"rubbish", "777", "777 1"}[r.IntN(3)]).Err()
			break
		}
		spoilt := []string{
			"", "rubbish", full + " 1", strings.Replace(full, "1", "2", 1), strings.Replace(full, "held", "released", 1), strings.Replace(full, "confirmed", "held", 1),
		}[r.IntN(6)]
		if strings.HasPrefix(full, "tombstone") && spoilt != "" {
			spoilt = "rubbish" // when it ends is told by nothing else but its list
		}
		if spoilt == "" || spoilt == full || key == "bindings" && strings.HasPrefix(field, "d|") {
			if strings.HasPrefix(field, "d|") {
				spoilt = "unknown"
				err = m.client.HSet(ctx, tag+key, field, spoilt).Err()
				break
			}
			err = m.client.HDel(ctx, tag+key, field).Err()
			break
		}
		err = m.client.HSet(ctx, tag+key, field, spoilt).Err()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return kinds[key] + " " + field
}

// Anything that is deleted or changed in Redis is found, and repaired as the ledger
// says; the same again changes nothing.
func TestFindsAndRepairs(t *testing.T) {
	each(t, func(t *testing.T, on redistest.Backend, steps int) {
		for seed := range uint64(max(2, steps/30)) {
			withLedger := seed%2 == 0
			t.Run(fmt.Sprintf("seed %d, ledger %t", seed, withLedger), func(t *testing.T) {
				if err := on.Client().FlushAll(ledgertest.Soon(t)).Err(); err != nil {
					t.Fatal(err)
				}
				m := newMarket(t, on)
				var l ledger.Ledger
				if withLedger {
					l = openFile(t, filepath.Join(t.TempDir(), "ledger.db"))
					wait, end := m.drain(l)
					m.live(seed, 4, steps)
					wait()
					end()
					m.live(seed+50, 2, steps/2) // what only the journal has
				} else {
					m.live(seed, 5, steps)
				}
				m.agrees(l)
				was := m.shard()
				r := rand.New(rand.NewPCG(seed, 7))
				for round := range 3 {
					names := slices.Sorted(maps.Keys(m.shard()))
					names = slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "meta ") })
					r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
					spoilt := map[string]bool{}
					for _, n := range names[:min(len(names), []int{1, 30, len(names)}[round])] {
						if strings.HasPrefix(n, "records ") && strings.HasPrefix(was[n], "tombstone") && spoilt["tombstones "+n[8:]] ||
							strings.HasPrefix(n, "tombstones ") && spoilt["record "+n[11:]] {
							continue // nothing else tells of one
						}
						spoilt[m.spoil(r, n, was[n])] = true
					}
					m.check(l, spoilt)
					same(t, m.shard(), was)
					m.agrees(l)
					if on.Client().Exists(ledgertest.Soon(t), tag+"journal").Val() != 1 {
						t.Fatal("the journal is gone")
					}
				}
				m.live(seed+70, 3, steps/3) // and it goes on
				m.agrees(l)
			})
		}
	})
}

// each runs a test on both kinds of servers. Steps are how much to do: the embedded one
// reads its scripts again for every call.
func each(t *testing.T, f func(t *testing.T, on redistest.Backend, steps int)) {
	redistest.Each(t, func(t *testing.T, on redistest.Backend) {
		if _, ok := on.(*redistest.EmbeddedServer); ok {
			f(t, on, 6)
		} else {
			f(t, on, 200)
		}
	})
}

// check runs twice without repair and once with it. All that was spoilt must be named.
func (m *market) check(l ledger.Ledger, spoilt map[string]bool) {
	m.t.Helper()
	before := m.shard()
	first := m.run(l, false)
	same(m.t, m.shard(), before)
	named := map[string]bool{}
	for _, d := range first.Differences {
		named[d.Kind+" "+d.Name] = true
		if d.Text == "" || d.Cause == "" || d.Repair == "" || !d.Repairable {
			m.t.Errorf("a difference is %+v", d)
		}
	}
	if first.Found <= recovery.MaxDifferences {
		for what := range spoilt {
			if !named[what] {
				m.t.Errorf("%s was spoilt and is not found", what)
			}
		}
	}
	if first.Agrees || first.Left != first.Found {
		m.t.Errorf("without repair: %s", texts(first))
	}
	h, err := m.Journal().Head(ledgertest.Soon(m.t), "s")
	if err != nil {
		m.t.Fatal(err)
	}
	report := m.run(l, true)
	if !report.Agrees || report.Repaired != report.Found || report.Found != first.Found {
		m.t.Errorf("without repair %d were found; with it: %s", first.Found, texts(report))
	}
	movements, err := m.Journal().Movements(ledgertest.Soon(m.t), "s", h.Last, 1e6)
	if err != nil || len(movements) != report.Found {
		m.t.Errorf("the journal has %d entries of %d repairs, error %v", len(movements), report.Found, err)
	}
	for _, e := range movements {
		if e.Kind != "repaired" || !strings.HasPrefix(e.Cause, "reconcile "+report.Run+" test@here ") {
			m.t.Errorf("an entry is %+v", e)
		}
	}
	if again := m.run(l, true); !again.Agrees || again.Found != 0 || again.Seq != report.Seq {
		m.t.Errorf("again: %s", texts(again))
	}
}

// Whole keys that are gone are made again.
func TestKeysGone(t *testing.T) {
	server := redistest.Start(t)
	m := newMarket(t, server)
	m.live(1, 4, 100)
	was := m.shard()
	for key := range kinds {
		if key == "tombstones" {
			continue
		}
		if err := m.client.Del(ledgertest.Soon(t), tag+key).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if report := m.run(nil, true); !report.Agrees {
		t.Error(texts(report))
	}
	same(t, m.shard(), was)
}

// Keys of other types are named. Once they are deleted they are made again.
func TestKeysOfAnotherType(t *testing.T) {
	redistest.Each(t, func(t *testing.T, on redistest.Backend) {
		m := newMarket(t, on)
		m.live(1, 2, 40)
		was := m.shard()
		for key := range kinds {
			if key == "tombstones" {
				continue
			}
			if err := errors.Join(m.client.Del(ledgertest.Soon(t), tag+key).Err(), m.client.Set(ledgertest.Soon(t), tag+key, "x", 0).Err()); err != nil {
				t.Fatal(err)
			}
			_, err := recovery.Reconcile(ledgertest.Soon(t), m.Store, nil, "s", recovery.Options{Repair: true})
			if !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), tag+key+" is no ") || !strings.Contains(err.Error(), "reconcile s --repair") {
				t.Errorf("%s is a string: %v", key, err)
			}
			if err := m.client.Del(ledgertest.Soon(t), tag+key).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if report := m.run(nil, true); !report.Agrees {
			t.Error(texts(report))
		}
		same(t, m.shard(), was)
	})
}

// While many buy, nothing is found that is not so, however often it is looked.
func TestQuietWhileSelling(t *testing.T) {
	each(t, func(t *testing.T, on redistest.Backend, steps int) {
		m := newMarket(t, on)
		l := openFile(t, filepath.Join(t.TempDir(), "ledger.db"))
		wait, _ := m.drain(l)
		sold := make(chan struct{})
		go func() { defer close(sold); m.live(3, 8, 2*steps) }()
		for n := 0; ; n++ {
			report := m.run([]ledger.Ledger{l, nil}[n%2], n%3 == 0)
			if !report.Agrees || report.Found > 0 {
				t.Fatalf("run %d: %s", n, texts(report))
			}
			select {
			case <-sold:
				if n < 4 {
					continue
				}
				wait()
				m.agrees(l)
				return
			default:
			}
		}
	})
}

// While many buy, things are spoilt and repaired. No unit is made up or lost, and in
// the end Redis is what the movements say.
func TestRepairsWhileSelling(t *testing.T) {
	each(t, func(t *testing.T, on redistest.Backend, steps int) {
		m := newMarket(t, on)
		l := openFile(t, filepath.Join(t.TempDir(), "ledger.db"))
		wait, _ := m.drain(l)
		sold := make(chan struct{})
		go func() { defer close(sold); m.live(5, 8, 2*steps) }()
		r := rand.New(rand.NewPCG(5, 5))
		for n, over := 0, false; !over; n++ {
			ctx := ledgertest.Soon(t)
			select {
			case <-sold:
				over = true
			default:
			}
			// numbers that sales go on with, and lists; not records, which movements are made from
			delta := strconv.Itoa(-r.IntN(100)) // not more than there is: that would be sold
			err := m.client.Eval(ctx, `local c = redis.call('HGET', KEYS[1], 'a')
				local n = {}
				for w in string.gmatch(c, '%S+') do n[#n + 1] = tonumber(w) end
				n[2] = n[2] + tonumber(ARGV[1]) n[5] = n[5] - tonumber(ARGV[1])
				redis.call('HSET', KEYS[1], 'a', string.format('%d %d %d %d %d', n[1], n[2], n[3], n[4], n[5]))`, []string{tag + "cells"}, delta).Err()
			if err != nil && !strings.Contains(err.Error(), "nil") {
				t.Fatal(err)
			}
			for _, key := range []string{"deadlines", "in_doubt"} {
				if id := m.client.ZRandMember(ctx, tag+key, 1).Val(); len(id) > 0 {
					m.client.ZRem(ctx, tag+key, id[0])
				}
			}
			if f := m.client.HRandField(ctx, tag+"bindings", 1).Val(); len(f) > 0 {
				m.client.HDel(ctx, tag+"bindings", f[0])
			}
			if report := m.run(l, true); report.Left > 0 {
				t.Fatalf("run %d: %s", n, texts(report))
			}
		}
		wait()
		m.agrees(l)
		m.agrees(nil)
	})
}

// What was sold by a counter that was too high is said, and nothing more is sold.
func TestOversold(t *testing.T) {
	m := newMarket(t, redistest.Start(t))
	ctx := ledgertest.Soon(t)
	if err := m.client.HSet(ctx, tag+"cells", "a", "1000 2000 0 0 0").Err(); err != nil {
		t.Fatal(err)
	}
	b := m.buyer(1)
	reserve := func(id string, n int64) error {
		c := &reservation.ReserveRequest{ID: id, Sale: "s", Version: 2, Buyer: b.name, Lines: []sale.Line{{SKU: "a", Quantity: n}}, HoldFor: time.Hour, Mode: record.ModeResponse}
		_, refusal, err := m.Reserve(ledgertest.Soon(t), c)
		if refusal != nil {
			return fmt.Errorf("refused: %s", refusal.Reason)
		}
		return err
	}
	if err := reserve("first", 1010); err != nil {
		t.Fatal(err)
	}
	report := m.run(nil, true)
	if report.Repaired != 1 || report.Left != 1 || report.Differences[1].Kind != "oversold" || !strings.HasPrefix(report.Differences[1].Text, "10 units of cell a") {
		t.Error(texts(report))
	}
	if text := m.client.HGet(ctx, tag+"cells", "a").Val(); text != "1000 -10 1010 0 0" {
		t.Errorf("the cell is %s", text)
	}
	if err := reserve("second", 1); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("another one: %v", err)
	}
}

// A repair that is broken off at any point is finished by the next one, and nothing is
// repaired twice.
func TestBrokenOff(t *testing.T) {
	server := redistest.Start(t)
	m := newMarket(t, server)
	m.live(9, 4, 200)
	was := m.shard()
	r := rand.New(rand.NewPCG(9, 9))
	for name, text := range was {
		if key, _, _ := strings.Cut(name, " "); key == "cells" || key == "limits" || key == "deadlines" || key == "adjustments" || key == "records" && !strings.HasPrefix(text, "tombstone") {
			m.spoil(r, name, text)
		}
	}
	proxy := redistest.NewProxy(t, server.Addr())
	store, err := reservation.Open(shard.Options{Addresses: []string{proxy.Addr()}, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for cuts := 1; ; cuts++ {
		proxy.CutReplies(1, "EVALSHA") // the answer is lost, whether or not it ran
		report, err := recovery.Reconcile(ledgertest.Soon(t), store, nil, "s", recovery.Options{Repair: true})
		if err == nil && report.Agrees {
			break
		}
		if cuts > 3 { // and then it may go on
			for proxy.CutsLeft() > 0 {
				_, _ = store.Examine(ledgertest.Soon(t), "s", nil)
			}
			if report, err = recovery.Reconcile(ledgertest.Soon(t), store, nil, "s", recovery.Options{Repair: true}); err != nil || !report.Agrees {
				t.Fatalf("error %v: %s", err, texts(report))
			}
			break
		}
	}
	same(t, m.shard(), was)
	m.agrees(nil)
}

// What a movement of a later version means is not known: nothing is repaired by the history without it.
func TestReconcileOfANewerMovement(t *testing.T) {
	server, s, _ := ledgertest.Drained(t, 5, 2)
	c, keys := server.Client(), s.Store.Shard().ShardKeys("s")
	seq, err := c.HIncrBy(ledgertest.Soon(t), keys[shard.MetaKey], "seq", 1).Result()
	if err != nil {
		t.Fatal(err)
	}
	entry := &redis.XAddArgs{Stream: keys[shard.JournalKey], ID: fmt.Sprintf("%d-0", seq), Values: []any{"movements", "invented\tr1\t\t\t\ttest\t", "time", "1", "v", "1"}}
	if err := c.XAdd(ledgertest.Soon(t), entry).Err(); err != nil {
		t.Fatal(err)
	}
	if report, err := recovery.Reconcile(ledgertest.Soon(t), s.Store, nil, "s", recovery.Options{Repair: true}); !errors.Is(err, journal.ErrKind) {
		t.Errorf("%+v, %v", report, err)
	}
}
