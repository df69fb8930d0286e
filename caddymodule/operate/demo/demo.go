// Package demo runs a sale in this process: a shop, a Caddy with the gate in front of it,
// and a crowd of buyers. Then it compares what shop, gate and buyers know.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/shop"
	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Options say how large a demo is and where it listens.
type Options struct {
	Once   bool   // the demo ends after the sale; otherwise the site stays up until ctx ends
	Buyers int    // 1 to MaxBuyers
	Stock  int64  // units, 1 to MaxStock
	Listen string // host:port of the site
	Redis  string // host:port or URL of the Redis that keeps the stock; empty: the embedded server
	JSON   bool   // the report as JSON
	// Waitlist lets refused buyers wait: some payments fail, and what comes back is offered to the next.
	Waitlist bool
}

// OptionError is a mistake in the options.
type OptionError struct{ error }

// NoAnswerError is the error of a Redis that does not answer.
type NoAnswerError struct{ error }

func (e OptionError) Unwrap() error   { return e.error }
func (e NoAnswerError) Unwrap() error { return e.error }

// Bounds of the options: one process holds both ends of every connection.
const (
	MaxBuyers = 100_000
	MaxStock  = 1_000_000
)

// Run runs a demo until it ends or ctx does, and writes its report to out. It leaves
// nothing behind: no keys in Redis, no files, no listeners. Besides OptionError and
// NoAnswerError, an error is a broken promise, or says why the demo could not run.
func Run(ctx context.Context, o Options, out io.Writer) error {
	d := &demo{Options: o, out: out}
	err := d.run(ctx)
	return errors.Join(err, d.close())
}

// demo is a sale in one process: a shop, the gate in front of it, and a crowd.
type demo struct {
	Options
	out io.Writer

	prefix string // of the keys in Redis
	site   string // the URL of the site
	page   string // the URL of the dashboard; empty: there is none
	shop   *shop.Shop
	edge   *edge.Edge
	sold   atomic.Int64                  // units, with a waiting list
	ends   []func(context.Context) error // what close does, the last one first
}

// grace bounds each step of ending.
const grace = 10 * time.Second

// close runs the steps that atEnd has added, the last one first.
func (d *demo) close() error {
	var all error
	for len(d.ends) > 0 {
		last := len(d.ends) - 1
		end := d.ends[last]
		d.ends = d.ends[:last]
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		all = errors.Join(all, end(ctx))
		cancel()
	}
	return all
}

func (d *demo) atEnd(end func(context.Context) error) { d.ends = append(d.ends, end) }

// where says which Redis keeps the stock.
func (d *demo) where() string {
	if d.Redis == "" {
		return "an embedded Redis"
	}
	return "the Redis at " + hidePassword(d.Redis)
}

// run runs the demo. The caller calls close afterwards, also after an error.
func (d *demo) run(ctx context.Context) error {
	if !d.JSON {
		fmt.Fprintf(d.out, "Starting a shop, Caddy with a gate in front of it, and a sale, with the stock in %s.\n", d.where())
	}
	if err := d.reachRedis(ctx); err != nil {
		return err
	}
	text, err := d.openSite()
	if err != nil {
		return err
	}
	if err := d.openSales(ctx); err != nil {
		return err
	}
	if !d.Once {
		fmt.Fprintf(d.out, "Watch the sale: %s\n", d.page)
		openBrowser(d.out, d.page)
	}
	if err := d.rush(ctx); err != nil || d.Once {
		return err
	}
	d.invite(text)
	<-ctx.Done()
	return nil
}

// The sales: one for the crowd, and one for the user of the demo.
const (
	crowdSale = "demo"
	crowdSKU  = "20002001"
	nextSale  = "your-turn"
	nextSKU   = "20002002"
)

// saleFile is a sale as an operator would write it. Its window is wide, because the clocks of
// Redis and of this machine may differ.
const saleFile = `id: %s
starts_at: %s
ends_at:   %s
items:
  - {sku: "%s", stock: %d}
limits:
  - {per: buyer, every: sale, max: 1, count: units}
`

// waitlistFile is what a sale has besides with --waitlist.
const waitlistFile = `waitlist:
  offer: 30s
`

// openSales loads and opens both sales, and waits until the gate knows them.
func (d *demo) openSales(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	d.edge = app.Active().Runtime().Edge
	if err := d.edge.Refresh(ctx); err != nil {
		err = fmt.Errorf("the gate cannot use this redis: %w", err)
		if errors.Is(err, shard.ErrUnavailable) {
			return NoAnswerError{err}
		}
		return err
	}
	day := 24 * time.Hour
	for _, s := range []struct {
		id, sku string
		stock   int64
	}{{crowdSale, crowdSKU, d.Stock}, {nextSale, nextSKU, MaxStock}} {
		text := fmt.Sprintf(saleFile, s.id, time.Now().Add(-day).Format(time.RFC3339), time.Now().Add(day).Format(time.RFC3339), s.sku, s.stock)
		if d.Waitlist && s.id == crowdSale {
			text += waitlistFile
		}
		parsed, err := sale.Parse([]byte(text))
		if err != nil {
			return err
		}
		if _, err := d.edge.ApplyUnlessLost(ctx, parsed, reservation.ApplyOptions{By: "demo"}); err != nil {
			return err
		}
		if err := d.edge.Store.SetStatus(ctx, s.id, sale.Open, "demo"); err != nil {
			return err
		}
	}
	return d.edge.Refresh(ctx)
}

// rush sends the crowd in and reports. Broken promises are an error.
func (d *demo) rush(ctx context.Context) error {
	if !d.JSON {
		fmt.Fprintf(d.out, "%s buyers want %s units at once. Gate, shop and crowd are in this process, the stock in %s.\n\n",
			stampede.Count(d.Buyers), stampede.Count(d.Stock), d.where())
	}
	if d.Waitlist && !d.JSON {
		fmt.Fprintf(d.out, "One payment in three fails. Buyers who find all units held enter the waiting list, and one in five declines the offer.\n\n")
	}
	progress := terminal.Show(d.progressTo(), func() string { return d.selling(ctx) })
	watching, seen := context.WithCancel(ctx)
	var watch sync.WaitGroup
	if d.Waitlist {
		watch.Go(func() { d.watchSold(watching) })
	}
	tally, err := d.crowd().Run(ctx)
	seen()
	watch.Wait()
	progress.Done()
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	evidence, err := stampede.Sources{
		Orders: d.orders,
		Stock: func(ctx context.Context) (*reservation.SaleStock, error) {
			return d.edge.Store.SaleStock(ctx, crowdSale)
		},
		Record: func(ctx context.Context, id string) (*reservation.Record, error) {
			return d.edge.Store.Reservation(ctx, id)
		},

		MaxPerBuyer: 1, MustSell: d.mustSell(tally),
	}.Collect(ctx, tally)
	if err != nil {
		return err
	}
	verdict := stampede.Check(evidence, stampede.Tolerance{})
	report := stampede.Report{Tally: tally, Evidence: &evidence, Verdict: &verdict}
	if d.JSON {
		err = json.NewEncoder(d.out).Encode(report)
	} else {
		_, err = report.WriteTo(d.out)
	}
	if broken := len(verdict.Violations); broken > 0 {
		return fmt.Errorf("%d promises were broken", broken)
	}
	if !d.JSON {
		held := fmt.Sprintf("Every promise held: the shop's orders, the sale's stock and the answers to %s buyers agree.", stampede.Count(tally.Buyers))
		fmt.Fprintf(d.out, "\n%s\n", terminal.Paint(d.out, terminal.Good, held))
	}
	return err
}

// progressTo is where the demo shows how far the sale is: its output, unless that is JSON.
func (d *demo) progressTo() io.Writer {
	if d.JSON {
		return io.Discard
	}
	return d.out
}

// selling says how far the sale is.
func (d *demo) selling(ctx context.Context) string {
	stock, err := d.edge.Store.SaleStock(ctx, crowdSale)
	if err != nil || len(stock.Items) == 0 {
		return "The buyers are coming"
	}
	return fmt.Sprintf("%s of %s units sold", stampede.Count(stock.Items[0].Confirmed), stampede.Count(d.Stock))
}

// crowd returns as many concurrent buyers as the process has open files for: it holds both
// ends of each connection, and the connection to the shop. Some buyers click twice, some buy
// again, and those who are told that units may come back retry.
func (d *demo) crowd() stampede.Crowd {
	c := stampede.Crowd{
		URL:         d.site + orderRoute,
		Buyers:      d.Buyers,
		Baskets:     []stampede.Basket{stampede.Buy(crowdSKU, 1)},
		Concurrency: max(1, min(d.Buyers, stampede.MostConnections, (stampede.OpenFiles()-otherFiles)/3)),
		DoubleClick: 20,
		ComeBack:    10,
		Retry:       stampede.Retry{Times: 20},
	}
	if d.Waitlist {
		c.Waitlist = &stampede.Waitlist{Path: listRoute, Decline: 5, Patience: 10 * time.Minute, Over: d.allSold}
		c.Concurrency = max(1, c.Concurrency*4/5) // those who wait ask on connections of their own
	}
	return c
}

// allSold reports whether nothing can come back.
func (d *demo) allSold() bool {
	return d.sold.Load() >= d.Stock
}

// watchSold follows how many units are sold until the crowd is gone.
func (d *demo) watchSold(ctx context.Context) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if stock, err := d.edge.Store.SaleStock(ctx, crowdSale); err == nil && len(stock.Items) > 0 {
			d.sold.Store(stock.Items[0].Confirmed)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// mustSell is how many units must be sold at the end. With a waiting list some payments fail: what is left then was offered to
// all, unless people waited in vain.
func (d *demo) mustSell(t *stampede.Tally) int64 {
	if t.Waited != nil && t.Waited.Ended[stampede.WaitedInVain] == 0 {
		return 0
	}
	return min(d.Stock, int64(d.Buyers))
}

// otherFiles are the files that the demo needs beside the crowd's connections.
const otherFiles = 512

// orders returns the shop's orders.
func (d *demo) orders(ctx context.Context) ([]stampede.Order, error) {
	written, err := d.shop.Orders(ctx)
	if err != nil {
		return nil, err
	}
	orders := make([]stampede.Order, len(written))
	for i, o := range written {
		orders[i] = stampede.Order{OrderNo: o.OrderNo, Reservation: o.Reservation, Buyer: o.Buyer, Lines: o.Lines}
	}
	return orders, nil
}

// invite prints what the user can try.
func (d *demo) invite(text string) {
	fmt.Fprintf(d.out, `
The site stays up until Ctrl-C. This is its Caddyfile:

%s
You are next. Buy one; the second one you will not get:

  curl -i %s%s -H 'X-User-Id: me' -H 'Content-Type: application/json' \
    -d '{"sku":"%s","quantity":1}'

The shop's orders: %[2]s/orders
The page of the sales, which may change them too: %[5]s
`, text, d.site, orderRoute, nextSKU, d.page)
}
