package edge_test

import (
	"errors"
	"fmt"
	"regexp"
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
)

// planned plans acts of "s" that are due at once, all at the same time.
func planned(t *testing.T, s *reservation.Store, acts ...reservation.PlannedAct) {
	t.Helper()
	someDay(t, s, acts...)
	comeDue(t, s)
}

// someDay plans acts for another day.
func someDay(t *testing.T, s *reservation.Store, acts ...reservation.PlannedAct) {
	t.Helper()
	for _, act := range acts {
		act.At = time.Now().Add(24 * time.Hour).Format(time.RFC3339)
		if _, _, _, err := s.Schedule(stocktest.Soon(t), "s", act, "ann@unix"); err != nil {
			t.Fatal(err)
		}
	}
}

// shortly plans an act for a moment that has not passed yet, however slow the machine is.
func shortly(t *testing.T, s *reservation.Store, act reservation.PlannedAct) {
	t.Helper()
	for n := time.Duration(1); ; n++ {
		act.At = s.Now("s").Add(n * 200 * time.Millisecond).UTC().Format(time.RFC3339Nano)
		_, _, _, err := s.Schedule(stocktest.Soon(t), "s", act, "ann@unix")
		if _, late := errors.AsType[*reservation.ActError](err); err == nil || !late {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}

func more(change string) reservation.PlannedAct {
	return reservation.PlannedAct{Act: "stock", SKU: "a", Change: change}
}

// acted waits until so many acts are done, and says what has become of them.
func acted(t *testing.T, s *reservation.Store, n int) string {
	t.Helper()
	var b *reservation.SaleStock
	stocktest.Eventually(t, fmt.Sprint(n, " acts that are done"), func() bool {
		var err error
		b, err = s.SaleStock(stocktest.Soon(t), "s")
		return err == nil && len(b.Performed) >= n && len(b.Scheduled) == 0
	})
	var all []string
	for _, a := range b.Performed {
		outcome, _, _ := strings.Cut(a.Outcome(), " (") // a slow machine is late
		all = append(all, a.What()+": "+outcome)
	}
	return strings.Join(all, "; ")
}

// starting starts edges on a server.
func starting(t *testing.T, o shard.Options, n int) (all []*edge.Edge) {
	t.Helper()
	for range n {
		e := stocktest.NewEdge(t, o, edge.Options{})
		e.Start()
		all = append(all, e)
	}
	return all
}

// Of several edges one does each act, and all follow it.
func TestEdgesPerform(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		o := stocktest.Options(b)
		s := stocktest.OpenStore(t, o)
		stocktest.Load(t, s, stocktest.OpenSale("s", 3))
		edges := starting(t, o, 3)
		planned(t, s, more("+5"), more("+6"))
		acted(t, s, 2)
		shortly(t, s, reservation.PlannedAct{Act: "pause"})
		if got := acted(t, s, 3); got != "stock of a +5: done: stock 8; stock of a +6: done: stock 14; pause: done" {
			t.Errorf("the edges have done %s", got)
		}
		for _, e := range edges {
			stocktest.Eventually(t, "an edge that does not sell", func() bool {
				l, ok := e.Catalogue().Sale("s")
				return ok && l.Status == sale.Paused
			})
		}
		stocktest.Balanced(t, b.Client(), s, "s")
	})
}

// However many ask at the same moment, and whatever they hear, an act is done once.
func TestPerformIsExact(t *testing.T) {
	f := stocktest.NewFaulty(t, time.Minute)
	planned(t, f.Direct, more("+1"), more("+2"), more("-3"), more("=50"))
	current, err := f.Direct.Load(stocktest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	f.Proxy.CutReplies(1, "evalsha")
	for f.Proxy.CutsLeft() > 0 { // what was done is not heard of
		if _, _, err := f.Edge.Store.Perform(stocktest.Soon(t), current); err == nil && f.Proxy.CutsLeft() == 0 {
			t.Fatal("an answer that was cut is heard")
		}
	}
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			if _, _, err := f.Direct.Perform(stocktest.Soon(t), current); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if got := acted(t, f.Direct, 4); got != "stock of a +1: done: stock 4; stock of a +2: done: stock 6; stock of a -3: done: stock 3; stock of a =50: done: stock 50" {
		t.Errorf("it has done %s", got)
	}
	f.Audit()
}

// Acts outlive a Redis that is killed, and edges that end; what was due meanwhile is done late.
func TestPerformAfterRestarts(t *testing.T) {
	server := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	o := stocktest.Options(server)
	s := stocktest.OpenStore(t, o)
	stocktest.Load(t, s, stocktest.OpenSale("s", 3))
	first := starting(t, o, 1)[0]
	stocktest.Eventually(t, "an edge that may sell", func() bool { return first.Ready() == nil })
	if err := first.Stop(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	planned(t, s, reservation.PlannedAct{Act: "pause"}, more("+2"), reservation.PlannedAct{Act: "resume"})
	server.Kill()
	server.Restart()
	starting(t, o, 2)
	if got := acted(t, s, 3); got != "pause: done; stock of a +2: done: stock 5; resume: done" {
		t.Errorf("it has done %s", got)
	}
	stocktest.Balanced(t, server.Client(), s, "s")
}

// comeDue has the acts that are to come be due, in the Redis of a store alone.
func comeDue(t *testing.T, s *reservation.Store) {
	t.Helper()
	meta, c := s.Shard().ShardKeys("s")[shard.MetaKey], shard.Redis(s.Shard())
	text, err := c.HGet(stocktest.Soon(t), meta, "acts").Result()
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`(?m)^(\d+)\t\d+`).ReplaceAllString(text, "${1}\t1000")
	if err := c.HSet(stocktest.Soon(t), meta, "acts", text, "next_act", 1000).Err(); err != nil {
		t.Fatal(err)
	}
}

// An act that a failover has lost, and that an edge gives back, is not done again.
func TestPerformIsGivenBack(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a := p.link()
	someDay(t, a.Store, more("+7"), reservation.PlannedAct{Act: "pause"}, reservation.PlannedAct{Act: "stock", SKU: "b", Region: "north", Change: "+1"})
	p.replicas(a)
	p.stall()
	comeDue(t, a.Store)
	acted(t, a.Store, 3)
	p.read(a)
	p.primary.Kill()
	p.promote()
	a.Lead(p.replica.Addr())
	stocktest.Eventually(t, "a sale that is not fenced", func() bool {
		return a.Store.SetStatus(stocktest.Soon(t), "s", sale.Open, "ann") == nil
	})
	b, err := a.Store.SaleStock(stocktest.Soon(t), "s")
	if err != nil || len(b.Scheduled) > 0 || b.Status != sale.Open || b.Items[0].Stock != 1007 || b.Items[1].Stock != 6 {
		t.Errorf("the sale is %+v, %v", b, err)
	}
}
