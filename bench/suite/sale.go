package suite

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/stockgate/stockgate/bench/load"
	"github.com/stockgate/stockgate/bench/measure"
	"github.com/stockgate/stockgate/bench/peer"
	"github.com/stockgate/stockgate/internal/sale"
)

// unitsOfASale is how many units a whole sale has.
const unitsOfASale = 1000

// wholeSale lets every peer sell one item after the other, each in a sale of its own
// with a fixed number of attempts, and adds up what that costs every process.
func wholeSale(ctx context.Context, b *bench, s scenario, out *measure.Case) error {
	dir, err := b.dir(s.name)
	if err != nil {
		return err
	}
	s.skus = b.Runs + 1 // the first is not counted
	s.stock = unitsOfASale
	setup := s.setup(b, dir)
	gateSetup := setup
	gateSetup.Items = nil // they get a sale for each item
	var field []*contender
	defer func() {
		for _, c := range field {
			c.Stop()
		}
	}()
	for _, spec := range s.peers(b) {
		with := setup
		if spec.Gate {
			with = gateSetup
		}
		r, err := spec.Run(ctx, with)
		if isNotBuilt(err) {
			b.left("%s: %s: %v", s.name, spec.Name, err)
			continue
		} else if err != nil {
			return fmt.Errorf("start %s: %w", spec.Name, err)
		}
		c := &contender{Running: r, table: filepath.Join(dir, spec.Name+".requests")}
		field = append(field, c)
	}
	costs := make([]costs, len(field))
	for n := range s.skus {
		for i, c := range field {
			if spec := c.Spec; spec.Gate {
				one := &sale.Sale{
					ID: fmt.Sprintf("whole-%d", n), StartsAt: setup.Starts, EndsAt: setup.Ends,
					Items:  []sale.Item{{SKU: sku(n), Stock: unitsOfASale}},
					Limits: []sale.Limit{{Per: "buyer", Every: "sale", Count: "units", Max: setup.Limit}},
				}
				if err := c.Apply(ctx, one, s.method); err != nil {
					return err
				}
			}
			attempts := b.Attempts
			if n == 0 {
				attempts = min(attempts, 20_000) // to warm up
			}
			cost, err := b.sell(ctx, s, c, n, attempts)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Spec.Name, err)
			}
			if n > 0 {
				costs[i] = append(costs[i], cost)
			}
		}
	}
	for i, c := range field {
		out.Rows = append(out.Rows, costs[i].row(c.Spec.Name))
	}
	return nil
}

// cost is what one whole sale took.
type cost struct {
	load    measure.Load
	cpu     map[string]float64
	scripts int64
}

// sell sends the attempts of one sale. Not one unit more or less than there are may
// reach the shop.
func (b *bench) sell(ctx context.Context, s scenario, c *contender, n, attempts int) (cost, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return cost{}, err
	}
	c.orders = load.Orders{Method: s.method, Host: u.Host, SKU: func(int) string { return sku(n) }, Buyer: func(int) string { return "b" + load.Mark }}
	if err := c.orders.Write(c.table, 1); err != nil {
		return cost{}, err
	}
	saleID := fmt.Sprintf("whole-%d", n)
	cpu := func() (map[string]float64, error) {
		all := map[string]*peer.Process{"shop": b.shop.Process}
		if c.Redis != nil {
			all["redis"] = c.Redis.Process
		}
		used := make(map[string]float64, len(all)+1)
		for name, p := range all {
			if used[name], err = p.CPU(); err != nil {
				return nil, err
			}
		}
		used["server"], err = c.CPU()
		return used, err
	}
	soldBefore, err := c.sold(ctx, saleID, sku(n))
	if err != nil {
		return cost{}, err
	}
	ordersBefore, err := b.shop.Orders()
	if err != nil {
		return cost{}, err
	}
	callsBefore, err := c.Redis.Calls(ctx)
	if err != nil {
		return cost{}, err
	}
	before, err := cpu()
	if err != nil {
		return cost{}, err
	}
	l, err := load.Wrk(ctx, load.Plan{URL: c.URL, Table: c.table, Core: b.Load, Connections: b.Connections, For: time.Hour, Number: b.numbers(), Most: attempts})
	if err != nil {
		return cost{}, err
	}
	after, err := cpu()
	if err != nil {
		return cost{}, err
	}
	calls, err := c.Redis.Calls(ctx)
	if err != nil {
		return cost{}, err
	}
	orders, err := b.shop.Orders()
	if err != nil {
		return cost{}, err
	}
	sold, err := c.sold(ctx, saleID, sku(n))
	switch orders, sold := orders-ordersBefore, sold-soldBefore; {
	case err != nil:
		return cost{}, err
	case orders != unitsOfASale || sold != unitsOfASale:
		return cost{}, fmt.Errorf("of %d units %d are sold, and the shop got %d orders\n%s", unitsOfASale, sold, orders, c.Log())
	case l.Broken > 0 || l.Requests-l.Refused > unitsOfASale || l.Requests-l.Refused < unitsOfASale-int64(b.Connections):
		return cost{}, fmt.Errorf("of %d attempts %d broke and %d were accepted\n%s", l.Requests, l.Broken, l.Requests-l.Refused, c.Log())
	}
	for name := range after {
		after[name] -= before[name]
	}
	return cost{l, after, calls.Minus(callsBefore).Scripts}, nil
}

type costs []cost

func (cs costs) row(name string) measure.Row {
	values := func(of func(cost) float64) measure.Spread {
		var all []float64
		for _, c := range cs {
			all = append(all, of(c))
		}
		return measure.Over(all)
	}
	r := measure.Row{
		Peer: name, CPU: make(map[string]measure.Spread),
		Rate:    values(func(c cost) float64 { return float64(c.load.Requests) / c.load.Seconds }),
		P50:     values(func(c cost) float64 { return c.load.P50.Seconds() * 1e3 }),
		P99:     values(func(c cost) float64 { return c.load.P99.Seconds() * 1e3 }),
		Whole:   values(func(c cost) float64 { return c.load.Seconds }),
		Scripts: values(func(c cost) float64 { return float64(c.scripts) }),
	}
	for _, process := range []string{"server", "redis", "shop"} {
		r.CPU[process] = values(func(c cost) float64 { return c.cpu[process] })
	}
	r.CPU["all"] = values(func(c cost) float64 { return c.cpu["server"] + c.cpu["redis"] + c.cpu["shop"] })
	return r
}
