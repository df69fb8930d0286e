package reservation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// diary is what a schedule must do, as its documentation has it.
type diary struct {
	status   sale.Status
	stock    int64
	number   int64
	restored time.Time
	coming   []diaryAct
	done     map[int64]string
}

type diaryAct struct {
	number int64
	at     time.Time
	kind   string
	change string
	stale  bool
}

// plan plans an act, unless the same is planned, or the sale is closed.
func (d *diary) plan(at time.Time, kind, change string) (number int64, ok bool) {
	if d.status == sale.Closed {
		return 0, false
	}
	for _, a := range d.coming {
		if a.at.Equal(at) && a.kind == kind && a.change == change {
			return a.number, true
		}
	}
	d.number++
	d.coming = append(d.coming, diaryAct{number: d.number, at: at, kind: kind, change: change})
	slices.SortStableFunc(d.coming, func(a, b diaryAct) int { return a.at.Compare(b.at) })
	return d.number, true
}

// cancel takes an act back, or forgets one that failed.
func (d *diary) cancel(number int64) bool {
	n := len(d.coming)
	d.coming = slices.DeleteFunc(d.coming, func(a diaryAct) bool { return a.number == number })
	if d.done[number] == "failed" {
		delete(d.done, number)
		return true
	}
	return len(d.coming) < n
}

// perform does what is due.
func (d *diary) perform(now time.Time) {
	for len(d.coming) > 0 && !d.coming[0].at.After(now) {
		a := d.coming[0]
		d.coming = d.coming[1:]
		d.done[a.number] = "failed"
		if !a.stale && d.act(a) {
			d.done[a.number] = "done"
		}
	}
}

func (d *diary) act(a diaryAct) bool {
	behind := !d.restored.IsZero()
	switch next := map[string]sale.Status{"open": sale.Open, "resume": sale.Open, "pause": sale.Paused, "close": sale.Closed}[a.kind]; {
	case a.kind == "stock":
		var n int64
		if _, err := fmt.Sscan(a.change[1:], &n); err != nil {
			panic(err)
		}
		switch a.change[0] {
		case '-':
			n = d.stock - n
		case '+':
			n += d.stock
		}
		if n >= 0 {
			d.stock = n
		}
		return n >= 0
	case next == sale.Open && (behind || a.kind == "resume" && d.status == sale.Draft):
		return false
	case next == d.status:
		return true
	default:
		return d.become(next)
	}
}

func (d *diary) become(next sale.Status) bool {
	from := map[sale.Status][]sale.Status{sale.Open: {sale.Draft, sale.Paused}, sale.Paused: {sale.Open}, sale.Closed: {sale.Draft, sale.Open, sale.Paused}}
	if d.status != next && !slices.Contains(from[next], d.status) {
		return false
	}
	if d.status != next {
		d.restored = time.Time{}
	}
	d.status = next
	return true
}

// Whatever is planned, cancelled, done by hand and restored in between, the acts that are due are done as a diary has it.
func TestScheduleDrawn(t *testing.T) {
	s := servers(t)[0]
	seed := draw.Seed(t)
	for n := range draw.Times(15, 150) {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		if err := s.client.FlushAll(stocktest.Soon(t)).Err(); err != nil {
			t.Fatal(err)
		}
		c := &clocked{Store: stocktest.OpenStore(t, s.options), t: t, server: s, now: time.Now().Truncate(time.Second), passed: time.Now()}
		c.Shard().Measure(func() time.Time { return c.passed })
		s.setTime(c.now.UnixMilli())
		if _, err := c.Apply(stocktest.Soon(t), stocktest.OpenSale("s", 9), reservation.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		c.step(0)
		c.step(0)
		d := &diary{status: sale.Draft, stock: 9, done: map[int64]string{}}
		for range 60 {
			c.drawn(r, d)
		}
	}
}

// drawn takes one step, and compares.
func (c *clocked) drawn(r *rand.Rand, d *diary) {
	c.t.Helper()
	ctx, what := stocktest.Soon(c.t), ""
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		kind, change := []string{"open", "pause", "resume", "stock", "stock", "stock"}[r.IntN(6)], ""
		if r.IntN(30) == 0 {
			kind = "close"
		}
		p := reservation.PlannedAct{At: c.now.Add(time.Duration(1+r.IntN(20)) * time.Second).UTC().Format(time.RFC3339Nano), Act: kind}
		if kind == "stock" {
			change = fmt.Sprintf("%c%d", "+-="[r.IntN(3)], 1+r.IntN(9))
			p.SKU, p.Change = "a", change
		}
		a, _, _, err := c.Schedule(ctx, "s", p, "me")
		at, _ := time.Parse(time.RFC3339Nano, p.At)
		number, ok := d.plan(at, kind, change)
		if what = fmt.Sprintf("plan %+v", p); ok != (err == nil) || ok && a.Number != number {
			c.t.Fatalf("%s: %+v, %v; want %d, %v", what, a, err, number, ok)
		}
	case 4:
		number := 1 + r.Int64N(d.number+1)
		_, err := c.CancelAct(ctx, "s", number)
		if what = fmt.Sprint("cancel ", number); d.cancel(number) != (err == nil) {
			c.t.Fatalf("%s: %v", what, err)
		}
	case 5:
		next := []sale.Status{sale.Open, sale.Paused}[r.IntN(2)]
		err := c.SetStatus(ctx, "s", next, "me")
		if what = "become " + string(next); d.become(next) != (err == nil) {
			c.t.Fatalf("%s: %v", what, err)
		}
	case 6:
		if what = "restore"; r.IntN(5) > 0 {
			return
		}
		if _, err := c.MarkRestored(ctx, "s", c.now, "me"); err != nil {
			c.t.Fatal(err)
		}
		if !d.restored.Equal(c.now) {
			for i := range d.coming {
				d.coming[i].stale = true
			}
		}
		if d.restored = c.now; d.status == sale.Open {
			d.status = sale.Paused
		}
	default:
		c.step(time.Duration(r.IntN(8)) * time.Second)
		what = "perform"
		c.perform()
		d.perform(c.now)
	}
	c.agrees(d, what)
}

func (c *clocked) agrees(d *diary, after string) {
	c.t.Helper()
	b, err := c.SaleStock(stocktest.Soon(c.t), "s")
	if err != nil {
		c.t.Fatal(err)
	}
	var coming []diaryAct
	for _, a := range b.Scheduled {
		coming = append(coming, diaryAct{a.Number, a.At, string(a.Act), a.Change, a.Stale})
	}
	done := map[int64]string{}
	for _, a := range b.Performed {
		if done[a.Number] = "done"; a.Failed {
			done[a.Number] = "failed"
		}
	}
	for number, outcome := range done { // older ones are not kept
		if d.done[number] != outcome {
			c.t.Fatalf("after %s, act %d is %s (%s); want %s", after, number, outcome, said(b.Performed), d.done[number])
		}
	}
	same := func(a, b diaryAct) bool {
		return a.at.Equal(b.at) && a.number == b.number && a.kind == b.kind && a.change == b.change && a.stale == b.stale
	}
	if b.Status != d.status || b.Items[0].Stock != d.stock || !slices.EqualFunc(coming, d.coming, same) || len(done) < min(len(d.done), 50) {
		c.t.Fatalf("after %s the sale is %s with %d units and has %+v and %v to show; want %s, %d, %+v, %v", after, b.Status, b.Items[0].Stock, coming, done, d.status, d.stock, d.coming, d.done)
	}
}
