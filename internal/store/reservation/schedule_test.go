package reservation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// plan plans an act for so long from now.
func (c *clocked) plan(in time.Duration, act string, change ...string) *reservation.ScheduledAct {
	c.t.Helper()
	p := reservation.PlannedAct{At: c.now.Add(in).UTC().Format(time.RFC3339Nano), Act: act}
	if len(change) > 0 {
		p.SKU, p.Change = change[0], change[1]
	}
	if len(change) > 2 {
		p.Region = change[2]
	}
	a, _, _, err := c.Schedule(stocktest.Soon(c.t), "s", p, "ann@unix")
	if err != nil {
		c.t.Fatalf("%+v: %v", p, err)
	}
	return a
}

// perform does what is due, and says what.
func (c *clocked) perform() string {
	c.t.Helper()
	current, err := c.Load(stocktest.Soon(c.t), "s")
	if err != nil {
		c.t.Fatal(err)
	}
	done, _, err := c.Perform(stocktest.Soon(c.t), current)
	if err != nil {
		c.t.Fatal(err)
	}
	return said(done)
}

func said(acts []reservation.ScheduledAct) string {
	var all []string
	for _, a := range acts {
		all = append(all, fmt.Sprintf("%d %s: %s", a.Number, a.What(), a.Outcome()))
	}
	return strings.Join(all, "; ")
}

func (c *clocked) is(status sale.Status, coming int) *reservation.SaleStock {
	c.t.Helper()
	b, err := c.SaleStock(stocktest.Soon(c.t), "s")
	if err != nil || b.Status != status || len(b.Scheduled) != coming {
		c.t.Fatalf("it is %+v, %v; want %s and %d acts", b, err, status, coming)
	}
	return b
}

// Acts are done at their time, once, in order, and told in the journal with who planned them.
func TestSchedule(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		n := c.seq()
		c.plan(30*time.Second, "stock", "a", "=20")
		c.plan(10*time.Second, "pause")
		c.plan(20*time.Second, "stock", "a", "+5")
		c.plan(20*time.Second, "stock", "b", "-2", "north")
		c.plan(40*time.Second, "resume")
		if a := c.plan(10*time.Second, "pause"); a.Number != 2 {
			t.Errorf("the same again is act %d", a.Number)
		}
		for _, step := range []struct {
			after time.Duration
			want  string
		}{
			{9 * time.Second, ""},
			{time.Second, "2 pause: done"},
			{0, ""},
			{10 * time.Second, "3 stock of a +5: done: stock 14; 4 stock of b in north -2: done: stock 3"},
			{10 * time.Second, "1 stock of a =20: done: stock 20"},
			{16 * time.Second, "5 resume: done (6s late)"},
			{time.Hour, ""},
		} {
			if c.step(step.after); c.perform() != step.want {
				t.Fatalf("after %v more, it has done %q; want %s", step.after, said(c.is(sale.Open, 0).Performed), step.want)
			}
		}
		b := c.is(sale.Open, 0)
		if got := said(b.Performed); !strings.HasPrefix(got, "2 pause") || !strings.HasSuffix(got, "5 resume: done (6s late)") || len(b.Performed) != 5 {
			t.Errorf("what was done is %s", got)
		}
		if got := fmt.Sprint(c.told("cause", n)); got != "[paused ann@unix act 2 adjusted ann@unix act 3 adjusted ann@unix act 4 adjusted ann@unix act 1 open ann@unix act 5]" {
			t.Errorf("the journal has %s", got)
		}
		if got := c.cell(); got != [5]int64{20, 20, 0, 0, 0} {
			t.Errorf("the units are %v", got)
		}
	})
}

// An act that has become impossible fails, and is not tried again.
func TestScheduleFails(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.reserve("r", ofLines(units("a", 5)))
		c.plan(time.Second, "stock", "a", "-5")
		c.plan(2*time.Second, "stock", "b", "+1", "south")
		last := c.plan(3*time.Second, "pause")
		c.plan(4*time.Second, "close")
		c.plan(5*time.Second, "open")
		file := stocktest.OpenSale("s", 9)
		file.Items = file.Items[:1]
		if _, err := c.Apply(stocktest.Soon(t), file, reservation.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		c.is(sale.Open, 5)
		if _, err := c.CancelAct(stocktest.Soon(t), "s", last.Number); err != nil {
			t.Fatal(err)
		}
		c.step(4 * time.Second)
		want := "1 stock of a -5: FAILED: only 4 units were available; 2 stock of b@south +1: FAILED: the sale did not have the item any more; 4 close: done"
		if got := c.perform(); got != want {
			t.Errorf("it has done %s", got)
		}
		c.step(time.Second)
		if got := c.perform(); got != "5 open: FAILED: the sale was closed" {
			t.Errorf("it has done %s", got)
		}
		c.step(time.Hour)
		if got := c.perform(); got != "" {
			t.Errorf("it has done %s", got)
		}
		if _, err := c.CancelAct(stocktest.Soon(t), "s", 1); err != nil { // it is seen
			t.Fatal(err)
		}
		if _, err := c.CancelAct(stocktest.Soon(t), "s", 1); !errors.Is(err, reservation.ErrNotFound) {
			t.Errorf("it is forgotten again: %v", err)
		}
		if _, err := c.CancelAct(stocktest.Soon(t), "s", 4); !errors.Is(err, shard.ErrRefused) {
			t.Errorf("what is done is taken back: %v", err)
		}
		if got := len(c.is(sale.Closed, 0).Performed); got != 3 {
			t.Errorf("%d acts are told", got)
		}
		_, _, _, err := c.Schedule(stocktest.Soon(t), "s", reservation.PlannedAct{At: c.now.Add(time.Hour).Format(time.RFC3339), Act: "open"}, "")
		if !errors.Is(err, shard.ErrRefused) {
			t.Errorf("something is planned in a sale that is closed: %v", err)
		}
	})
}

// A step of Redis's clock that an edge knows of does nothing before its time.
func TestScheduleAndSteps(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.plan(time.Hour, "close")
		for range 3 { // the edge knows the time
			c.step(time.Second)
		}
		c.jump(2 * time.Hour)
		if got := c.perform(); got != "" {
			t.Errorf("in the step it has done %s", got)
		}
		c.jump(-2 * time.Hour)
		if got := c.perform(); got != "" {
			t.Errorf("after the step it has done %s", got)
		}
		c.step(time.Hour)
		if got := c.perform(); got != "1 close: done" {
			t.Errorf("at its time it has done %q", got)
		}
	})
}

// Acts that were planned before Redis came back from a backup are not done; nor is a sale opened that may lack what was sold.
func TestScheduleAfterRestore(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.plan(time.Minute, "open")
		c.plan(time.Minute, "stock", "a", "+1")
		c.plan(time.Minute, "close")
		if _, err := c.MarkRestored(stocktest.Soon(t), "s", c.now, "restore"); err != nil {
			t.Fatal(err)
		}
		for _, a := range c.is(sale.Paused, 3).Scheduled {
			if !a.Stale {
				t.Errorf("%+v is not stale", a)
			}
		}
		c.plan(2*time.Minute, "resume")
		c.plan(2*time.Minute, "stock", "a", "+3")
		c.step(time.Minute)
		if got := c.perform(); strings.Count(got, "FAILED: redis comes from a backup") != 3 {
			t.Errorf("it has done %s", got)
		}
		c.step(time.Minute)
		if got := c.perform(); !strings.HasPrefix(got, "4 resume: FAILED: the sale may lack what was sold") || !strings.HasSuffix(got, "+3: done: stock 12") {
			t.Errorf("it has done %s", got)
		}
		c.is(sale.Paused, 0)
		if err := c.SetStatus(stocktest.Soon(t), "s", sale.Open, "me"); err != nil {
			t.Fatal(err)
		}
		c.plan(time.Minute, "pause")
		c.step(time.Minute)
		if got := c.perform(); got != "6 pause: done" {
			t.Errorf("it has done %s", got)
		}
	})
}

// The times, the items and the number of acts are checked when they are planned.
func TestScheduleChecks(t *testing.T) {
	s := servers(t)[1]
	c := &clocked{Store: s.store, t: t, server: s, now: time.Now().Truncate(time.Second), passed: time.Now()}
	c.step(0)
	file := stocktest.OpenSale("s", 9)
	file.Timezone, file.EndsAt = "Europe/Berlin", time.Date(2030, 12, 1, 0, 0, 0, 0, time.UTC)
	file.Items = append(file.Items, sale.Item{SKU: "set", Components: []sale.Component{{SKU: "a", Units: 2}}})
	stocktest.Load(t, s.store, file)
	at := "2029-06-01T12:00"
	for want, p := range map[string]reservation.PlannedAct{
		"has passed: it is":                  {At: "2020-06-01T12:00", Act: "open"},
		"did you mean pause?":                {At: at, Act: "paus"},
		"there are open, pause":              {At: at, Act: "fly"},
		"must be a time such as":             {At: "tomorrow", Act: "open"},
		"in the time zone of the sale":       {At: "2029-06-01", Act: "open"},
		"no such time in Europe/Berlin":      {At: "2029-03-25T02:30", Act: "open"},
		"this time twice in Europe/Berlin":   {At: "2029-10-28 02:30:00", Act: "open"},
		"there is no such time":              {At: "2029-02-30T12:00", Act: "open"},
		"takes no item":                      {At: at, Act: "open", SKU: "a"},
		"the sale has ended by then":         {At: "2031-01-01T00:00:00Z", Act: "pause"},
		"has no item":                        {At: at, Act: "stock", SKU: "c", Change: "1"},
		"give its sku":                       {At: at, Act: "stock", Change: "1"},
		"is a bundle":                        {At: at, Act: "stock", SKU: "set", Change: "1"},
		"is split by region":                 {At: at, Act: "stock", SKU: "b", Change: "1"},
		"is not split by region":             {At: at, Act: "stock", SKU: "a", Region: "north", Change: "1"},
		"has no region":                      {At: at, Act: "stock", SKU: "b", Region: "west", Change: "1"},
		"no change of stock":                 {At: at, Act: "stock", SKU: "a", Change: "1.5"},
		"changes nothing":                    {At: at, Act: "stock", SKU: "a", Change: "-0"},
		"beyond the bound of":                {At: at, Act: "stock", SKU: "a", Change: "1000000000001"},
		`no change of stock, such as +50, -`: {At: at, Act: "stock", SKU: "a"},
	} {
		if _, _, _, err := s.store.Schedule(stocktest.Soon(t), "s", p, "me"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", p, err, want)
		}
	}
	a, isNew, warning, err := s.store.Schedule(stocktest.Soon(t), "s", reservation.PlannedAct{At: "2029-07-01 12:00", Act: "close"}, "me")
	if err != nil || !isNew || !strings.Contains(warning, "before it ends") || !a.At.Equal(time.Date(2029, 7, 1, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v, %v, %q, %v", a, isNew, warning, err)
	}
	for i := range 100 {
		p := reservation.PlannedAct{At: time.Date(2029, 1, 1, 0, 0, i, 0, time.UTC).Format(time.RFC3339), Act: "pause"}
		_, _, _, err := s.store.Schedule(stocktest.Soon(t), "s", p, "me")
		if full := i == 99; full != errors.Is(err, shard.ErrRefused) || !full && err != nil {
			t.Fatalf("act %d: %v", i, err)
		}
	}
}
