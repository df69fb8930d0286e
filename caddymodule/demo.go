package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stockgate/stockgate/internal/shop"
	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

// demoOptions is what the command line says.
type demoOptions struct {
	once   bool
	buyers int
	stock  int64
	listen string
	redis  string // empty: the embedded server
	json   bool
}

// demo is a sale in one process: a shop, the gate in front of it, and a crowd.
type demo struct {
	demoOptions
	out io.Writer

	prefix string // of the keys in Redis
	site   string // the URL of the site
	shop   *shop.Shop
	desk   *desk
	ends   []func(context.Context) error // what close does, the last one first
}

// demoGrace bounds each step of ending.
const demoGrace = 10 * time.Second

// close ends what has begun, in reverse.
func (d *demo) close() error {
	var all error
	for len(d.ends) > 0 {
		last := len(d.ends) - 1
		end := d.ends[last]
		d.ends = d.ends[:last]
		ctx, cancel := context.WithTimeout(context.Background(), demoGrace)
		all = errors.Join(all, end(ctx))
		cancel()
	}
	return all
}

func (d *demo) atEnd(end func(context.Context) error) { d.ends = append(d.ends, end) }

// run is the whole demo. Whatever it returns, close has to follow.
func (d *demo) run(ctx context.Context) error {
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
	if err := d.rush(ctx); err != nil || d.once {
		return err
	}
	d.invite(text)
	<-ctx.Done()
	return nil
}

// The sales: one for the crowd, and one for whoever runs the demo.
const (
	demoSale = "demo"
	demoSKU  = "20002001"
	nextSale = "your-turn"
	nextSKU  = "20002002"
)

// demoFile is a sale as an operator would write it. Its window is wide: the
// Redis may have another idea of the time than this machine.
const demoFile = `id: %s
starts_at: %s
ends_at:   %s
items:
  - {sku: "%s", stock: %d}
limits:
  - {per: buyer, every: sale, max: 1, count: units}
`

// openSales loads and opens both sales, and waits until the gate knows them.
func (d *demo) openSales(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, demoGrace)
	defer cancel()
	d.desk = running.latest().current()
	if err := d.desk.Refresh(ctx); err != nil {
		err = fmt.Errorf("the gate cannot use this redis: %w", err)
		if errors.Is(err, reservation.ErrUnavailable) {
			return noAnswerError{err}
		}
		return err
	}
	day := 24 * time.Hour
	for _, s := range []struct {
		id, sku string
		stock   int64
	}{{demoSale, demoSKU, d.stock}, {nextSale, nextSKU, demoMostStock}} {
		text := fmt.Sprintf(demoFile, s.id, time.Now().Add(-day).Format(time.RFC3339), time.Now().Add(day).Format(time.RFC3339), s.sku, s.stock)
		parsed, err := sale.Parse([]byte(text))
		if err != nil {
			return err
		}
		if _, err := d.desk.Apply(ctx, parsed, reservation.ApplyOptions{By: "demo"}); err != nil {
			return err
		}
		if err := d.desk.SetStatus(ctx, s.id, sale.Open, "demo"); err != nil {
			return err
		}
	}
	return d.desk.Refresh(ctx)
}

// rush sends the crowd in and reports. Broken promises are an error.
func (d *demo) rush(ctx context.Context) error {
	where := "the stock in an embedded Redis"
	if d.redis != "" {
		where = "the stock in the Redis at " + hidePassword(d.redis)
	}
	if !d.json {
		fmt.Fprintf(d.out, "%s buyers want %s units at once. Gate, shop and crowd are in this process, %s.\n\n",
			stampede.Count(d.buyers), stampede.Count(d.stock), where)
	}
	tally, err := d.crowd().Run(ctx)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	evidence, err := stampede.Sources{
		Orders: d.orders,
		Books:  func(ctx context.Context) (*reservation.Books, error) { return d.desk.Books(ctx, demoSale) },
		Record: func(ctx context.Context, id string) (*reservation.Record, error) { return d.desk.Reservation(ctx, id) },

		MaxPerBuyer: 1, MustSell: min(d.stock, int64(d.buyers)),
	}.Collect(ctx, tally)
	if err != nil {
		return err
	}
	verdict := stampede.Check(evidence, stampede.Tolerance{})
	report := stampede.Report{Tally: tally, Evidence: &evidence, Verdict: &verdict}
	if d.json {
		err = json.NewEncoder(d.out).Encode(report)
	} else {
		_, err = report.WriteTo(d.out)
	}
	if broken := len(verdict.Violations); broken > 0 {
		return fmt.Errorf("%d promises were broken", broken)
	}
	if !d.json {
		fmt.Fprintf(d.out, "\nEvery promise held: the shop's orders, the sale's books and the answers to %s buyers agree.\n", stampede.Count(tally.Buyers))
	}
	return err
}

// crowd is as many buyers at once as the process has open files for: both ends
// of a connection are here, and those to the shop. Some click twice, some try to
// buy again, and who hears that units may come back does so too.
func (d *demo) crowd() stampede.Crowd {
	return stampede.Crowd{
		URL:         d.site + demoOrders,
		Buyers:      d.buyers,
		Baskets:     []stampede.Basket{stampede.Buy(demoSKU, 1)},
		Concurrency: max(1, min(d.buyers, stampede.MostConnections, (stampede.OpenFiles()-demoOtherFiles)/3)),
		DoubleClick: 20,
		ComeBack:    10,
		Retry:       stampede.Retry{Times: 20},
	}
}

// demoOtherFiles are the files that the demo needs beside the crowd's connections.
const demoOtherFiles = 512

// orders are the shop's.
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

// invite says what there is to try.
func (d *demo) invite(text string) {
	fmt.Fprintf(d.out, `
The site stays up until Ctrl-C. This is its Caddyfile:

%s
You are next. Buy one; the second one you will not get:

  curl -i %s%s -H 'X-User-Id: me' -H 'Content-Type: application/json' \
    -d '{"sku":"%s","quantity":1}'

The shop's orders: %[2]s/orders
`, text, d.site, demoOrders, nextSKU)
}
